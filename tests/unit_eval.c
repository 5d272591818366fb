/* The oracle, ops that see one token: each against doubles or by hand. */
#include "../ir/eval_impl.h"
#include "../numerics/quant.h"
#include "eval_bench.h"

/* ---- element by element ---- */

static void
test_point(void **state)
{
	Bench *b = bench_new(GRAPH "weight \"x\" : f32[9,8] = \"x\"\n"
				   "weight \"y\" : f32[9,8] = \"y\"\n"
				   "%0 = input \"tokens\" : i32[T]\n"
				   "%1 = weight \"x\" : f32[9,8]\n"
				   "%2 = weight \"y\" : f32[9,8]\n"
				   "%3 = embed %1 %0 : f32[T,8]\n"
				   "%4 = embed %2 %0 : f32[T,8]\n"
				   "%5 = add %3 %4 : f32[T,8]\n"
				   "%6 = mul %3 %4 : f32[T,8]\n"
				   "%7 = fma %3 %4 %5 : f32[T,8]\n"
				   "%8 = scale %3 factor=0.3 : f32[T,8]\n"
				   "%9 = silu %3 : f32[T,8]\n"
				   "%10 = sigmoid %3 : f32[T,8]\n"
				   "%11 = softplus %3 : f32[T,8]\n"
				   "%12 = exp %3 : f32[T,8]\n"
				   "%13 = cast %3 : bf16[T,8]\n"
				   "%14 = cast %13 : f32[T,8]\n"
				   "%15 = add %13 %4 : f32[T,8]\n");
	const float *x, *y;
	uint32_t i;

	(void)state;
	bench_run(b, 9);
	x = floats(b, 3);
	y = floats(b, 4);
	assert_int_equal(b->count[5], 72);
	for (i = 0; i < 72; i++) {
		double s = 1 / (1 + exp(-(double)x[i]));
		float narrow = ig_from_bf16(ig_to_bf16(x[i]));

		assert_true(x[i] != y[i]);
		assert_true(floats(b, 5)[i] == x[i] + y[i]);
		assert_true(floats(b, 6)[i] == x[i] * y[i]);
		assert_true(
		    floats(b, 7)[i] == fmaf(x[i], y[i], floats(b, 5)[i]));
		assert_true(floats(b, 8)[i] == x[i] * 0.3f);
		near(floats(b, 9)[i], x[i] * s, 1e-6);
		near(floats(b, 10)[i], s, 1e-6);
		near(floats(b, 11)[i], log1p(exp(x[i])), 1e-6);
		near(floats(b, 12)[i], exp(x[i]), 1e-6);
		near(narrow, x[i], 0.004);
		assert_true(((uint16_t *)b->value[13])[i] == ig_to_bf16(x[i]));
		assert_true(floats(b, 14)[i] == narrow);
		assert_true(floats(b, 15)[i] == narrow + y[i]);
	}
	bench_free(b);
}

static void
test_spreading(void **state)
{
	Bench *b =
	    bench_new(GRAPH "weight \"x\" : f32[5,24] = \"x\"\n"
			    "weight \"head\" : f32[3,1] = \"h\"\n"
			    "weight \"inner\" : bf16[8] = \"i\"\n"
			    "weight \"token\" : f32[5,1] = \"t\"\n"
			    "%0 = input \"tokens\" : i32[T]\n"
			    "%1 = weight \"x\" : f32[5,24]\n"
			    "%2 = embed %1 %0 : f32[T,24]\n"
			    "%3 = reshape %2 : f32[T,3,8]\n"
			    "%4 = weight \"head\" : f32[3,1]\n"
			    "%5 = weight \"inner\" : bf16[8]\n"
			    "%6 = weight \"token\" : f32[5,1]\n"
			    "%7 = embed %6 %0 : f32[T,1]\n"
			    "%8 = reshape %7 : f32[T,1,1]\n"
			    "%9 = fma %3 %4 %5 : f32[T,3,8]\n"
			    "%10 = mul %8 %3 : f32[T,3,8]\n"
			    "%11 = slice %3 start=2 count=5 : f32[T,3,5]\n");
	uint32_t t, h, i;

	(void)state;
	bench_run(b, 5);
	for (t = 0; t < 5; t++)
		for (h = 0; h < 3; h++)
			for (i = 0; i < 8; i++) {
				uint32_t at = (t * 3 + h) * 8 + i;
				float x = floats(b, 2)[at];
				float w = floats(b, 4)[h];
				float c =
				    ig_from_bf16(((uint16_t *)b->value[5])[i]);

				assert_true(floats(b, 9)[at] == fmaf(x, w, c));
				assert_true(
				    floats(b, 10)[at] == floats(b, 7)[t] * x);
				if (i < 5)
					assert_true(
					    floats(
						b, 11)[(t * 3 + h) * 5 + i] ==
					    floats(b, 3)[at + 2]);
			}
	bench_free(b);
}

