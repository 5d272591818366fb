/* The oracle along sequences: its ops, and that no cut, batch, copy or pass
 * changes a bit. */
#include "../ir/eval_impl.h"
#include "eval_bench.h"
#include "random_graph.h"

/* ---- along a sequence ---- */

static void
test_conv(void **state)
{
	Bench *b = bench_new(GRAPH "weight \"x\" : f32[9,8] = \"x\"\n"
				   "weight \"taps\" : bf16[8,3] = \"c\"\n"
				   "%0 = input \"tokens\" : i32[T]\n"
				   "%1 = weight \"x\" : f32[9,8]\n"
				   "%2 = embed %1 %0 : f32[T,8]\n"
				   "%3 = weight \"taps\" : bf16[8,3]\n"
				   "%4 = state \"ring\" : f32[B,3,8]\n"
				   "%5 = conv %2 %3 %4 : f32[T,8]\n");
	uint32_t t, c, i;

	(void)state;
	bench_run(b, 9);
	bench_run(b, 9); /* the slot holds an older sequence */
	for (t = 0; t < 9; t++)
		for (c = 0; c < 8; c++) {
			const uint16_t *taps = (uint16_t *)b->weight[1] + c * 3;
			float y = 0;

			for (i = 0; i < 3; i++)
				if (t + i >= 2)
					y = fmaf(ig_from_bf16(taps[i]),
					    floats(b, 2)[(t + i - 2) * 8 + c],
					    y);
			assert_true(floats(b, 5)[t * 8 + c] == y);
		}
	bench_free(b);
}

static void
check_attention(const Bench *b, uint32_t t, uint32_t h)
{
	const float *q = floats(b, 4) + (t * 4 + h) * 6;
	const float *k = floats(b, 7) + h / 2 * 6;
	double s[BENCH_CTX], sum = 0, o[6] = {0};
	uint32_t j, d;

	for (j = 0; j <= t; j++) {
		s[j] = 0;
		for (d = 0; d < 6; d++)
			s[j] += (double)q[d] *
				ig_from_bf16(ig_to_bf16(k[j * 12 + d]));
		s[j] = exp(s[j] * 3);
		sum += s[j];
	}
	for (j = 0; j <= t; j++)
		for (d = 0; d < 6; d++)
			o[d] += s[j] / sum * k[j * 12 + d];
	for (d = 0; d < 6; d++)
		near(floats(b, 12)[(t * 4 + h) * 6 + d], o[d], 1e-5);
}

/* Keys are narrowed to bf16, values are the same numbers in f32. */
static void
test_attention(void **state)
{
	Bench *b =
	    bench_new(GRAPH "weight \"q\" : f32[300,24] = \"q\"\n"
			    "weight \"k\" : f32[300,12] = \"k\"\n"
			    "%0 = input \"tokens\" : i32[T]\n"
			    "%1 = weight \"q\" : f32[300,24]\n"
			    "%2 = weight \"k\" : f32[300,12]\n"
			    "%3 = embed %1 %0 : f32[T,24]\n"
			    "%4 = reshape %3 : f32[T,4,6]\n"
			    "%5 = embed %2 %0 : f32[T,12]\n"
			    "%6 = state \"k\" : bf16[C,2,6]\n"
			    "%7 = reshape %5 : f32[T,2,6]\n"
			    "%8 = cast %7 : bf16[T,2,6]\n"
			    "%9 = append %6 %8 : bf16[C,2,6]\n"
			    "%10 = state \"v\" : f32[C,2,6]\n"
			    "%11 = append %10 %7 : f32[C,2,6]\n"
			    "%12 = attention %4 %9 %11 scale=3 : f32[T,4,6]\n");
	uint32_t t, h;

	(void)state;
	bench_run(b, 300);
	for (t = 0; t < 300; t++)
		for (h = 0; h < 4; h++)
			check_attention(b, t, h);
	bench_free(b);
}

