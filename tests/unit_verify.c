/* What ingot verify finds: nothing in a plan as compiled; in one with a fault
 * put in, the launches that have it and no others. Run in the repository's
 * root. */
#include <math.h>
#include <unistd.h>

#include "../compiler/cli.h"
#include "plan_sign.h"

#include "models.h"

#include "../compiler/verify.h"
#include "../numerics/quant.h"
#include "../runtime/model.h"

#define TINY "tests/fixtures/qwen3-tiny/model-bf16.gguf"
#define DEMO "models/demo/kjv-moe-9m-Q4_K_M.gguf"

enum { IDS = 20, CHUNK = 14 };

/* A plan whose tables may be changed before it is bound, and a model whose
 * weights may be before it runs. */
typedef struct Trial {
	ingot_plan *plan;
	ingot_model *device;
	Verify *verify;
	const char *path;
} Trial;

static void
ok(ingot_status status, const Error *e)
{
	if (status)
		fail_msg("%s", e->text);
}

static size_t
plan_bytes(const ingot_plan *p)
{
	const PlanHeader *h = p->copy;

	return (size_t)h->file_bytes;
}

/* A copy of the plan, which is compiled once. */
static Trial
trial_open(const char *path, uint32_t rules)
{
	Build b = {path, DT_BF16, rules};
	const ingot_plan *made = plan_of(&b);
	Trial t = {NULL, NULL, NULL, path};
	Error e;

	ok(ingot_plan_read(made->copy, plan_bytes(made), &t.plan, &e), &e);
	return t;
}

static void
bind(Trial *t)
{
	Error e;

	ok(ingot_model_open(t->plan, t->path, NULL, &t->device, &e), &e);
}

static uint32_t
n_launches(const Trial *t)
{
	return t->plan->targets[0].n_launches;
}

static const PlanLaunch *
launch_at(const Trial *t, uint32_t i)
{
	return &t->plan->launches[t->plan->targets[0].first_launch + i];
}

static const char *
name_at(const Trial *t, uint32_t i)
{
	const Plan *p = t->plan;

	return plan_string(p, p->regions[launch_at(t, i)->region].name);
}

/* The launch number n, from 0, whose region's name starts so. */
static uint32_t
find_launch(const Trial *t, const char *start, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n_launches(t); i++)
		if (strncmp(name_at(t, i), start, strlen(start)) == 0 &&
		    n-- == 0)
			return i;
	fail_msg("there is no launch of %s", start);
	return 0;
}

/* Argument number n of a kind; written to, because the plan is a copy. */
static PlanArg *
find_arg(const Trial *t, uint32_t launch, uint32_t kind, uint32_t n)
{
	const PlanLaunch *l = launch_at(t, launch);
	uint32_t i;

	for (i = 0; i < l->n_args; i++) {
		const PlanArg *a = &t->plan->args[l->first_arg + i];

		if (a->kind == kind && n-- == 0)
			return (PlanArg *)a;
	}
	fail_msg("%s has no such argument", name_at(t, launch));
	return NULL;
}

/* Both sessions in step, a chunk and then single tokens. */
static void
run_both(Trial *t)
{
	NodeWatch *nodes = verify_oracle_watch(t->verify);
	BackendFactory factory = oracle_factory_nodes(nodes);
	ingot_session_options so = {
	    .size = sizeof so, .ctx = IDS, .max_rows = CHUNK};
	ingot_session *s[2];
	ingot_model *m[2] = {NULL, t->device};
	uint32_t ids[IDS], at, n, k;
	Error e;

	ok(model_open_custom(t->plan, t->path, &factory, NULL, &m[0], &e), &e);
	model_watch(t->device, verify_launch_watch(t->verify));
	make_ids(ids, IDS, vocab_of(m[0]) - 8, 3);
	for (k = 0; k < 2; k++) {
		ok(ingot_session_open(m[k], &so, &s[k], &e), &e);
		ok(ingot_seq_add(s[k], &n, &e), &e);
	}
	for (at = 0; at < IDS; at += n) {
		ingot_work work = {
		    0, at == 0 ? CHUNK : 1, ids + at, INGOT_WANT_ALL};

		n = work.count;
		for (k = 0; k < 2; k++)
			ok(ingot_step(s[k], &work, 1, &e), &e);
	}
	for (k = 0; k < 2; k++)
		ingot_session_close(s[k]);
	ingot_model_close(m[0]);
}

/* Runs, checks that the launches of wrong, ended by UINT32_MAX, have this
 * verdict and all others are equal, and closes. */
