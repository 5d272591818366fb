/* Whole models against what Hugging Face transformers computes for them: the
 * residual stream layer by layer, logits, and greedy tokens. */
#include "models.h"

#define NMSE_LIMIT 1e-8

/* Greedy tokens behind the prompt, and room for both. */
enum { NEW = 32, MAX_TOKENS = 256 };

typedef struct Case {
	const char *golden, *path;
} Case;

static Build
build_of(const Case *c)
{
	return (Build){c->path, DT_F32, FUSE_ALL};
}

/* ---- the residual stream ---- */

typedef struct Stream {
	const Golden *golden;
	const char *path;
	uint32_t seen; /* labels hidden.0 .. hidden.seen-1 were compared */
} Stream;

/* Labels come in the order of the layers, so the first failure names the first
 * layer that differs. Goldens may hold fewer rows than there are tokens. */
static void
compare_hidden(void *user, const char *label, const float *value, uint64_t rows,
    uint64_t columns)
{
	Stream *s = user;
	uint64_t want_rows, want_columns;
	char next[32];
	const float *want;
	double error;

	if (strncmp(label, "hidden.", 7) != 0)
		return;
	snprintf(next, sizeof next, "hidden.%u", s->seen);
	assert_string_equal(label, next);
	want = golden_find(s->golden, label, &want_rows, &want_columns);
	assert_non_null(want);
	assert_int_equal(columns, want_columns);
	assert_true(rows >= want_rows);
	error = nmse(value, want, want_rows * columns);
	if (!(error <= NMSE_LIMIT))
		fail_msg("%s: %s, the stream %s%u, has an NMSE of %.1e",
		    s->path, label, s->seen ? "after layer " : "at layer ",
		    s->seen ? s->seen - 1 : 0, error);
	s->seen++;
}

static void
test_hidden(void **state)
{
	const Case *c = *state;
	Build b = build_of(c);
	Golden *g = golden_open(c->golden);
	Stream stream = {g, c->path, 0};
	OracleWatch watch = {compare_hidden, &stream};
	ingot_model *m = model_watched(&b, &watch);
	char beyond[32];
	uint64_t rows, columns;
	uint32_t n;
	const uint32_t *ids = golden_ids(g, "tokens", &n);

	free(run_cut(m, ids, n, 0));
	snprintf(beyond, sizeof beyond, "hidden.%u", stream.seen);
	assert_true(stream.seen > 1);
	assert_null(golden_find(g, beyond, &rows, &columns));
	ingot_model_close(m);
	golden_close(g);
}

/* ---- logits and tokens ---- */

static float *
check_logits(const Golden *g, ingot_model *m, const char *path)
{
	uint64_t rows, columns;
	uint32_t n;
	const uint32_t *ids = golden_ids(g, "tokens", &n);
	const float *want = golden_find(g, "logits_f32", &rows, &columns);
	float *got = run_cut(m, ids, n, 0);
	double error;

	assert_non_null(want);
	assert_int_equal(rows, n);
	assert_int_equal(columns, vocab_of(m));
	error = nmse(got, want, rows * columns);
	if (!(error <= NMSE_LIMIT))
		fail_msg("%s: the logits have an NMSE of %.1e", path, error);
	print_message("NMSE %.1e\n", error);
	return got;
}

static void
check_greedy(const Golden *g, ingot_model *m, const char *path)
{
	uint32_t n, i, ids[MAX_TOKENS];
	const uint32_t *want = golden_ids(g, "greedy", &n);

	assert_in_range(n, NEW + 1, MAX_TOKENS);
	memcpy(ids, want, (n - NEW) * sizeof *ids);
	run_greedy(m, ids, n - NEW, n);
	for (i = 0; i < n; i++)
		if (ids[i] != want[i])
			fail_msg("%s: greedy token %u is %u, not %u", path, i,
			    ids[i], want[i]);
}

static void
test_oracle(void **state)
{
	const Case *c = *state;
	Build b = build_of(c);
	Golden *g = golden_open(c->golden);
	ingot_model *m = model_of(&b, ORACLE);

	free(check_logits(g, m, c->path));
	check_greedy(g, m, c->path);
	ingot_model_close(m);
	golden_close(g);
}

/* With this cache the CPU's bits are the oracle's too. */
static void
test_cpu(void **state)
{
	const Case *c = *state;
	Build b = build_of(c);
	Golden *g = golden_open(c->golden);
	ingot_model *m = model_of(&b, 2), *oracle = model_of(&b, ORACLE);
	uint32_t n;
	const uint32_t *ids = golden_ids(g, "tokens", &n);
	float *got = check_logits(g, m, c->path);
	float *want = run_cut(oracle, ids, n, 0);

	same_bits(got, want, n, vocab_of(m), "%s, kv f32", c->path);
	check_greedy(g, m, c->path);
	free(got);
	free(want);
	ingot_model_close(m);
	ingot_model_close(oracle);
	golden_close(g);
}

static Case cases[] = {
#define CHECKPOINT(golden, path) {golden, path},
#include "models.def"
};

enum { COUNT = sizeof cases / sizeof cases[0] };

int
main(void)
{
	static char name[3 * COUNT][80];
	static struct CMUnitTest tests[3 * COUNT];
	static const struct {
		const char *name;
		CMUnitTestFunction run;
	} kinds[] = {{"hidden", test_hidden}, {"oracle", test_oracle},
	    {"cpu", test_cpu}};
	size_t i;

	for (i = 0; i < 3 * COUNT; i++) {
		snprintf(name[i], sizeof name[i], "%s: %s", cases[i / 3].path,
		    kinds[i % 3].name);
		tests[i] = (struct CMUnitTest){
		    name[i], kinds[i % 3].run, NULL, NULL, &cases[i / 3]};
	}
	return cmocka_run_group_tests_name("goldens", tests, NULL, plans_close);
}