/* 130 keys by the rule's own words: two spans, the second of two keys. */
static void
test_attention_order(void **state)
{
	Bench *b =
	    bench_new(GRAPH "weight \"x\" : f32[130,8] = \"x\"\n"
			    "%0 = input \"tokens\" : i32[T]\n"
			    "%1 = weight \"x\" : f32[130,8]\n"
			    "%2 = embed %1 %0 : f32[T,8]\n"
			    "%3 = reshape %2 : f32[T,1,8]\n"
			    "%4 = state \"kv\" : f32[C,1,8]\n"
			    "%5 = append %4 %3 : f32[C,1,8]\n"
			    "%6 = attention %3 %5 %5 scale=0.7 : f32[T,1,8]\n");
	float s[130], p[256] = {0}, m[2] = {-9e9f, -9e9f}, l[2];
	float o[2][8] = {{0}}, max, c[2];
	const float *x;
	uint32_t i, j, n;

	(void)state;
	bench_run(b, 130);
	x = floats(b, 2);
	for (i = 0; i < 130; i++) {
		s[i] = 0;
		/* 8 elements: accumulator 0 alone. */
		for (j = 0; j < 8; j++)
			s[i] = fmaf(x[i * 8 + j], x[129 * 8 + j], s[i]);
		s[i] = s[i] * 0.7f;
		if (s[i] > m[i / 128])
			m[i / 128] = s[i];
	}
	for (i = 0; i < 130; i++) {
		p[i] = ig_exp(s[i] - m[i / 128]);
		for (j = 0; j < 8; j++)
			o[i / 128][j] = fmaf(p[i], x[i * 8 + j], o[i / 128][j]);
	}
	for (n = 128; n > 1; n /= 2)
		for (i = 0; i < n / 2; i++) {
			p[i] = p[2 * i] + p[2 * i + 1];
			p[128 + i] = p[128 + 2 * i] + p[128 + 2 * i + 1];
		}
	l[0] = p[0];
	l[1] = p[128];
	max = m[0] > m[1] ? m[0] : m[1];
	c[0] = ig_exp(m[0] - max);
	c[1] = ig_exp(m[1] - max);
	l[0] = fmaf(c[1], l[1], c[0] * l[0]);
	for (j = 0; j < 8; j++) {
		o[0][j] = fmaf(c[1], o[1][j], c[0] * o[0][j]);
		o[0][j] = o[0][j] * (1 / l[0]);
	}
	same_bits(floats(b, 6) + 129 * 8, o[0], 8);
	bench_free(b);
}

static void
check_delta(const Bench *b, uint32_t id)
{
	const Attrs *attr = &b->g->nodes[id]->attr;
	double s[4][20][3] = {{{0}}};
	uint32_t t, h, i, j;

	for (t = 0; t < 40; t++)
		for (h = 0; h < 4; h++) {
			uint32_t from = attr->tiled ? h % 2 : h / 2;
			const float *q = floats(b, 9) + (t * 2 + from) * 20;
			const float *k = floats(b, 10) + (t * 2 + from) * 20;
			const float *v = floats(b, 12) + (t * 4 + h) * 3;
			double decay = floats(b, 7)[t * 4 + h];
			double beta = floats(b, 8)[t * 4 + h];

			for (j = 0; j < 3; j++) {
				double kv = 0, o = 0, u;

				for (i = 0; i < 20; i++) {
					s[h][i][j] *= decay;
					kv += s[h][i][j] * k[i];
				}
				u = beta * (v[j] - kv);
				for (i = 0; i < 20; i++) {
					s[h][i][j] += k[i] * u;
					o += s[h][i][j] * q[i];
				}
				near(floats(b, id)[(t * 4 + h) * 3 + j], o,
				    1e-5);
			}
		}
}