/* ---- rows ---- */

static void
test_norms(void **state)
{
	Bench *b =
	    bench_new(GRAPH "weight \"x\" : f32[4,600] = \"x\"\n"
			    "weight \"w\" : f32[300] = \"w\"\n"
			    "%0 = input \"tokens\" : i32[T]\n"
			    "%1 = weight \"x\" : f32[4,600]\n"
			    "%2 = embed %1 %0 : f32[T,600]\n"
			    "%3 = reshape %2 : f32[T,2,300]\n"
			    "%4 = weight \"w\" : f32[300]\n"
			    "%5 = rms_norm %3 %4 eps=0.25 : f32[T,2,300]\n"
			    "%6 = l2_norm %3 eps=0.25 : f32[T,2,300]\n");
	uint32_t r, i;

	(void)state;
	bench_run(b, 4);
	for (r = 0; r < 8; r++) {
		const float *x = floats(b, 3) + r * 300, *w = floats(b, 4);
		double ss = 0;

		for (i = 0; i < 300; i++)
			ss += (double)x[i] * x[i];
		for (i = 0; i < 300; i++) {
			near(floats(b, 5)[r * 300 + i],
			    x[i] / sqrt(ss / 300 + 0.25) * w[i], 1e-6);
			near(floats(b, 6)[r * 300 + i], x[i] / sqrt(ss + 0.25),
			    1e-6);
		}
	}
	bench_free(b);
}

static void
test_rope(void **state)
{
	Bench *b =
	    bench_new(GRAPH "weight \"x\" : f32[400,20] = \"x\"\n"
			    "%0 = input \"tokens\" : i32[T]\n"
			    "%1 = input \"positions\" : i32[T]\n"
			    "%2 = weight \"x\" : f32[400,20]\n"
			    "%3 = embed %2 %0 : f32[T,20]\n"
			    "%4 = reshape %3 : f32[T,2,10]\n"
			    "%5 = rope %4 %1 theta=100 rot=8 : f32[T,2,10]\n"
			    "%6 = rope %4 %1 theta=50 rot=10 : f32[T,2,10]\n");
	uint32_t r, i;

	(void)state;
	bench_run(b, 400);
	for (r = 0; r < 800; r++) {
		const float *x = floats(b, 4) + r * 10;
		const float *y = floats(b, 5) + r * 10;

		for (i = 0; i < 4; i++) {
			double a = r / 2 * pow(100, -2.0 * i / 8);

			near(y[i], x[i] * cos(a) - x[i + 4] * sin(a), 1e-6);
			near(y[i + 4], x[i + 4] * cos(a) + x[i] * sin(a), 1e-6);
		}
		same_bits(y + 8, x + 8, 2);
	}
	near(floats(b, 6)[20 * 3],
	    floats(b, 4)[20 * 3] * cos(3) - floats(b, 4)[20 * 3 + 5] * sin(3),
	    1e-6);
	bench_free(b);
}

/* ---- routing ---- */

