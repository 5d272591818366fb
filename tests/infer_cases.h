/* What inference accepts and refuses, in the text form: a prelude of nodes, and
 * for each case the node that follows it. */
#ifndef TESTS_INFER_CASES_H
#define TESTS_INFER_CASES_H

/* Nodes that the cases below speak of. */
static const char prelude[] = "graph \"t\" vocab=4 ctx=8\n"
			      "weight \"table\" : f32[9,64] = \"t\"\n"
			      "weight \"vector\" : f32[64] = \"v\"\n"
			      "weight \"brain\" : bf16[64] = \"b\"\n"
			      "weight \"half\" : f16[9,64] = \"h\"\n"
			      "weight \"quant\" : q8_0[9,64] = \"q\"\n"
			      "weight \"router\" : f32[4,64] = \"r\"\n"
			      "weight \"experts\" : f16[4,32,64] = \"x\"\n"
			      "weight \"narrow\" : q4_0[4,8,32] = \"n\"\n"
			      "weight \"taps\" : f32[64,4] = \"c\"\n"
			      "weight \"one\" : f32[1,64] = \"o\"\n"
			      "%0 = input \"tokens\" : i32[T]\n"
			      "%1 = input \"positions\" : i32[T]\n"
			      "%2 = input \"rows\" : i32[R]\n"
			      "%3 = weight \"table\" : f32[9,64]\n"
			      "%4 = embed %3 %0 : f32[T,64]\n"
			      "%5 = weight \"vector\" : f32[64]\n"
			      "%6 = weight \"brain\" : bf16[64]\n"
			      "%7 = weight \"half\" : f16[9,64]\n"
			      "%8 = weight \"quant\" : q8_0[9,64]\n"
			      "%9 = weight \"router\" : f32[4,64]\n"
			      "%10 = weight \"experts\" : f16[4,32,64]\n"
			      "%11 = weight \"narrow\" : q4_0[4,8,32]\n"
			      "%12 = weight \"taps\" : f32[64,4]\n"
			      "%13 = linear %4 %9 : f32[T,4]\n"
			      "%14 = top_k %13 k=2 : i32[T,2]\n"
			      "%15 = route %13 %14 : f32[T,2]\n"
			      "%16 = reshape %4 : f32[T,4,16]\n"
			      "%17 = reshape %4 : f32[T,2,32]\n"
			      "%18 = quantise %4 : q8a[T,64]\n"
			      "%19 = cast %16 : bf16[T,4,16]\n"
			      "%20 = state \"ring\" : f32[B,4,64]\n"
			      "%21 = state \"k\" : bf16[C,4,16]\n"
			      "%22 = state \"v\" : f32[C,2,16]\n"
			      "%23 = state \"s\" : f32[B,4,16,32]\n"
			      "%24 = slice %4 start=0 count=16 : f32[T,16]\n"
			      "%25 = reshape %24 : f32[T,1,16]\n"
			      "%26 = reshape %4 : f32[T,2,2,16]\n"
			      "%27 = experts %4 %10 %14 : f32[T,2,32]\n"
			      "%28 = append %21 %19 : bf16[C,4,16]\n"
			      "%29 = slice %16 start=0 count=1 : f32[T,4,1]\n"
			      "%30 = embed %12 %0 : f32[T,4]\n"
			      "%31 = take %4 %2 : f32[R,64]\n"
			      "%32 = weight \"one\" : f32[1,64]\n";
enum { PRELUDE_NODES = 33 };