static void
test_delta_rule(void **state)
{
	Bench *b = bench_new(
	    GRAPH "weight \"qk\" : f32[40,40] = \"qk\"\n"
		  "weight \"v\" : f32[40,12] = \"v\"\n"
		  "weight \"g\" : f32[40,4] = \"g\"\n"
		  "%0 = input \"tokens\" : i32[T]\n"
		  "%1 = weight \"qk\" : f32[40,40]\n"
		  "%2 = weight \"v\" : f32[40,12]\n"
		  "%3 = weight \"g\" : f32[40,4]\n"
		  "%4 = embed %1 %0 : f32[T,40]\n"
		  "%5 = embed %2 %0 : f32[T,12]\n"
		  "%6 = embed %3 %0 : f32[T,4]\n"
		  "%7 = sigmoid %6 : f32[T,4]\n"
		  "%8 = mul %7 %7 : f32[T,4]\n"
		  "%9 = reshape %4 : f32[T,2,20]\n"
		  "%10 = l2_norm %9 eps=1e-06 : f32[T,2,20]\n"
		  "%11 = state \"s\" : f32[B,4,20,3]\n"
		  "%12 = reshape %5 : f32[T,4,3]\n"
		  "%13 = delta_rule %9 %10 %12 %7 %8 %11 : f32[T,4,3]\n"
		  "%14 = state \"s2\" : f32[B,4,20,3]\n"
		  "%15 = delta_rule %9 %10 %12 %7 %8 %14 tiled : f32[T,4,3]\n");

	(void)state;
	bench_run(b, 40);
	check_delta(b, 13);
	check_delta(b, 15);
	assert_memory_not_equal(
	    b->value[13], b->value[15], b->count[13] * sizeof(float));
	bench_free(b);
}

/* ---- laws ---- */

enum { LENGTH = 300, VOCAB = 8 };

/* Conv, delta rule and attention over two types of state, and experts. */
static const char model[] =
    GRAPH "weight \"e\" : q8_0[16,32] = \"e\"\n"
	  "weight \"n\" : f32[32] = \"n\"\n"
	  "weight \"c\" : f32[32,4] = \"c\"\n"
	  "weight \"qkv\" : q8_0[32,32] = \"qkv\"\n"
	  "weight \"r\" : f32[4,32] = \"r\"\n"
	  "weight \"x\" : q8_0[4,32,32] = \"x\"\n"
	  "weight \"head\" : f32[8,32] = \"head\"\n"
	  "%0 = input \"tokens\" : i32[T]\n"
	  "%1 = input \"positions\" : i32[T]\n"
	  "%2 = input \"rows\" : i32[R]\n"
	  "%3 = weight \"e\" : q8_0[16,32]\n"
	  "%4 = weight \"n\" : f32[32]\n"
	  "%5 = weight \"c\" : f32[32,4]\n"
	  "%6 = weight \"qkv\" : q8_0[32,32]\n"
	  "%7 = weight \"r\" : f32[4,32]\n"
	  "%8 = weight \"x\" : q8_0[4,32,32]\n"
	  "%9 = weight \"head\" : f32[8,32]\n"
	  "%10 = embed %3 %0 : f32[T,32]\n"
	  "%11 = rms_norm %10 %4 eps=1e-06 : f32[T,32]\n"
	  "%12 = linear %11 %6 : f32[T,32]\n"
	  "%13 = state \"ring\" : f32[B,4,32]\n"
	  "%14 = conv %12 %5 %13 : f32[T,32]\n"
	  "%15 = reshape %14 : f32[T,2,16]\n"
	  "%16 = l2_norm %15 eps=1e-06 : f32[T,2,16]\n"
	  "%17 = slice %14 start=0 count=2 : f32[T,2]\n"
	  "%18 = sigmoid %17 : f32[T,2]\n"
	  "%19 = state \"s\" : f32[B,2,16,16]\n"
	  "%20 = delta_rule %16 %16 %15 %18 %18 %19 : f32[T,2,16]\n"
	  "%21 = reshape %20 : f32[T,32]\n"
	  "%22 = add %10 %21 : f32[T,32]\n"
	  "%23 = reshape %22 : f32[T,4,8]\n"
	  "%24 = rope %23 %1 theta=10000 rot=8 : f32[T,4,8]\n"
	  "%25 = slice %22 start=16 count=16 : f32[T,16]\n"
	  "%26 = reshape %25 : f32[T,2,8]\n"
	  "%27 = rope %26 %1 theta=10000 rot=8 : f32[T,2,8]\n"
	  "%28 = cast %27 : bf16[T,2,8]\n"
	  "%29 = state \"k\" : bf16[C,2,8]\n"
	  "%30 = append %29 %28 : bf16[C,2,8]\n"
	  "%31 = state \"v\" : f32[C,2,8]\n"
	  "%32 = append %31 %26 : f32[C,2,8]\n"
	  "%33 = attention %24 %30 %32 scale=0.35 : f32[T,4,8]\n"
	  "%34 = reshape %33 : f32[T,32]\n"
	  "%35 = add %22 %34 : f32[T,32]\n"
	  "%36 = rms_norm %35 %4 eps=1e-06 : f32[T,32]\n"
	  "%37 = linear %36 %7 : f32[T,4]\n"
	  "%38 = top_k %37 k=2 : i32[T,2]\n"
	  "%39 = route %37 %38 renormalise : f32[T,2]\n"
	  "%40 = experts %36 %8 %38 : f32[T,2,32]\n"
	  "%41 = combine %40 %39 : f32[T,32]\n"
	  "%42 = add %35 %41 : f32[T,32]\n"
	  "%43 = take %42 %2 : f32[R,32]\n"
	  "%44 = linear %43 %9 : f32[R,8]\n"
	  "result %44\n";

