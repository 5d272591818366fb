/* Checkpoints as people really have them: the cases of
 * tests/tools/field_cases.py but those of the command line (D7 to D9), and
 * short prompts and cuts of the models that carry state (D10). */
#include "models.h"

#include "../runtime/json.h"
#include "../runtime/mapping.h"

#define DIR "build/fixtures/cases/"

/* ---- a file and what it should be ---- */

enum { IDS = 40, MAX_FIELDS = 8 };

/* A line of cases.tsv: a file, a verb and the verb's arguments. */
typedef struct Line {
	char path[256];
	char *field[MAX_FIELDS];
	int n;
} Line;

static float *
logits_of(const char *path, uint64_t *n)
{
	Build b = {path, DT_BF16, FUSE_ALL};
	ingot_model *m = model_of(&b, 2);
	uint32_t ids[IDS];
	float *logits;

	make_ids(ids, IDS, vocab_of(m), 11);
	logits = run_cut(m, ids, IDS, 0);
	*n = (uint64_t)IDS * vocab_of(m);
	ingot_model_close(m);
	return logits;
}

/* The logits of both files, which have as many. */
static uint64_t
both(const Line *l, float **got, float **want)
{
	uint64_t n_got, n_want;

	assert_int_equal(l->n, 3);
	*got = logits_of(l->path, &n_got);
	*want = logits_of(l->field[2], &n_want);
	assert_int_equal(n_got, n_want);
	return n_got;
}

static void
check_equal(const Line *l)
{
	float *got, *want;
	uint64_t n = both(l, &got, &want);

	same_bits(got, want, IDS, n / IDS, "%s", l->path);
	free(got);
	free(want);
}

static void
check_twice(const Line *l)
{
	float *got, *want;
	uint64_t i, n = both(l, &got, &want);

	for (i = 0; i < n; i++)
		want[i] *= 2;
	same_bits(got, want, IDS, n / IDS, "%s", l->path);
	free(got);
	free(want);
}

static void
check_differs(const Line *l)
{
	float *got, *want;
	uint64_t n = both(l, &got, &want);

	if (!(nmse(got, want, n) > 1e-4))
		fail_msg("%s gives the logits of %s", l->path, l->field[2]);
	free(got);
	free(want);
}

static void
check_refuse(const Line *l)
{
	Build b = {l->path, DT_BF16, FUSE_ALL};
	char why[WHY_TEXT];
	int i;

	if (plan_try(&b, why))
		fail_msg("%s was compiled", l->path);
	print_message("%s\n", why);
	assert_true(l->n > 2);
	for (i = 2; i < l->n; i++)
		if (!strstr(why, l->field[i]))
			fail_msg("%s: '%s' is not in: %s", l->path, l->field[i],
			    why);
}

/* ---- ids of a text ---- */

/* The text of a JSON string. */
static const Value *
parse_text(Pool *pool, const char *json)
{
	char object[512];
	const Value *v;
	Error e;
	int n = snprintf(object, sizeof object, "{\"text\":%s}", json);

	if (json_read(pool, "cases.tsv", object, (size_t)n, &v, &e))
		fail_msg("%s", e.text);
	return value_get(v, "text");
}

static void
check_ids(const Line *l)
{
	Pool pool = {0};
	ingot_tokenizer *t;
	uint32_t ids[64];
	size_t n = 0, i;
	char got[512] = "";
	const Value *text;
	Error e;

	assert_int_equal(l->n, 4);
	text = parse_text(&pool, l->field[3]);
	if (ingot_tokenizer_open(l->path, &t, &e) ||
	    ingot_encode(t, text->u.string.text, text->u.string.length, 0, ids,
		64, &n, &e))
		fail_msg("%s: %s", l->path, e.text);
	assert_in_range(n, 1, 64);
	for (i = 0; i < n; i++)
		sprintf(got + strlen(got), "%s%u", i ? "," : "", ids[i]);
	if (strcmp(got, l->field[2]) != 0)
		fail_msg(
		    "%s: the ids are %s, not %s", l->path, got, l->field[2]);
	ingot_tokenizer_close(t);
	pool_free(&pool);
}

/* ---- cases.tsv ---- */

static void
check_line(const Line *l)
{
	static const struct {
		const char *verb;
		void (*check)(const Line *l);
	} verbs[] = {{"equal", check_equal}, {"twice", check_twice},
	    {"differs", check_differs}, {"refuse", check_refuse},
	    {"ids", check_ids}};
	size_t i;

	assert_true(l->n > 2);
	for (i = 0; i < sizeof verbs / sizeof verbs[0]; i++)
		if (strcmp(l->field[1], verbs[i].verb) == 0) {
			verbs[i].check(l);
			return;
		}
	fail_msg("%s: there is no verb '%s'", l->path, l->field[1]);
}

