/* Whole models on the CPU: the oracle's bits, fused or not, with one thread or
 * two, however a prompt is cut, and whoever else is in the step. */
#include <time.h>

#include "models.h"

#define DEMO "models/demo/kjv-moe-9m-Q4_K_M.gguf"

typedef struct Case {
	const char *golden, *path;
} Case;

static const uint32_t fusions[] = {FUSE_ALL, 0};

/* ---- one prompt ---- */

/* All ways to run a prompt on the CPU against one way on the oracle. */
static void
check_cuts(const Build *b, const uint32_t *ids, uint32_t n, const float *want)
{
	static const uint32_t chunks[] = {0, 1, 7};
	uint32_t threads, c;

	for (threads = 1; threads <= 2; threads++) {
		ingot_model *m = model_of(b, threads);

		for (c = 0; c < 3; c++) {
			float *got = run_cut(m, ids, n, chunks[c]);

			same_bits(got, want, n, vocab_of(m),
			    "%s, rules %x, %u threads, chunks of %u", b->path,
			    b->rules, threads, chunks[c]);
			free(got);
		}
		ingot_model_close(m);
	}
}

static void
check_prompt(const char *path, const uint32_t *ids, uint32_t n)
{
	Build b = {path, DT_BF16, FUSE_ALL};
	ingot_model *oracle = model_of(&b, ORACLE);
	float *want = run_cut(oracle, ids, n, 0);
	float *again = run_cut(oracle, ids, n, 7);
	int i;

	same_bits(again, want, n, vocab_of(oracle),
	    "%s, the oracle in chunks of 7", path);
	for (i = 0; i < 2; i++) {
		b.rules = fusions[i];
		check_cuts(&b, ids, n, want);
	}
	free(again);
	free(want);
	ingot_model_close(oracle);
}

static void
test_cuts(void **state)
{
	const Case *c = *state;
	Golden *g = golden_open(c->golden);
	uint32_t n;
	const uint32_t *ids = golden_ids(g, "tokens", &n);

	check_prompt(c->path, ids, n);
	golden_close(g);
}

/* ---- several sequences ---- */

enum { SEQS = 5, LENGTH = 80 };

/* Sequences of other lengths, cuts and starts; some end before others join. */
static const Prompt shapes[SEQS] = {
    {NULL, 23, 0, 1, 0},
    {NULL, 80, 66, 5, 1},
    {NULL, 1, 0, 0, 1},
    {NULL, 37, 3, 9, 4},
    {NULL, 50, 0, 0, 7},
};

static void
make_prompts(Prompt *p, uint32_t ids[SEQS][LENGTH], uint32_t vocab)
{
	uint32_t i;

	for (i = 0; i < SEQS; i++) {
		make_ids(ids[i], LENGTH, vocab, i + 1);
		p[i] = shapes[i];
		p[i].ids = ids[i];
	}
}

/* The first n prompts in one session against each alone, one after another in
 * want. */
static void
check_batch(ingot_model *m, const Prompt *p, uint32_t n, const float *want,
    const char *what)
{
	float *got = run_prompts(m, p, n);
	const float *a = got;
	uint32_t i;

	for (i = 0; i < n; i++) {
		same_bits(a, want, p[i].n, vocab_of(m),
		    "%s, sequence %u of %u", what, i, n);
		a += (uint64_t)p[i].n * vocab_of(m);
		want += (uint64_t)p[i].n * vocab_of(m);
	}
	free(got);
}

/* Logits of each prompt alone, from the oracle. */
static float *
alone(ingot_model *oracle, const Prompt *p)
{
	uint64_t row = vocab_of(oracle), rows = 0;
	float *all = NULL;
	uint32_t i;

	for (i = 0; i < SEQS; rows += p[i++].n) {
		float *one = run_cut(oracle, p[i].ids, p[i].n, 0);

		all = realloc(all, (rows + p[i].n) * row * sizeof *all);
		assert_non_null(all);
		memcpy(all + rows * row, one, p[i].n * row * sizeof *all);
		free(one);
	}
	return all;
}

static void
test_batches(void **state)
{
	const Case *c = *state;
	Build b = {c->path, DT_BF16, FUSE_ALL};
	ingot_model *m = model_of(&b, ORACLE);
	uint32_t ids[SEQS][LENGTH], n, i;
	Prompt p[SEQS];
	float *want;

	make_prompts(p, ids, vocab_of(m));
	want = alone(m, p);
	check_batch(m, p, SEQS, want, "the oracle");
	ingot_model_close(m);
	for (i = 0; i < 2; i++) {
		b.rules = fusions[i];
		m = model_of(&b, 2 - i);
		for (n = 2; n <= SEQS; n++)
			check_batch(
			    m, p, n, want, i ? "unfused" : "fused");
		ingot_model_close(m);
	}
	free(want);
}

/* ---- the demo ---- */

static double
seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void
test_demo(void **state)
{
	static const char text[] =
	    "In the beginning God created the heaven and the earth. And the "
	    "earth was without form, and void; and darkness was upon the face "
	    "of the deep. And the Spirit of God moved upon the face of the "
	    "waters.";
	Build b = {DEMO, DT_BF16, FUSE_ALL};
	ingot_tokenizer *t;
	uint32_t ids[sizeof text];
	size_t n;
	double start = seconds(), compiled;

	(void)state;
	plan_of(&b);
	compiled = seconds();
	ingot_model_close(model_of(&b, 1));
	print_message("compiled in %.2f s, bound in %.0f ms\n",
	    compiled - start, (seconds() - compiled) * 1e3);
	assert_int_equal(ingot_tokenizer_open(DEMO, &t, NULL), INGOT_OK);
	assert_int_equal(ingot_encode(t, text, sizeof text - 1, 0, ids,
			     sizeof text, &n, NULL),
	    INGOT_OK);
	ingot_tokenizer_close(t);
	assert_in_range(n, 30, sizeof text);
	check_prompt(DEMO, ids, (uint32_t)n);
}

static Case cases[] = {
#define CHECKPOINT(golden, path) {golden, path},
#include "models.def"
};

static Case demo = {NULL, DEMO};

enum { COUNT = sizeof cases / sizeof cases[0] };

int
main(void)
{
	static char name[2 * COUNT][80];
	static struct CMUnitTest tests[2 * COUNT + 2];
	size_t i;

	for (i = 0; i < 2 * COUNT; i++) {
		snprintf(name[i], sizeof name[i], "%s: %s", cases[i / 2].path,
		    i % 2 ? "batches" : "cuts");
		tests[i] = (struct CMUnitTest){name[i],
		    i % 2 ? test_batches : test_cuts, NULL, NULL,
		    &cases[i / 2]};
	}
	tests[i++] = (struct CMUnitTest){"demo: cuts", test_demo, NULL, NULL, NULL};
	tests[i] = (struct CMUnitTest){
	    "demo: batches", test_batches, NULL, NULL, &demo};
	return cmocka_run_group_tests_name("bits", tests, NULL, plans_close);
}