static Bench *
bench_random_graph(uint64_t seed)
{
	Bench *b = calloc(1, sizeof *b);

	b->arena = arena_new();
	b->g = random_graph(b->arena, seed, 600);
	legalise(b->g);
	assert_null(verify(b->g));
	bench_start(b);
	b->listening = false;
	return b;
}

static Bench *
model_new(void)
{
	Bench *b = calloc(1, sizeof *b);
	char why[512] = "";

	b->arena = arena_new();
	b->g = graph_parse(b->arena, model, strlen(model), why);
	assert_string_equal(why, "");
	legalise(b->g);
	assert_null(verify(b->g));
	bench_start(b);
	b->listening = false;
	return b;
}

static void
make_prompt(uint64_t seed, uint32_t *ids)
{
	uint32_t i;

	for (i = 0; i < LENGTH; i++)
		ids[i] = bench_random(&seed) % 16;
}

/* Both slots hold the same after length tokens. */
static void
same_state(Bench *b, uint32_t x, uint32_t y, uint32_t length)
{
	uint32_t i;

	for (i = 0; i < b->g->count; i++) {
		const Node *s = b->g->nodes[i];
		uint64_t bytes = dtype_bytes(s->type.dtype, type_row(&s->type));

		if (s->op != OP_STATE)
			continue;
		if (s->type.dim[0] == DIM_B)
			assert_memory_equal(eval_recurrent(b->e, s, x),
			    eval_recurrent(b->e, s, y), bytes);
		else
			assert_memory_equal(eval_keys(b->e, s, x, length),
			    eval_keys(b->e, s, y, length), bytes * length);
	}
}

static void
test_any_cut(void **state)
{
	static const uint32_t cuts[] = {1, 2, 7, 64, 128, 299};
	static float whole[LENGTH * VOCAB], parts[LENGTH * VOCAB];
	Bench *b = model_new();
	uint32_t ids[LENGTH], at, n;
	size_t i;

	(void)state;
	make_prompt(5, ids);
	assert_null(bench_feed(b, 0, ids, 0, LENGTH, whole));
	for (i = 0; i < sizeof cuts / sizeof cuts[0]; i++) {
		for (at = 0; at < LENGTH; at += n) {
			n = LENGTH - at < cuts[i] ? LENGTH - at : cuts[i];
			assert_null(
			    bench_feed(b, 1, ids, at, n, parts + at * VOCAB));
		}
		same_bits(whole, parts, LENGTH * VOCAB);
		same_state(b, 0, 1, LENGTH);
	}
	bench_free(b);
}

static void
test_ragged(void **state)
{
	/* Lengths of three sequences' shares of each step. */
	static const uint32_t shares[][3] = {
	    {5, 1, 17}, {1, 130, 1}, {9, 1, 3}};
	static const uint32_t slots[] = {2, 0, 3};
	static float alone[3][LENGTH * VOCAB], together[LENGTH * VOCAB];
	Bench *b = model_new();
	uint32_t ids[3][LENGTH], at[3] = {0}, s, i;
	size_t n;

	(void)state;
	for (s = 0; s < 3; s++) {
		make_prompt(s + 11, ids[s]);
		assert_null(bench_feed(b, 1, ids[s], 0, LENGTH, alone[s]));
	}
	for (n = 0; n < sizeof shares / sizeof shares[0]; n++) {
		uint32_t tokens[LENGTH], rows[LENGTH], total = 0;
		EvalSeq seqs[3];

		for (s = 0; s < 3; s++) {
			seqs[s] =
			    (EvalSeq){slots[s], total, shares[n][s], at[s]};
			for (i = 0; i < shares[n][s]; i++, total++) {
				tokens[total] = ids[s][at[s] + i];
				rows[total] = total;
			}
		}
		assert_null(eval_step(b->e,
		    &(EvalStep){total, tokens, 3, seqs, total, rows},
		    together));
		for (s = 0; s < 3; s++) {
			same_bits(together + seqs[s].first * VOCAB,
			    alone[s] + at[s] * VOCAB, shares[n][s] * VOCAB);
			at[s] += shares[n][s];
		}
	}
	bench_free(b);
}