static void
expect(Trial *t, const uint32_t *wrong, Verdict verdict)
{
	Error e;
	uint32_t i, k;

	ok(verify_new(t->plan, 0, &t->verify, &e), &e);
	if (!t->device)
		bind(t);
	run_both(t);
	for (i = 0; i < n_launches(t); i++) {
		Judgement j = verify_judge(t->verify, i);
		Verdict want = VERDICT_EQUAL;

		for (k = 0; wrong[k] != UINT32_MAX; k++)
			if (wrong[k] == i)
				want = verdict;
		if (j.verdict != want)
			fail_msg("launch %u, %s: verdict %d, not %d", i,
			    name_at(t, i), (int)j.verdict, (int)want);
		assert_true(
		    (difference_nmse(j.worst) > 0) == (want != VERDICT_EQUAL));
	}
	ingot_model_close(t->device);
	ingot_plan_close(t->plan);
	verify_free(t->verify);
}

/* ---- plans as compiled ---- */

static void
test_equal(void **state)
{
	static const char *const paths[] = {TINY, DEMO, TINY};
	static const uint32_t none[] = {UINT32_MAX};
	size_t i;

	(void)state;
	for (i = 0; i < 3; i++) {
		Trial t = trial_open(paths[i], i == 2 ? 0 : FUSE_ALL);

		assert_true(n_launches(&t) > 10);
		expect(&t, none, VERDICT_DIFFERS);
	}
}

/* ---- plans with a fault ---- */

static void
swap(PlanArg *a, PlanArg *b)
{
	PlanArg c = *a;

	*a = *b;
	*b = c;
}

/* Gate and up, or the norms of queries and keys, taken for each other. */
static void
test_swapped_weights(void **state)
{
	static const struct {
		const char *path, *region;
	} cases[] = {
	    {DEMO, "experts_q4_k_256x256_silu"}, {TINY, "qk_norm_rope_cache"}};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		Trial t = trial_open(cases[i].path, FUSE_ALL);
		uint32_t at = find_launch(&t, cases[i].region, 0);
		uint32_t wrong[] = {at, UINT32_MAX};

		swap(find_arg(&t, at, ARG_WEIGHT, 0),
		    find_arg(&t, at, ARG_WEIGHT, 1));
		expect(&t, wrong, VERDICT_DIFFERS);
	}
}

/* A launch that makes nothing but cache entries writes all of them to one
 * place; in later steps that is one that the attention reads. */
static void
test_cache(void **state)
{
	Trial t = trial_open(TINY, 0);
	uint32_t at = find_launch(&t, "append", 1), k;
	uint32_t wrong[] = {at, find_launch(&t, "attention", 0), UINT32_MAX};

	(void)state;
	for (k = 0; find_arg(&t, at, ARG_INPUT, k)->index != IN_POSITIONS; k++)
		;
	find_arg(&t, at, ARG_INPUT, k)->index = IN_ROW_SLOT;
	expect(&t, wrong, VERDICT_DIFFERS);
}

/* Two layers share a recurrent state: the first is right until the second has
 * written to it. */
static void
test_recurrent(void **state)
{
	Trial t = trial_open(DEMO, FUSE_ALL);
	uint32_t a = find_launch(&t, "delta", 0),
		 b = find_launch(&t, "delta", 1);
	uint32_t wrong[] = {a, b, UINT32_MAX};

	(void)state;
	*find_arg(&t, b, ARG_STATE, 0) = *find_arg(&t, a, ARG_STATE, 0);
	expect(&t, wrong, VERDICT_DIFFERS);
}

/* Flips bit of the last element of the weight of launch's first argument. */
static void
flip(Trial *t, uint32_t launch, unsigned char bit)
{
	uint32_t w = find_arg(t, launch, ARG_WEIGHT, 0)->index;

	bind(t);
	((unsigned char *)
		t->device->weights.data[w])[t->device->weights.bytes[w] - 2] ^=
	    bit;
}

/* The last row of the table is no token's here, so the head alone sees it. */
static void
test_logits(void **state)
{
	Trial t = trial_open(TINY, FUSE_ALL);
	uint32_t wrong[] = {n_launches(&t) - 1, UINT32_MAX};

	(void)state;
	flip(&t, wrong[0], 1 << 6);
	expect(&t, wrong, VERDICT_DIFFERS);
}

/* The last bit of one weight is within what free order may do. */
static void
test_fast(void **state)
{
	int fast;

	(void)state;
	for (fast = 0; fast < 2; fast++) {
		Trial t = trial_open(TINY, FUSE_ALL);
		uint32_t wrong[] = {n_launches(&t) - 1, UINT32_MAX};

		if (fast)
			memcpy(
			    (char *)plan_string(t.plan, t.plan->meta->numerics),
			    "fast", sizeof "fast");
		flip(&t, wrong[0], 1);
		expect(&t, wrong, fast ? VERDICT_WITHIN : VERDICT_DIFFERS);
	}
}

/* ---- the command ---- */

/* The plan of t, as changed, in a file; path ends in XXXXXX. */
static void
write_plan(const Trial *t, char *path)
{
	unsigned char *bytes = t->plan->copy;
	size_t n = plan_bytes(t->plan);
	int out = mkstemp(path);

	assert_true(out >= 0);
	plan_sign(bytes, n);
	assert_int_equal(write(out, bytes, n), n);
	close(out);
}

