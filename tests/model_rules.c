/* Each fusion rule alone: fewer launches, the same bits. */
#include "models.h"

enum { IDS = 20 };

/* Every rule of lower/fuse.def and a model that it applies to. */
#define MIXED "build/fixtures/quants/qwen35moe-q4_k_m.gguf"
#define DENSE "build/fixtures/quants/qwen3-q4_k_m.gguf"
#define FLOAT "tests/fixtures/qwen35-mixed"

typedef struct Case {
	const char *rule;
	const char *paths[4];
} Case;

static Case cases[] = {
    {"add_norm_quantise", {MIXED, DENSE}},
    {"point_chain", {MIXED, FLOAT}},
    {"combine_gate", {MIXED}},
    {"qk_norm_rope_cache", {MIXED, DENSE, FLOAT}},
    {"route", {MIXED}},
    {"gate_up_silu", {MIXED, DENSE, FLOAT}},
    {"conv_silu_l2norm", {MIXED, FLOAT}},
    {"gated_norm_quantise", {MIXED, FLOAT}},
    {"delta_gates", {MIXED, FLOAT}},
    {"gate_quantise", {MIXED, FLOAT}},
    {"segments", {MIXED, DENSE, FLOAT}},
};

enum { COUNT = sizeof cases / sizeof cases[0] };

static float *
run(const Build *b, uint32_t chunk)
{
	ingot_model *m = model_of(b, 1);
	uint32_t ids[IDS];
	float *logits;

	make_ids(ids, IDS, vocab_of(m), 3);
	logits = run_cut(m, ids, IDS, chunk);
	ingot_model_close(m);
	return logits;
}

static void
check_rule(const char *path, const char *rule)
{
	Build none = {path, DT_BF16, 0}, one = {path, DT_BF16, fuse_bit(rule)};
	uint64_t before = plan_of(&none)->n_launches;
	uint64_t after = plan_of(&one)->n_launches;
	float *want = run(&none, 0), *got;
	uint32_t chunk;

	if (after >= before)
		fail_msg("%s: %s makes %llu launches of %llu", path, rule,
		    (unsigned long long)after, (unsigned long long)before);
	for (chunk = 0; chunk <= 6; chunk += 3) {
		got = run(&one, chunk);
		same_bits(got, want, IDS, plan_of(&one)->meta->vocab,
		    "%s, %s alone, chunks of %u", path, rule, chunk);
		free(got);
	}
	free(want);
}

static void
test_rule(void **state)
{
	const Case *c = *state;
	size_t i;

	assert_int_not_equal(fuse_bit(c->rule), 0);
	for (i = 0; c->paths[i]; i++)
		check_rule(c->paths[i], c->rule);
}

static void
test_table(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; fuse_rules[i]; i++)
		;
	assert_int_equal(i, COUNT);
}

int
main(void)
{
	static struct CMUnitTest tests[COUNT + 1];
	size_t i;

	for (i = 0; i < COUNT; i++)
		tests[i] = (struct CMUnitTest){
		    cases[i].rule, test_rule, NULL, NULL, &cases[i]};
	tests[i] = (struct CMUnitTest){
	    "every rule has a case", test_table, NULL, NULL, NULL};
	return cmocka_run_group_tests_name("rules", tests, NULL, plans_close);
}