static const struct {
	const char *node;
	const char *why; /* NULL: accepted */
} cases[] = {
    {"input \"tokens\" : i32[T]", NULL},
    {"input \"rows\" : i32[R]", NULL},
    {"input \"rows\" : i32[T]", "input: \"rows\" is i32[T], not i32[R]"},
    {"input \"mask\" : i32[T]",
	"input: there is no input \"mask\"; there are tokens, positions and "
	"rows"},
    {"input \"tokens\" : f32[T]", "input: f32[T] is neither i32[T] nor i32[R]"},
    {"input : i32[T]", "input: it has no name"},
    {"weight \"table\" : f32[9,64]", NULL},
    {"weight \"table\" : f32[9,32]",
	"weight: \"table\" is declared f32[9,64] but used as f32[9,32]"},
    {"weight \"x\" : f32[T,64]",
	"weight: f32[T,64] is not made of constant axes with whole blocks in a "
	"row"},
    {"weight \"x\" : q4_k[2,128]",
	"weight: q4_k[2,128] is not made of constant axes with whole blocks in "
	"a row"},
    {"weight \"x\" : f32[2000000000,2000000000]",
	"weight: f32[2000000000,2000000000] is not made of constant axes with "
	"whole blocks in a row"},
    {"weight \"x\" : q8a[2,32]", "weight: q8a[2,32] is not a weight's dtype"},
    {"state \"x\" : bf16[C,2,8]", NULL},
    {"state \"x\" : f32[B,8]", NULL},
    {"state \"x\" : f32[T,8]", "state: f32[T,8] is neither [B,..] nor [C,h,D]"},
    {"state \"x\" : f32[C,8]",
	"state: f32[C,8] is not f32[C,h,D] or bf16[C,h,D]"},
    {"state \"x\" : bf16[B,8]", "state: bf16[B,8] is not f32[B,..]"},

    {"reshape %4 : f32[T,8,8]", NULL},
    {"reshape %18 : q8a[T,2,32]", NULL},
    {"reshape %4 : f32[T,63]",
	"reshape: f32[T,63] does not keep the rows and their length"},
    {"reshape %5 : f32[8,8]",
	"reshape: f32[8,8] does not keep the rows and their length"},
    {"reshape %18 : q8a[T,4,16]",
	"reshape: q8a[T,4,16] is not a shape of whole blocks"},
    {"reshape %8 : q8_0[9,2,32]",
	"reshape: x is q8_0[9,64]: a quantised weight has one shape"},
    {"reshape %21 : bf16[C,64]",
	"reshape: x is bf16[C,4,16]: x is state, not a value"},
    {"slice %16 start=4 count=12 : f32[T,4,12]", NULL},
    {"slice %18 start=32 count=32 : q8a[T,32]", NULL},
    {"slice %4 start=60 count=5 : f32[T,5]",
	"slice: x is f32[T,64]: elements 60 to 65 do not lie in its last axis"},
    {"slice %4 start=4294967295 count=4294967295 : f32[T,5]",
	"slice: x is f32[T,64]: elements 4294967295 to 8589934590 do not lie "
	"in its last axis"},
    {"slice %18 start=16 count=32 : q8a[T,32]",
	"slice: x is q8a[T,64]: the cut goes through a block"},
    {"slice %0 start=0 count=1 : i32[T]",
	"slice: x is i32[T]: its last axis is not a count"},

    {"add %4 %4 : f32[T,64]", NULL},
    {"add %5 %4 : f32[T,64]", NULL},
    {"add %16 %29 : f32[T,4,16]", NULL},
    {"add %6 %4 : f32[T,64]", NULL},
    {"add %4 %13 : f32[T,64]",
	"add: a is f32[T,64] but b is f32[T,4]: none has a shape that the "
	"others spread to"},
    {"add %29 %25 : f32[T,4,16]",
	"add: a is f32[T,4,1] but b is f32[T,1,16]: none has a shape that the "
	"others spread to"},
    {"add %4 %31 : f32[T,64]",
	"add: a is f32[T,64] but b is f32[R,64]: none has a shape that the "
	"others spread to"},
    {"add %4 %32 : f32[T,64]",
	"add: a is f32[T,64] but b is f32[1,64]: none has a shape that the "
	"others spread to"},
    {"mul %4 %4 : f32[T,64]", NULL},
    {"mul %4 %7 : f32[T,64]",
	"mul: a is f32[T,64] but b is f16[9,64]: b is f16, which this op does "
	"not read"},
    {"fma %4 %5 %4 : f32[T,64]", NULL},
    {"fma %4 %5 %0 : f32[T,64]",
	"fma: a is f32[T,64], b is f32[64], c is i32[T]: c must be f32 or "
	"bf16"},
    {"scale %4 factor=0.5 : f32[T,64]", NULL},
    {"scale %4 factor=inf : f32[T,64]",
	"scale: x is f32[T,64]: factor must be finite"},
    {"scale %4 : f32[T,64]", "scale: factor is missing"},
    {"silu %4 : f32[T,64]", NULL},
    {"silu %18 : f32[T,64]", "silu: x is q8a[T,64]: x must be f32 or bf16"},
    {"sigmoid %19 : f32[T,4,16]", NULL},
    {"sigmoid %0 : f32[T]", "sigmoid: x is i32[T]: x must be f32 or bf16"},
    {"softplus %4 : f32[T,64]", NULL},
    {"softplus %8 : f32[9,64]",
	"softplus: x is q8_0[9,64]: x must be f32 or bf16"},
    {"exp %5 : f32[64]", NULL},
    {"exp %22 : f32[C,2,16]", "exp: x is f32[C,2,16]: x is state, not a value"},
    {"cast %4 : bf16[T,64]", NULL},
    {"cast %6 : f32[64]", NULL},
    {"cast %4 : f16[T,64]", "cast: x is f32[T,64]: it cannot become f16"},
    {"cast %7 : f32[9,64]",
	"cast: x is f16[9,64]: x is f16, which this op does not read"},

    {"rms_norm %4 %5 eps=1e-6 : f32[T,64]", NULL},
    {"rms_norm %4 %6 eps=1e-6 : f32[T,64]", NULL},
    {"rms_norm %16 %5 eps=1e-6 : f32[T,4,16]",
	"rms_norm: x is f32[T,4,16] but w is f32[64]: their last axes differ"},
    {"rms_norm %4 %5 eps=0 : f32[T,64]",
	"rms_norm: x is f32[T,64] but w is f32[64]: eps must be finite and "
	"above 0"},
    {"rms_norm %4 %4 eps=1 : f32[T,64]",
	"rms_norm: x is f32[T,64] but w is f32[T,64]: w must have 1 axis"},
    {"l2_norm %16 eps=1e-6 : f32[T,4,16]", NULL},
    {"l2_norm %19 eps=1e-6 : f32[T,4,16]",
	"l2_norm: x is bf16[T,4,16]: x must be f32"},
    {"quantise %17 : q8a[T,2,32]", NULL},
    {"quantise %16 : q8a[T,4,16]",
	"quantise: x is f32[T,4,16]: its last axis is not a multiple of 32"},
    {"rope %16 %1 theta=1e6 rot=16 : f32[T,4,16]", NULL},
    {"rope %16 %1 theta=1e6 rot=18 : f32[T,4,16]",
	"rope: x is f32[T,4,16] but positions is i32[T]: rot must be even and "
	"within the last axis of x"},
    {"rope %16 %2 theta=1e6 rot=16 : f32[T,4,16]",
	"rope: x is f32[T,4,16] but positions is i32[R]: their first axes "
	"differ"},
    {"rope %16 %1 theta=-1 rot=16 : f32[T,4,16]",
	"rope: x is f32[T,4,16] but positions is i32[T]: theta must be finite "
	"and above 0"},
    {"top_k %13 k=4 : i32[T,4]", NULL},
    {"top_k %13 k=5 : i32[T,5]",
	"top_k: logits is f32[T,4]: k must be 1 to the length of the last "
	"axis"},
    {"route %13 %14 renormalise : f32[T,2]", NULL},
    {"route %13 %0 : f32[T,2]",
	"route: logits is f32[T,4] but ids is i32[T]: ids must have 2 axes"},
    {"route %4 %14 : f32[T,2]",
	"route: logits is f32[T,64] but ids is i32[T,2]: ids must be a top_k "
	"of as many experts"},
    {"combine %27 %15 : f32[T,32]", NULL},
    {"combine %16 %15 : f32[T,16]",
	"combine: y is f32[T,4,16] but weights is f32[T,2]: their slots "
	"differ"},

    {"embed %8 %0 : f32[T,64]", NULL},
    {"embed %7 %0 : f32[T,64]", NULL},
    {"embed %4 %0 : f32[T,64]",
	"embed: table is f32[T,64] but ids is i32[T]: table must be a weight"},
    {"take %4 %2 : f32[R,64]", NULL},
    {"take %4 %1 : f32[T,64]",
	"take: x is f32[T,64] but rows is i32[T]: rows must be [R]"},
    {"linear %4 %8 : f32[T,9]", NULL},
    {"linear %18 %8 : f32[T,9]", NULL},
    {"linear %31 %7 : f32[R,9]", NULL},
    {"linear %18 %7 : f32[T,9]",
	"linear: x is q8a[T,64] but w is f16[9,64]: x must be f32"},
    {"linear %13 %8 : f32[T,9]",
	"linear: x is f32[T,4] but w is q8_0[9,64]: their last axes differ"},
    {"linear %4 %4 : f32[T,9]",
	"linear: x is f32[T,64] but w is f32[T,64]: w must be a weight"},
    {"linear %4 %8 : f32[T,8]", "linear: typed f32[T,8] but is f32[T,9]"},
    {"experts %4 %10 %14 : f32[T,2,32]", NULL},
    {"experts %17 %11 %14 : f32[T,2,8]", NULL},
    {"experts %16 %11 %14 : f32[T,2,8]",
	"experts: x is f32[T,4,16], w is q4_0[4,8,32], ids is i32[T,2]: their "
	"last axes differ"},
    {"experts %26 %11 %14 : f32[T,2,8]",
	"experts: x is f32[T,2,2,16], w is q4_0[4,8,32], ids is i32[T,2]: x "
	"must be [T,K] or [T,k,K]"},

    {"conv %4 %12 %20 : f32[T,64]", NULL},
    {"conv %4 %12 %23 : f32[T,64]",
	"conv: x is f32[T,64], taps is f32[64,4], state is f32[B,4,16,32]: "
	"state must have 3 axes"},
    {"conv %30 %12 %20 : f32[T,4]",
	"conv: x is f32[T,4], taps is f32[64,4], state is f32[B,4,64]: taps "
	"must be [n,K]"},
    {"conv %4 %12 %22 : f32[T,64]",
	"conv: x is f32[T,64], taps is f32[64,4], state is f32[C,2,16]: state "
	"must be a state [B,..]"},
    {"append %21 %19 : bf16[C,4,16]", NULL},
    {"append %21 %16 : bf16[C,4,16]",
	"append: state is bf16[C,4,16] but x is f32[T,4,16]: x must be bf16"},
    {"append %22 %16 : f32[C,2,16]",
	"append: state is f32[C,2,16] but x is f32[T,4,16]: x must be [T,h,D] "
	"of the state's h and D"},
    {"append %28 %19 : bf16[C,4,16]",
	"append: state is bf16[C,4,16] but x is bf16[T,4,16]: state must be a "
	"state [C,h,D]"},
    {"attention %16 %28 %28 scale=0.25 : f32[T,4,16]", NULL},
    {"attention %16 %22 %22 scale=0.25 : f32[T,4,16]", NULL},
    {"attention %16 %28 %22 scale=0.25 : f32[T,4,16]",
	"attention: q is f32[T,4,16], k is bf16[C,4,16], v is f32[C,2,16]: k "
	"and v differ in shape"},
    {"attention %25 %22 %22 scale=0.25 : f32[T,1,16]",
	"attention: q is f32[T,1,16], k is f32[C,2,16], v is f32[C,2,16]: "
	"heads of q are no multiple of heads of k"},
    {"delta_rule %25 %25 %27 %15 %15 %23 : f32[T,2,32]",
	"delta_rule: q is f32[T,1,16], k is f32[T,1,16], v is f32[T,2,32], "
	"decay is f32[T,2], beta is f32[T,2], state is f32[B,4,16,32]: state "
	"must be [B,hv,Dk,Dv]"},
    {"delta_rule %16 %16 %16 %13 %13 %23 : f32[T,4,16]",
	"delta_rule: q is f32[T,4,16], k is f32[T,4,16], v is f32[T,4,16], "
	"decay is f32[T,4], beta is f32[T,4], state is f32[B,4,16,32]: state "
	"must be [B,hv,Dk,Dv]"},
    {"delta_rule %25 %17 %27 %15 %15 %23 : f32[T,2,32]",
	"delta_rule: q is f32[T,1,16], k is f32[T,2,32], v is f32[T,2,32], "
	"decay is f32[T,2], beta is f32[T,2], state is f32[B,4,16,32]: q and "
	"k must be [T,hk,Dk]"},

    {"conv2d %4 : f32[T,64]", "\"conv2d\" is not an op"},
    {"silu %99 : f32[T,64]", "%99 is not defined before"},
    {"silu %4 : f32[T,64] junk", "left over: \"junk\""},
    {"silu %4 eps=1 : f32[T,64]", "silu: no attribute eps"},
    {"silu %4 : f33[T,64]", "\"f33\" is not a dtype"},
    {"silu %4 : f32[T,1,1,1,64]", "more than 4 axes"},
    {"slice %4 start=0 start=0 count=1 : f32[T,1]",
	"slice: a second attribute start"},
};

#endif