static void
split(char *text, Line *l)
{
	l->n = 0;
	while (l->n < MAX_FIELDS) {
		l->field[l->n++] = text;
		text = strchr(text, '\t');
		if (!text)
			break;
		*text++ = '\0';
	}
	snprintf(l->path, sizeof l->path, DIR "%s", l->field[0]);
}

/* All lines whose file name starts with the state. */
static void
test_lines(void **state)
{
	const char *prefix = *state;
	FILE *in = fopen(DIR "cases.tsv", "r");
	char text[1024];
	Line l;
	int n = 0;

	assert_non_null(in);
	while (fgets(text, sizeof text, in)) {
		text[strcspn(text, "\n")] = '\0';
		if (strncmp(text, prefix, strlen(prefix)) != 0)
			continue;
		split(text, &l);
		check_line(&l);
		n++;
	}
	fclose(in);
	assert_true(n > 0);
}

/* ---- D10 ---- */

enum { LONG = 131, MORE = 8 };

static void
check_cuts(ingot_model *m, const uint32_t *ids, const float *want,
    const uint32_t *chunks, size_t n, const char *device)
{
	size_t i;

	for (i = 0; i < n; i++) {
		float *got = run_cut(m, ids, LONG, chunks[i]);

		same_bits(got, want, LONG, vocab_of(m), "%s, chunks of %u",
		    device, chunks[i]);
		free(got);
	}
}

static void
test_cuts(void **state)
{
	static const uint32_t all[] = {
	    0, 1, 2, 3, 4, 5, 31, 32, 33, 63, 64, 65, 127, 130};
	static const uint32_t some[] = {2, 5, 64};
	Build b = {*state, DT_BF16, FUSE_ALL};
	ingot_model *m = model_of(&b, 2), *oracle = model_of(&b, ORACLE);
	uint32_t ids[LONG];
	float *want;

	make_ids(ids, LONG, vocab_of(m), 5);
	want = run_cut(oracle, ids, LONG, 0);
	check_cuts(m, ids, want, all, sizeof all / sizeof all[0], "cpu");
	check_cuts(
	    oracle, ids, want, some, sizeof some / sizeof some[0], "oracle");
	free(want);
	ingot_model_close(m);
	ingot_model_close(oracle);
}

/* Prompts of n ids, then greedy tokens one at a time, against all at once. */
static void
test_short(void **state)
{
	Build b = {*state, DT_BF16, FUSE_ALL};
	ingot_model *m = model_of(&b, 2), *oracle = model_of(&b, ORACLE);
	uint32_t n, ids[3 + MORE];

	for (n = 1; n <= 3; n++) {
		Prompt p = {ids, n + MORE, n, 1, 0};
		float *got, *want;

		make_ids(ids, n, vocab_of(m), n);
		run_greedy(m, ids, n, n + MORE);
		got = run_prompts(m, &p, 1);
		want = run_cut(oracle, ids, n + MORE, 0);
		same_bits(got, want, n + MORE, vocab_of(m),
		    "%s, %u ids and %d more", b.path, n, MORE);
		free(got);
		free(want);
	}
	ingot_model_close(m);
	ingot_model_close(oracle);
}

#define QWEN35 "tests/fixtures/qwen35-tiny/model-bf16.gguf"
#define QWEN35MOE "tests/fixtures/qwen35moe-tiny/model-bf16.gguf"

int
main(void)
{
#define LINES(what, prefix)                                                    \
	{                                                                      \
		what, test_lines, NULL, NULL, prefix                           \
	}
	static const struct CMUnitTest tests[] = {
	    LINES("D1: the dialect of another exporter", "d1-"),
	    LINES("D2: a predictor, stored or alone", "d2-"),
	    LINES("D5: combining marks", "d5-"),
	    {"D10: cuts, qwen35", test_cuts, NULL, NULL, QWEN35},
	    {"D10: cuts, qwen35moe", test_cuts, NULL, NULL, QWEN35MOE},
	    {"D10: short prompts, qwen35", test_short, NULL, NULL, QWEN35},
	    {"D10: short prompts, qwen35moe", test_short, NULL, NULL,
		QWEN35MOE},
	    LINES("D11: a router with and without renormalisation", "d11-"),
	    LINES("D12: names and layouts of a folder", "d12-"),
	    LINES("D13: keys that change the maths", "d13-"),
	};

	return cmocka_run_group_tests_name("cases", tests, NULL, plans_close);
}