static void
test_copy_and_clear(void **state)
{
	static float whole[LENGTH * VOCAB], rest[LENGTH * VOCAB];
	Bench *b = model_new();
	uint32_t ids[LENGTH], other[LENGTH];

	(void)state;
	make_prompt(5, ids);
	make_prompt(6, other);
	assert_null(bench_feed(b, 0, ids, 0, LENGTH, whole));
	assert_null(bench_feed(b, 1, other, 0, LENGTH, rest));
	assert_null(bench_feed(b, 0, ids, 0, 150, rest));
	eval_copy(b->e, 0, 1, 150);
	same_state(b, 0, 1, 150);
	eval_clear(b->e, 0);
	assert_null(bench_feed(b, 1, ids, 150, LENGTH - 150, rest));
	same_bits(rest, whole + 150 * VOCAB, (LENGTH - 150) * VOCAB);
	eval_copy(b->e, 0, 1, 0); /* fresh again */
	same_state(b, 0, 1, 0);
	assert_null(bench_feed(b, 1, ids, 0, 10, rest));
	same_bits(rest, whole, 10 * VOCAB);
	bench_free(b);
}

/* Passes leave every bit of the result. */
static void
test_passes_keep_bits(void **state)
{
	static float before[LENGTH * VOCAB], after[LENGTH * VOCAB];
	Bench *b = model_new(), *c = model_new();
	uint32_t ids[LENGTH];

	(void)state;
	make_prompt(5, ids);
	assert_null(bench_feed(b, 0, ids, 0, 40, before));
	eval_free(c->e);
	simplify(c->g);
	cse(c->g);
	dce(c->g);
	bench_eval(c);
	assert_null(bench_feed(c, 0, ids, 0, 40, after));
	same_bits(before, after, 40 * VOCAB);
	bench_free(b);
	bench_free(c);
}

/* How many of the seeds' graphs have finite logits, all of which must come out
 * of the passes unchanged. */
static int
compare_random_graph(uint64_t seed)
{
	static const uint32_t ids[] = {3, 9, 0, 3, 3, 15, 7};
	float before[7 * RANDOM_VOCAB], after[7 * RANDOM_VOCAB];
	Bench *b = bench_random_graph(seed), *c = bench_random_graph(seed);
	int finite;

	eval_free(c->e);
	simplify(c->g);
	cse(c->g);
	dce(c->g);
	bench_eval(c);
	finite = bench_feed(b, 0, ids, 0, 7, before) == NULL;
	if (finite) {
		assert_null(bench_feed(c, 0, ids, 0, 7, after));
		same_bits(before, after, 7 * RANDOM_VOCAB);
	}
	bench_free(b);
	bench_free(c);
	return finite;
}

static void
test_passes_keep_random_bits(void **state)
{
	uint64_t seed;
	int finite = 0;

	(void)state;
	for (seed = 1; seed <= 100; seed++)
		finite += compare_random_graph(seed);
	assert_true(finite > 30);
}

/* Runs last. */
static bool
is_sequential(Op op)
{
	return ops[op].kind == KIND_SEQ || op == OP_STATE;
}

static void
test_every_op_ran(void **state)
{
	(void)state;
	check_coverage(is_sequential);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_conv),
	    cmocka_unit_test(test_attention),
	    cmocka_unit_test(test_attention_order),
	    cmocka_unit_test(test_delta_rule),
	    cmocka_unit_test(test_any_cut),
	    cmocka_unit_test(test_ragged),
	    cmocka_unit_test(test_copy_and_clear),
	    cmocka_unit_test(test_passes_keep_bits),
	    cmocka_unit_test(test_passes_keep_random_bits),
	    cmocka_unit_test(test_every_op_ran),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