static void
test_top_k(void **state)
{
	static const float logits[2][6] = {
	    {1, 3, -2, 3, 0.5f, 3}, {-1, -1, -1, -1, 7, -0.0f}};
	static const int32_t want[2][4] = {{1, 3, 5, 0}, {4, 5, 0, 1}};
	Bench *b = bench_new(GRAPH "weight \"x\" : f32[2,6] = \"x\"\n"
				   "%0 = input \"tokens\" : i32[T]\n"
				   "%1 = weight \"x\" : f32[2,6]\n"
				   "%2 = embed %1 %0 : f32[T,6]\n"
				   "%3 = top_k %2 k=4 : i32[T,4]\n"
				   "%4 = route %2 %3 renormalise : f32[T,4]\n"
				   "%5 = route %2 %3 : f32[T,4]\n");
	uint32_t t, j;

	(void)state;
	memcpy(b->weight[0], logits, sizeof logits);
	bench_run(b, 2);
	assert_memory_equal(b->value[3], want, sizeof want);
	for (t = 0; t < 2; t++) {
		double chosen = 0, all = 0;

		for (j = 0; j < 6; j++)
			all += exp(logits[t][j]);
		for (j = 0; j < 4; j++)
			chosen += exp(logits[t][want[t][j]]);
		for (j = 0; j < 4; j++) {
			double p = exp(logits[t][want[t][j]]);

			near(floats(b, 4)[t * 4 + j], p / chosen, 1e-6);
			near(floats(b, 5)[t * 4 + j], p / all, 1e-6);
		}
	}
	bench_free(b);
}

static void
test_experts(void **state)
{
	Bench *b = bench_new(GRAPH "weight \"x\" : f32[5,16] = \"x\"\n"
				   "weight \"router\" : f32[4,16] = \"r\"\n"
				   "weight \"up\" : bf16[4,12,16] = \"u\"\n"
				   "weight \"down\" : f16[4,16,12] = \"d\"\n"
				   "%0 = input \"tokens\" : i32[T]\n"
				   "%1 = weight \"x\" : f32[5,16]\n"
				   "%2 = embed %1 %0 : f32[T,16]\n"
				   "%3 = weight \"router\" : f32[4,16]\n"
				   "%4 = linear %2 %3 : f32[T,4]\n"
				   "%5 = top_k %4 k=2 : i32[T,2]\n"
				   "%6 = route %4 %5 : f32[T,2]\n"
				   "%7 = weight \"up\" : bf16[4,12,16]\n"
				   "%8 = experts %2 %7 %5 : f32[T,2,12]\n"
				   "%9 = weight \"down\" : f16[4,16,12]\n"
				   "%10 = experts %8 %9 %5 : f32[T,2,16]\n"
				   "%11 = combine %10 %6 : f32[T,16]\n");
	uint32_t t, j, i, k;

	(void)state;
	bench_run(b, 5);
	for (t = 0; t < 5; t++) {
		for (j = 0; j < 2; j++) {
			uint32_t s = t * 2 + j;
			uint32_t id = (uint32_t)((int32_t *)b->value[5])[s];
			const uint16_t *up = b->weight[2];
			const uint16_t *down = b->weight[3];

			for (i = 0; i < 12; i++) {
				double y = 0;

				for (k = 0; k < 16; k++)
					y += (double)floats(b, 2)[t * 16 + k] *
					     ig_from_bf16(
						 up[(id * 12 + i) * 16 + k]);
				near(floats(b, 8)[s * 12 + i], y, 1e-6);
			}
			for (i = 0; i < 16; i++) {
				double y = 0;

				for (k = 0; k < 12; k++)
					y += (double)floats(b, 8)[s * 12 + k] *
					     ig_from_f16(
						 down[(id * 16 + i) * 12 + k]);
				near(floats(b, 10)[s * 16 + i], y, 1e-6);
			}
		}
		for (i = 0; i < 16; i++) {
			const float *y = floats(b, 10) + t * 32 + i;
			const float *r = floats(b, 6) + t * 2;

			assert_true(floats(b, 11)[t * 16 + i] ==
				    fmaf(r[1], y[16], fmaf(r[0], y[0], +0.0f)));
		}
	}
	bench_free(b);
}

