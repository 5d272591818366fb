/* Whole models on the CPU: the oracle's bits, fused or not, with one thread or
 * two, however a prompt is cut, whoever else is in the step, and after a
 * sequence was copied. */
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
		same_bits(a, want, p[i].n, vocab_of(m), "%s, sequence %u of %u",
		    what, i, n);
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
			check_batch(m, p, n, want, i ? "unfused" : "fused");
		ingot_model_close(m);
	}
	free(want);
}

/* ---- copies ---- */

static void
ok(ingot_status status, const Error *e)
{
	if (status != INGOT_OK)
		fail_msg("%s", e->text);
}

/* A prompt whose logits are known. */
typedef struct Known {
	ingot_session *session;
	const uint32_t *ids;
	uint32_t vocab;
	const float *logits;
} Known;

/* Ids first .. end-1 go into seq, which has those before. */
static void
advance(const Known *k, uint32_t seq, uint32_t first, uint32_t end,
    const char *what)
{
	ingot_work work = {seq, end - first, k->ids + first, INGOT_WANT_ALL};
	Error e;

	ok(ingot_step(k->session, &work, 1, &e), &e);
	same_bits(ingot_logits(k->session, 0),
	    k->logits + (uint64_t)first * k->vocab, end - first, k->vocab,
	    "%s, ids %u to %u", what, first, end - 1);
	assert_int_equal(ingot_seq_length(k->session, seq), end);
}

/* A copy in the middle of a page goes on as its source does; neither disturbs
 * the other, and a slot that is used again is fresh. */
static void
check_copies(const Known *k, uint32_t n)
{
	uint32_t half = n / 2, a, b, c;
	Error e;

	ok(ingot_seq_add(k->session, &a, &e), &e);
	advance(k, a, 0, half, "the source");
	ok(ingot_seq_copy(k->session, a, &b, &e), &e);
	advance(k, a, half, n, "the source, copied");
	advance(k, b, half, n - 1, "the copy");
	ok(ingot_seq_copy(k->session, b, &c, &e), &e);
	ok(ingot_seq_remove(k->session, a, &e), &e);
	ok(ingot_seq_remove(k->session, b, &e), &e);
	ok(ingot_seq_add(k->session, &a, &e), &e);
	advance(k, a, 0, n, "a slot used again");
	advance(k, c, n - 1, n, "the copy of the copy");
}

static void
test_copies(void **state)
{
	const Case *c = *state;
	Build b = {c->path, DT_BF16, FUSE_ALL};
	ingot_model *oracle = model_of(&b, ORACLE), *cpu = model_of(&b, 1);
	ingot_model *const models[] = {oracle, cpu};
	uint32_t ids[LENGTH], vocab = vocab_of(cpu), i;
	ingot_session_options o = {
	    sizeof o, .ctx = LENGTH, .max_seqs = 3, .max_rows = LENGTH};
	float *want;
	Error e;

	make_ids(ids, LENGTH, vocab, 9);
	want = run_cut(oracle, ids, LENGTH, 0);
	for (i = 0; i < 2; i++) {
		Known k = {NULL, ids, vocab, want};

		ok(ingot_session_open(models[i], &o, &k.session, &e), &e);
		check_copies(&k, LENGTH);
		ingot_session_close(k.session);
		ingot_model_close(models[i]);
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
#define TWIN(golden, path)
#include "models.def"
};

static Case demo = {NULL, DEMO};

static const struct {
	const char *name;
	CMUnitTestFunction run;
} kinds[] = {
    {"cuts", test_cuts}, {"batches", test_batches}, {"copies", test_copies}};

enum { KINDS = 3, COUNT = sizeof cases / sizeof cases[0] };

int
main(void)
{
	static char name[KINDS * COUNT][80];
	static struct CMUnitTest tests[KINDS * COUNT + KINDS];
	size_t i, k, n = 0;

	for (i = 0; i < COUNT; i++)
		for (k = 0; k < KINDS; k++, n++) {
			snprintf(name[n], sizeof name[n], "%s: %s",
			    cases[i].path, kinds[k].name);
			tests[n] = (struct CMUnitTest){
			    name[n], kinds[k].run, NULL, NULL, &cases[i]};
		}
	tests[n++] =
	    (struct CMUnitTest){"demo: cuts", test_demo, NULL, NULL, NULL};
	for (k = 1; k < KINDS; k++)
		tests[n++] = (struct CMUnitTest){
		    kinds[k].name, kinds[k].run, NULL, NULL, &demo};
	return cmocka_run_group_tests_name("bits", tests, NULL, plans_close);
}
