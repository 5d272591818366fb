/* Whole models in the quantised forms of the field, whose tensors have types
 * of their own: the CPU has the oracle's bits, fused or not, however a prompt
 * is cut, and in steps of 1 to 17 rows. */
#include "models.h"

enum { IDS = 45 };

typedef struct Case {
	const char *path;
	bool unfused; /* try that too */
} Case;

/* The first sequence of a staircase: one more joins in each step, each brings
 * a token a step, and all end in the same one. */
enum { STAIRS = 17 };

static void
check_cpu(const Build *b, uint32_t threads, uint32_t chunk, const uint32_t *ids,
    const float *want)
{
	ingot_model *m = model_of(b, threads);
	float *got = run_cut(m, ids, IDS, chunk);

	same_bits(got, want, IDS, vocab_of(m),
	    "%s, rules %x, %u threads, chunks of %u", b->path, b->rules,
	    threads, chunk);
	free(got);
	ingot_model_close(m);
}

static void
test_cuts(void **state)
{
	const Case *c = *state;
	Build b = {c->path, DT_BF16, FUSE_ALL};
	ingot_model *oracle = model_of(&b, ORACLE);
	uint32_t ids[IDS];
	float *want;

	make_ids(ids, IDS, vocab_of(oracle), 7);
	want = run_cut(oracle, ids, IDS, 0);
	ingot_model_close(oracle);
	check_cpu(&b, 2, 0, ids, want);
	check_cpu(&b, 1, 1, ids, want);
	check_cpu(&b, 1, 7, ids, want);
	if (c->unfused) {
		b.rules = 0;
		check_cpu(&b, 1, 0, ids, want);
		check_cpu(&b, 2, 3, ids, want);
	}
	free(want);
}

/* Each sequence of the staircase against itself alone in one chunk, which
 * test_cuts has shown to be right. */
static void
test_steps(void **state)
{
	const Case *c = *state;
	Build b = {c->path, DT_BF16, FUSE_ALL};
	ingot_model *m = model_of(&b, 1);
	uint32_t ids[STAIRS][STAIRS + 1], i;
	Prompt p[STAIRS];
	float *got, *at;

	for (i = 0; i < STAIRS; i++) {
		make_ids(ids[i], STAIRS + 1, vocab_of(m), i);
		p[i] = (Prompt){ids[i], STAIRS + 1 - i, 0, 1, i};
	}
	at = got = run_prompts(m, p, STAIRS);
	for (i = 0; i < STAIRS; i++) {
		float *want = run_cut(m, ids[i], p[i].n, 0);

		same_bits(at, want, p[i].n, vocab_of(m),
		    "%s, sequence %u of %d", c->path, i, STAIRS);
		at += (uint64_t)p[i].n * vocab_of(m);
		free(want);
	}
	free(got);
	ingot_model_close(m);
}

#define QUANT(model, form, unfused)                                            \
	{                                                                      \
		"build/fixtures/quants/" model "-" form ".gguf", unfused       \
	}
#define MODELS(form, unfused)                                                  \
	QUANT("qwen3", form, unfused), QUANT("qwen3moe", form, unfused),       \
	    QUANT("qwen35", form, unfused), QUANT("qwen35moe", form, unfused)

static Case cases[] = {
    MODELS("q8_0", true),
    MODELS("q4_0", true),
    MODELS("q5_0", true),
    MODELS("q4_k_m", true),
    MODELS("q5_k_m", true),
    MODELS("q6_k", true),
    MODELS("q4_1", false),
    MODELS("q5_1", false),
    MODELS("q2_k", false),
    MODELS("q3_k_m", false),
    MODELS("iq4_nl", false),
    MODELS("iq4_xs", false),
    /* floats, alone and beside quantised rows */
    QUANT("qwen3moe", "f16", true),
    QUANT("qwen3moe", "f32", false),
    QUANT("qwen35", "f16", false),
    QUANT("qwen35", "f32", true),
    QUANT("qwen3-h72", "q4_0", false),
    QUANT("qwen3-h72", "q4_k_m", true),
    QUANT("qwen35-every3", "q4_0", false),
    QUANT("qwen35-every3", "q4_k_m", true),
    QUANT("qwen35moe-mixed", "q4_0", true),
    QUANT("qwen35moe-mixed", "q4_k_m", false),
    QUANT("qwen35moe-h96", "q4_0", false),
    QUANT("qwen35moe-h96", "q4_k_m", true),
};

enum { COUNT = sizeof cases / sizeof cases[0] };

int
main(void)
{
	static char name[2 * COUNT][80];
	static struct CMUnitTest tests[2 * COUNT];
	size_t i;

	for (i = 0; i < 2 * COUNT; i++) {
		snprintf(name[i], sizeof name[i], "%s: %s", cases[i / 2].path,
		    i % 2 ? "steps" : "cuts");
		tests[i] = (struct CMUnitTest){name[i],
		    i % 2 ? test_steps : test_cuts, NULL, NULL, &cases[i / 2]};
	}
	return cmocka_run_group_tests_name("quants", tests, NULL, plans_close);
}