/* ---- gathers and contractions ---- */

static void
test_take(void **state)
{
	Bench *b = bench_new(GRAPH "weight \"x\" : f32[9,8] = \"x\"\n"
				   "%0 = input \"tokens\" : i32[T]\n"
				   "%1 = input \"rows\" : i32[R]\n"
				   "%2 = weight \"x\" : f32[9,8]\n"
				   "%3 = embed %2 %0 : f32[T,8]\n"
				   "%4 = take %3 %1 : f32[R,8]\n"
				   "result %4\n");
	static const uint32_t ids[] = {7, 1, 8, 8}, rows[] = {3, 0};
	EvalSeq seq = {0, 0, 4, 0};
	EvalStep step = {4, ids, 1, &seq, 2, rows};
	float logits[16];

	(void)state;
	assert_null(eval_step(b->e, &step, logits));
	same_bits(logits, (float *)b->weight[0] + 8 * 8, 8);
	same_bits(logits + 8, (float *)b->weight[0] + 7 * 8, 8);
	same_bits(floats(b, 4), logits, 16);
	bench_free(b);
}

/* y[n] = the quantised x against dequantised weights, in doubles. */
static void
check_quant_row(const Bench *b, uint32_t id, uint32_t t, uint64_t k)
{
	const Node *n = b->g->nodes[id], *w = n->in[1];
	const char *data = b->value[w->id];
	const Q8A *x = (const Q8A *)b->value[n->in[0]->id] + t * (k / 32);
	uint64_t rows = (uint64_t)w->type.dim[0], i, j;
	float row[512];

	for (i = 0; i < rows; i++) {
		double y = 0, size = 0;

		dequant_row(w->type.dtype,
		    data + i * dtype_bytes(w->type.dtype, k), k, row);
		for (j = 0; j < k; j++) {
			double p =
			    (double)row[j] * x[j / 32].s * x[j / 32].q[j % 32];

			y += p;
			size += fabs(p);
		}
		if (!(fabs(floats(b, id)[t * rows + i] - y) <= 2e-6 * size))
			fail_msg("%s: %g instead of %g",
			    dtypes[w->type.dtype].name,
			    (double)floats(b, id)[t * rows + i], y);
	}
}

static void
test_linear(void **state)
{
	Bench *b = bench_new(GRAPH "weight \"x\" : q8_0[4,512] = \"x\"\n"
				   "weight \"a\" : q4_k[7,512] = \"a\"\n"
				   "weight \"b\" : q6_k[5,512] = \"b\"\n"
				   "weight \"c\" : q8_0[6,512] = \"c\"\n"
				   "%0 = input \"tokens\" : i32[T]\n"
				   "%1 = weight \"x\" : q8_0[4,512]\n"
				   "%2 = embed %1 %0 : f32[T,512]\n"
				   "%3 = quantise %2 : q8a[T,512]\n"
				   "%4 = weight \"a\" : q4_k[7,512]\n"
				   "%5 = weight \"b\" : q6_k[5,512]\n"
				   "%6 = weight \"c\" : q8_0[6,512]\n"
				   "%7 = linear %3 %4 : f32[T,7]\n"
				   "%8 = linear %3 %5 : f32[T,5]\n"
				   "%9 = linear %3 %6 : f32[T,6]\n");
	const Q8A *q;
	float row[512];
	uint32_t t, i;

	(void)state;
	bench_run(b, 4);
	q = b->value[3];
	for (t = 0; t < 4; t++) {
		dequant_row(DT_Q8_0,
		    (char *)b->weight[0] + t * dtype_bytes(DT_Q8_0, 512), 512,
		    row);
		same_bits(floats(b, 2) + t * 512, row, 512);
		for (i = 0; i < 512; i++)
			assert_true(
			    fabsf(q[(t * 512 + i) / 32].q[i % 32] *
				      q[(t * 512 + i) / 32].s -
				  row[i]) <= 0.51f * q[(t * 512 + i) / 32].s);
		check_quant_row(b, 7, t, 512);
		check_quant_row(b, 8, t, 512);
		check_quant_row(b, 9, t, 512);
	}
	bench_free(b);
}

