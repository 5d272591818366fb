/* The SHA-256 of whole models' logits against tests/hashes.txt: 40 tokens in
 * one step, [40, vocab] f32, the cache in bf16. All models run on the oracle,
 * and the demo in most forms on the CPU too; tests of bits do that for the
 * others. With an argument, fresh lines of the table are printed instead. */
#include "../runtime/mapping.h"
#include "models.h"
#include "sha256.h"

#define DEMO "models/demo/kjv-moe-9m-Q4_K_M.gguf"
#define TABLE "tests/hashes.txt"

enum { IDS = 40 };

/* The start of "tokens" of the first prompt in models/demo/golden.json. */
static const uint32_t demo_ids[IDS] = {1151, 261, 1805, 1247, 271, 261, 1043,
    271, 1697, 75, 611, 315, 261, 411, 271, 1212, 555, 415, 271, 708, 476, 442,
    578, 405, 261, 344, 14, 548, 521, 1321, 571, 261, 344, 29, 401, 86, 379,
    290, 261, 1898};

typedef struct Case {
	const char *path;
	bool demo; /* with demo_ids */
	bool cpu;  /* there too, not on the oracle alone */
} Case;

static void
ok(ingot_status status, const Error *e)
{
	if (status != INGOT_OK)
		fail_msg("%s", e->text);
}

/* ---- hashes ---- */

static void
hash_bytes(const void *bytes, size_t n, char text[SHA256_TEXT])
{
	Sha256 s = sha256_start();

	sha256_add(&s, bytes, n);
	sha256_end(&s, text);
}

static void
hash_file(const char *path, char text[SHA256_TEXT])
{
	Mapping m;
	Error e;

	ok(map_file(path, &m, &e), &e);
	hash_bytes(m.data, (size_t)m.size, text);
	unmap_file(&m);
}

static void
hash_logits(const Case *c, ingot_model *m, char text[SHA256_TEXT])
{
	uint32_t ids[IDS], vocab = vocab_of(m);
	float *logits;

	if (c->demo)
		memcpy(ids, demo_ids, sizeof ids);
	else
		make_ids(ids, IDS, vocab, 1);
	logits = run_cut(m, ids, IDS, 0);
	hash_bytes(logits, (size_t)IDS * vocab * sizeof *logits, text);
	free(logits);
}

/* A plan without code, which the oracle does not need. */
static ingot_plan *
plan_without_code(const char *path)
{
	CompileOptions o = compile_defaults();
	Diag d = {0};
	ingot_plan *plan;
	Checkpoint *c;
	void *bytes;
	size_t length;
	Error e;

	o.targets = "";
	ok(ckpt_open(path, false, &c, &e), &e);
	if (setjmp(d.jump))
		fail_msg("%s: %s", path, d.text);
	compile_plan(c, &o, &d, &bytes, &length);
	ckpt_close(c);
	ok(ingot_plan_read(bytes, length, &plan, &e), &e);
	free(bytes);
	return plan;
}

static void
hash_on_oracle(const Case *c, char text[SHA256_TEXT])
{
	BackendFactory oracle = oracle_factory(NULL);
	ingot_plan *plan = plan_without_code(c->path);
	ingot_model *m;
	Error e;

	ok(model_open_custom(plan, c->path, &oracle, NULL, &m, &e), &e);
	hash_logits(c, m, text);
	ingot_model_close(m);
	ingot_plan_close(plan);
}

static void
hash_on_cpu(const Case *c, char text[SHA256_TEXT])
{
	Build b = {c->path, DT_BF16, FUSE_ALL};
	ingot_model *m = model_of(&b, 2);

	hash_logits(c, m, text);
	ingot_model_close(m);
}

/* ---- the table ---- */

/* The hashes in path's line: of logits and of the file. */
static void
look_up(const char *path, char logits[SHA256_TEXT], char file[SHA256_TEXT])
{
	char line[256], name[128];
	FILE *f = fopen(TABLE, "r");
	bool found = false;

	assert_non_null(f);
	while (!found && fgets(line, sizeof line, f))
		found =
		    sscanf(line, "%127s %64s %64s", name, logits, file) == 3 &&
		    strcmp(name, path) == 0;
	fclose(f);
	if (!found)
		fail_msg(TABLE " has no line for %s", path);
}

static void
check(const Case *c, const char *device, const char *got, const char *want)
{
	if (strcmp(got, want) != 0)
		fail_msg("%s on %s: the logits have SHA-256 %s, not %s",
		    c->path, device, got, want);
}

static void
test_hash(void **state)
{
	const Case *c = *state;
	char want[SHA256_TEXT], got[SHA256_TEXT], file[SHA256_TEXT];

	look_up(c->path, want, file);
	hash_file(c->path, got);
	if (strcmp(got, file) != 0)
		fail_msg("%s is not the file that the table is about: its "
			 "SHA-256 is %s, not %s",
		    c->path, got, file);
	hash_on_oracle(c, got);
	check(c, "the oracle", got, want);
	if (!c->cpu)
		return;
	hash_on_cpu(c, got);
	check(c, "the CPU", got, want);
}

static void
print_hash(void **state)
{
	const Case *c = *state;
	char logits[SHA256_TEXT], file[SHA256_TEXT];

	hash_file(c->path, file);
	hash_on_oracle(c, logits);
	printf("%s %s %s\n", c->path, logits, file);
}

/* ---- models ---- */

#define TINY(name)                                                             \
	{                                                                      \
		"tests/fixtures/" name "-tiny/model-bf16.gguf", false, false   \
	}
#define QUANT(name)                                                            \
	{                                                                      \
		"build/fixtures/quants/" name ".gguf", false, false            \
	}
#define QUANTS(form)                                                           \
	QUANT("qwen3-" form), QUANT("qwen3moe-" form), QUANT("qwen35-" form),  \
	    QUANT("qwen35moe-" form)
#define DEMOS(form, cpu)                                                       \
	{                                                                      \
		"build/fixtures/demo/demo-" form ".gguf", true, cpu            \
	}
#define FORM(form, cpu) DEMOS(form, cpu), QUANTS(form)

/* Compiling is what takes the time: not every form of the demo has code. */
static Case cases[] = {
    {DEMO, true, true},
    DEMOS("f16", false),
    DEMOS("bf16", true),
    TINY("qwen3"),
    TINY("qwen3moe"),
    TINY("qwen35"),
    TINY("qwen35moe"),
    QUANT("qwen3moe-f16"),
    QUANT("qwen3moe-f32"),
    QUANT("qwen35-f16"),
    QUANT("qwen35-f32"),
    FORM("q8_0", true),
    FORM("q6_k", true),
    FORM("q5_k_m", true),
    QUANTS("q4_k_m"), /* the demo is DEMO itself */
    FORM("q4_0", true),
    FORM("q4_1", false),
    FORM("q5_0", false),
    FORM("q5_1", false),
    FORM("iq4_nl", false),
    FORM("iq4_xs", true),
    FORM("q2_k", true),
    FORM("q3_k_m", false),
};

enum { COUNT = sizeof cases / sizeof cases[0] };

int
main(int argc, char **argv)
{
	struct CMUnitTest tests[COUNT];
	size_t i;

	(void)argv;
	for (i = 0; i < COUNT; i++)
		tests[i] = (struct CMUnitTest){cases[i].path,
		    argc > 1 ? print_hash : test_hash, NULL, NULL, &cases[i]};
	return cmocka_run_group_tests_name("hashes", tests, NULL, plans_close);
}
