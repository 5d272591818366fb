/* What a session is said to take is what it takes: sizes from a plan without
 * code against the memory that the runtime maps. Run in the repository's
 * root. */
#include <sys/mman.h>

#include "models.h"

#include "../runtime/footprint.h"

#define TINY(name) "tests/fixtures/" name "-tiny/model-bf16.gguf"

static const char *const paths[] = {
    TINY("qwen3"), TINY("qwen35"), "models/demo/kjv-moe-9m-Q4_K_M.gguf"};

enum { PATHS = sizeof paths / sizeof paths[0] };

/* ---- what the runtime maps ---- */

void *__real_mmap(void *, size_t, int, int, int, off_t);
void *__wrap_mmap(void *, size_t, int, int, int, off_t);

static uint64_t mapped;

void *
__wrap_mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset)
{
	mapped += n;
	return __real_mmap(at, n, prot, flags, fd, offset);
}

/* ---- plans that are only looked at ---- */

static void
no_missing(void *user, const Node *op, const char *why)
{
	(void)user;
	fail_msg("%s: %s", ops[op->op].name, why);
}

static ingot_plan *
plan_without_code(const char *path)
{
	CompileOptions o = compile_defaults();
	ingot_plan *p;
	Checkpoint *c;
	Diag d = {0};
	Error e;
	void *bytes;
	size_t length;

	o.missing = no_missing;
	if (ckpt_open(path, true, &c, &e))
		fail_msg("%s", e.text);
	if (setjmp(d.jump))
		fail_msg("%s", d.text);
	compile_plan(c, &o, &d, &bytes, &length);
	ckpt_close(c);
	if (ingot_plan_read(bytes, length, &p, &e))
		fail_msg("%s", e.text);
	free(bytes);
	return p;
}

static Footprint
footprint_of(const ingot_plan *p, const ingot_session_options *o)
{
	BackendLimits l = {0};
	Error e;

	if (session_limits(p->meta, o, &l, &e))
		fail_msg("%s", e.text);
	return footprint(p, p->targets, &l);
}

/* ---- tests ---- */

static void
test_sessions(void **state)
{
	static const ingot_session_options shapes[] = {
	    {.size = sizeof shapes[0]}, {sizeof shapes[0], 1, 1, 0},
	    {sizeof shapes[0], 65, 3, 0}, {sizeof shapes[0], 9000, 2, 512}};
	size_t i, k;

	(void)state;
	for (i = 0; i < PATHS; i++) {
		Build b = {paths[i], DT_BF16, FUSE_ALL};
		ingot_plan *p = plan_without_code(paths[i]);
		ingot_model *m = model_of(&b, 1);

		for (k = 0; k < sizeof shapes / sizeof shapes[0]; k++) {
			Footprint f = footprint_of(p, &shapes[k]);
			ingot_session *s;
			Error e;

			mapped = 0;
			if (ingot_session_open(m, &shapes[k], &s, &e))
				fail_msg("%s", e.text);
			assert_true(f.kv > 0 && f.scratch > 0);
			assert_int_equal(mapped, f.kv + f.state + f.scratch);
			assert_int_equal(f.total, mapped + f.weights);
			ingot_session_close(s);
		}
		assert_int_equal(ingot_model_get_info(m).weight_bytes,
		    footprint_of(p, &shapes[0]).weights);
		ingot_model_close(m);
		ingot_plan_close(p);
	}
}

/* All tables but those about code are the same. */
static void
test_plans(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < PATHS; i++) {
		Build b = {paths[i], DT_BF16, FUSE_ALL};
		const ingot_plan *whole = plan_of(&b);
		ingot_plan *p = plan_without_code(paths[i]);

		assert_int_equal(p->targets->object_bytes, 0);
		assert_true(whole->targets->object_bytes > 0);
		assert_int_equal(p->n_launches, whole->n_launches);
		assert_memory_equal(p->launches, whole->launches,
		    p->n_launches * sizeof *p->launches);
		assert_int_equal(p->n_sources, whole->n_sources);
		assert_memory_equal(p->sources, whole->sources, p->n_sources);
		ingot_plan_close(p);
	}
}

/* qwen35-tiny by hand: 4 layers, 1 of which has 2 heads of 64 in its cache. */
static void
test_by_hand(void **state)
{
	ingot_session_options o = {sizeof o, 100, 3, 0};
	ingot_plan *p = plan_without_code(TINY("qwen35"));
	Footprint f = footprint_of(p, &o);
	BackendLimits l = {0};

	(void)state;
	assert_int_equal(f.kv, 3 * 128 * (2 * 2 * 64) * 2);
	assert_int_equal(f.state, 3 * 3 * (4 * 64 * 64 + 4 * 512) * 4);
	assert_int_equal(session_limits(p->meta, &o, &l, NULL), INGOT_OK);
	assert_int_equal(l.max_rows, 3);
	assert_int_equal(l.n_pages, 6);
	assert_int_equal(logits_bytes(p->meta, &l), 3 * 512 * 4);
	assert_int_equal(input_bytes(IN_SEQS, &l), 3 * 4 * 4);
	assert_int_equal(table_bytes(p->tables, &l), 100 * 16 * 4);
	ingot_plan_close(p);
}

static void
test_limits(void **state)
{
	PlanMeta meta = {.vocab = 8, .ctx = 1u << 21, .max_chunk = 4};
	PlanTarget target = {.n_packs = 0};
	PlanState slot = {.kind = STATE_SLOT, .bytes = 1ull << 62};
	Plan p = {
	    .meta = &meta, .targets = &target, .states = &slot, .n_states = 1};
	ingot_session_options o = {sizeof o, 1u << 21, 1, 0};
	BackendLimits l = {0};
	Error e;

	(void)state;
	assert_int_equal(session_limits(&meta, &o, &l, &e), INGOT_OK);
	o.ctx++;
	assert_int_equal(session_limits(&meta, &o, &l, &e), INGOT_BAD_ARG);
	o = (ingot_session_options){sizeof o, 1u << 20, 1u << 16, 0};
	assert_int_equal(session_limits(&meta, &o, &l, &e), INGOT_OK);
	assert_int_equal(l.max_rows, 4);
	assert_true(footprint(&p, &target, &l).state == UINT64_MAX);
	assert_true(footprint(&p, &target, &l).total == UINT64_MAX);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_sessions),
	    cmocka_unit_test(test_plans),
	    cmocka_unit_test(test_by_hand),
	    cmocka_unit_test(test_limits),
	};

	return cmocka_run_group_tests(tests, NULL, plans_close);
}