/* ---- not finite ---- */

static void
test_not_finite(void **state)
{
	static const struct {
		float x;
		uint32_t node; /* first to be found */
	} cases[] = {{1, 0}, {1e30f, 4}, {INFINITY, 4}, {NAN, 4}};
	Bench *b = bench_new(GRAPH "weight \"x\" : f32[8,32] = \"x\"\n"
				   "weight \"w\" : f32[32] = \"w\"\n"
				   "%0 = input \"tokens\" : i32[T]\n"
				   "%1 = weight \"x\" : f32[8,32]\n"
				   "%2 = embed %1 %0 : f32[T,32]\n"
				   "%3 = weight \"w\" : f32[32]\n"
				   "%4 = rms_norm %2 %3 eps=1e-06 : f32[T,32]\n"
				   "%5 = l2_norm %4 eps=1e-06 : f32[T,32]\n"
				   "%6 = quantise %5 : q8a[T,32]\n"
				   "%7 = input \"rows\" : i32[R]\n"
				   "%8 = take %4 %7 : f32[R,32]\n"
				   "%9 = slice %8 start=0 count=8 : f32[R,8]\n"
				   "result %9\n");
	float *x = b->weight[0], *w = b->weight[1], logits[8];
	const uint32_t ids[] = {0};
	const Node *bad;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		x[3] = cases[i].x;
		bad = bench_feed(b, 0, ids, 0, 1, logits);
		assert_ptr_equal(
		    bad, cases[i].node > 0 ? b->g->nodes[cases[i].node] : NULL);
	}
	x[3] = 1;
	w[20] = INFINITY; /* behind the check of the norm that reads it */
	assert_ptr_equal(bench_feed(b, 0, ids, 0, 1, logits), b->g->nodes[5]);
	bench_free(b);
}

static void
test_not_finite_end(void **state)
{
	Bench *b = bench_new(GRAPH "weight \"x\" : f32[8,32] = \"x\"\n"
				   "%0 = input \"tokens\" : i32[T]\n"
				   "%1 = weight \"x\" : f32[8,32]\n"
				   "%2 = embed %1 %0 : f32[T,32]\n"
				   "%3 = input \"rows\" : i32[R]\n"
				   "%4 = take %2 %3 : f32[R,32]\n"
				   "%5 = slice %4 start=0 count=8 : f32[R,8]\n"
				   "%6 = quantise %2 : q8a[T,32]\n"
				   "result %5\n");
	float *x = b->weight[0], logits[8];
	const uint32_t ids[] = {0};

	(void)state;
	assert_null(bench_feed(b, 0, ids, 0, 1, logits));
	x[30] = INFINITY;
	assert_ptr_equal(bench_feed(b, 0, ids, 0, 1, logits), b->g->nodes[6]);
	x[30] = 0;
	x[2] = -INFINITY;
	assert_ptr_equal(bench_feed(b, 0, ids, 0, 1, logits), b->g->nodes[5]);
	bench_free(b);
}

/* Runs last. */
static bool
is_local(Op op)
{
	return ops[op].kind != KIND_SEQ && op != OP_STATE;
}

static void
test_every_op_ran(void **state)
{
	(void)state;
	check_coverage(is_local);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_point),
	    cmocka_unit_test(test_spreading),
	    cmocka_unit_test(test_norms),
	    cmocka_unit_test(test_rope),
	    cmocka_unit_test(test_top_k),
	    cmocka_unit_test(test_experts),
	    cmocka_unit_test(test_take),
	    cmocka_unit_test(test_linear),
	    cmocka_unit_test(test_not_finite),
	    cmocka_unit_test(test_not_finite_end),
	    cmocka_unit_test(test_every_op_ran),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
