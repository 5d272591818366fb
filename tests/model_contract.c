/* Kernels that a compiler was allowed to contract have other bits than the
 * oracle: so a test that compares the two would see it. Needs build/fixtures.
 */
#include "../codegen/toolchain.h"
#include "models.h"

enum { IDS = 24 };

/* The plan's logits in one step on the CPU. */
static float *
run_plan(ingot_plan *plan, const char *path, const uint32_t *ids)
{
	ingot_model_options o = {
	    .size = sizeof o, .device = "cpu", .threads = 1};
	ingot_model *m;
	float *logits;
	Error e;

	if (ingot_model_open(plan, path, &o, &m, &e))
		fail_msg("%s", e.text);
	logits = run_cut(m, ids, IDS, 0);
	ingot_model_close(m);
	return logits;
}

/* The same with the plan's source compiled anew behind a line of text. */
static float *
run_behind(const char *line, const ingot_plan *plan, const char *path,
    const uint32_t *ids)
{
	PlanTarget target = plan->targets[0];
	size_t n = strlen(line), length = n + (size_t)target.source_bytes;
	Arena *a = arena_new();
	char *text = arena_alloc(a, length), why[TOOL_WHY];
	ingot_plan other = *plan;
	float *logits;
	ToolJob job = {a, target_by_name("cpu"), text, length, "/tmp"};
	ToolResult o;

	memcpy(text, line, n);
	memcpy(text + n, plan->sources + target.source,
	    (size_t)target.source_bytes);
	if (!tool_compile(&tools[TOOL_CLANG_CPU], &job, &o, why))
		fail_msg("%s", why);
	target.object = 0;
	target.object_bytes = o.length;
	other.targets = &target;
	other.objects = (const char *)o.bytes;
	logits = run_plan(&other, path, ids);
	arena_free(a);
	return logits;
}

static void
test_contraction(void **state)
{
	const char *path = *state;
	Build b = {path, DT_BF16, FUSE_ALL};
	ingot_model *oracle = model_of(&b, ORACLE);
	uint32_t ids[IDS], vocab = vocab_of(oracle), i, differ = 0;
	float *want, *same, *got;

	make_ids(ids, IDS, vocab, 5);
	want = run_cut(oracle, ids, IDS, 0);
	ingot_model_close(oracle);
	same = run_behind("\n", plan_of(&b), path, ids);
	same_bits(same, want, IDS, vocab, "%s, compiled again", path);
	got = run_behind(
	    "#pragma clang fp contract(fast)\n", plan_of(&b), path, ids);
	for (i = 0; i < IDS * vocab; i++)
		differ += memcmp(&got[i], &want[i], sizeof *got) != 0;
	print_message("%s: %u of %u logits differ, NMSE %.1e\n", path, differ,
	    IDS * vocab, nmse(got, want, IDS * vocab));
	assert_true(differ > 0);
	free(want);
	free(same);
	free(got);
}

/* Rows whose length is no power of two: elsewhere the product in a norm's
 * ss*(1/n) + eps is exact, and contraction changes nothing. */
static const char *const paths[] = {
    "tests/fixtures/qwen3-h72",
    "tests/fixtures/qwen3moe-plain",
    "tests/fixtures/qwen35moe-mixed",
    "build/fixtures/quants/qwen35moe-h96-q4_0.gguf",
};

int
main(void)
{
	enum { COUNT = sizeof paths / sizeof paths[0] };
	struct CMUnitTest tests[COUNT];
	size_t i;

	for (i = 0; i < COUNT; i++)
		tests[i] = (struct CMUnitTest){
		    paths[i], test_contraction, NULL, NULL, (void *)paths[i]};
	return cmocka_run_group_tests_name(
	    "contraction", tests, NULL, plans_close);
}