static void
test_command(void **state)
{
	int wrong;

	(void)state;
	for (wrong = 0; wrong < 2; wrong++) {
		char path[] = "/tmp/unit_verify.XXXXXX";
		Options o = {.command = CMD_VERIFY,
		    .operand = {path},
		    .operands = 1,
		    .weights = TINY,
		    .device = "cpu"};
		Trial t = trial_open(TINY, FUSE_ALL);
		uint32_t at = find_launch(&t, "qk_norm_rope_cache", 0);

		if (wrong)
			swap(find_arg(&t, at, ARG_WEIGHT, 0),
			    find_arg(&t, at, ARG_WEIGHT, 1));
		write_plan(&t, path);
		ingot_plan_close(t.plan);
		assert_int_equal(
		    cmd_verify(&o), wrong ? EXIT_DIFFERS : EXIT_DONE);
		unlink(path);
	}
}

/* ---- plans that are refused ---- */

static void
test_refused(void **state)
{
	Trial t = trial_open(TINY, FUSE_ALL);
	PlanBuffer *b =
	    (PlanBuffer *)&t.plan->buffers[t.plan->targets[0].first_buffer];
	uint32_t node = b->node;
	Error e;

	(void)state;
	b->node = UINT32_MAX;
	assert_int_equal(verify_new(t.plan, 0, &t.verify, &e), INGOT_BAD_FILE);
	assert_non_null(strstr(e.text, "buffer 0"));
	b->node = 0; /* a leaf of another shape */
	assert_int_equal(verify_new(t.plan, 0, &t.verify, &e), INGOT_BAD_FILE);
	b->node = node;
	b->row_bytes = 1;
	assert_int_equal(verify_new(t.plan, 0, &t.verify, &e), INGOT_BAD_FILE);
	ingot_plan_close(t.plan);
}

/* ---- differences ---- */

static void
test_floats(void **state)
{
	static const float got[] = {1, -0.0f, 3, 6}, want[] = {1, 0, 3, 4};
	static const float nan[] = {NAN};
	Difference d = {0};

	(void)state;
	difference_add(&d, DT_F32, got, want, 2);
	assert_int_equal(d.wrong, 1); /* -0 is not +0 */
	assert_true(difference_nmse(&d) == 0 && d.max_abs == 0);
	assert_int_equal(d.worst, 1);
	difference_add(&d, DT_F32, got + 2, want + 2, 2);
	assert_int_equal(d.count, 4);
	assert_int_equal(d.wrong, 2);
	assert_true(difference_nmse(&d) == 4.0 / 26.0 && d.max_abs == 2);
	assert_true(d.worst == 3 && d.got == 6 && d.want == 4);
	difference_add(&d, DT_F32, nan, want, 1);
	assert_true(isinf(difference_nmse(&d)) && isinf(d.max_abs));
	assert_int_equal(d.worst, 4);
	d = (Difference){0};
	difference_add(&d, DT_F32, nan, nan, 1);
	assert_int_equal(d.wrong, 0);
	d = (Difference){0};
	difference_add(&d, DT_F32, got, want + 1, 1); /* 1 for 0 */
	assert_true(isinf(difference_nmse(&d)) && d.max_abs == 1);
}

static void
test_other_types(void **state)
{
	static const uint16_t got[] = {0x3F80, 0x4000},
			      want[] = {0x3F80, 0xC000};
	static const int32_t ids[] = {7, 3}, ids2[] = {7, 5};
	Difference d = {0};
	Q8A a = {.s = 0.5f, .q = {2, 4}}, b = a;

	(void)state;
	difference_add(&d, DT_BF16, got, want, 2);
	assert_true(d.wrong == 1 && d.got == 2 && d.want == -2);
	d = (Difference){0};
	difference_add(&d, DT_I32, ids, ids2, 2);
	assert_true(d.wrong == 1 && d.max_abs == 2);
	d = (Difference){0};
	difference_add(&d, DT_Q8A, &a, &b, 32);
	assert_true(d.count == 32 && d.wrong == 0 && d.power == 5);
	b.h = 1; /* no value, but a byte of the block */
	difference_add(&d, DT_Q8A, &a, &b, 32);
	assert_true(d.wrong == 32 && difference_nmse(&d) == 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_equal),
	    cmocka_unit_test(test_swapped_weights),
	    cmocka_unit_test(test_cache),
	    cmocka_unit_test(test_recurrent),
	    cmocka_unit_test(test_logits),
	    cmocka_unit_test(test_fast),
	    cmocka_unit_test(test_command),
	    cmocka_unit_test(test_refused),
	    cmocka_unit_test(test_floats),
	    cmocka_unit_test(test_other_types),
	};

	return cmocka_run_group_tests(tests, NULL, plans_close);
}
