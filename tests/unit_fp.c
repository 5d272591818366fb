/* A caller that flushes denormals or rounds in another direction gets the same
 * bits as any other, and its own state back from every call. Run in the
 * repository's root: it reads tests/fixtures. */
#define _GNU_SOURCE /* mkdtemp */
#include <fenv.h>
#include <math.h>
#include <unistd.h>
#include <xmmintrin.h>

#include "../numerics/arith.h"
#include "../runtime/mapping.h"
#include "models.h"

#define TINY "tests/fixtures/qwen3-tiny/model-bf16.gguf"
#define HYBRID "tests/fixtures/qwen35moe-mixed"

enum {
	FLUSH = 0x8040,   /* FTZ and DAZ of MXCSR */
	CONTROL = 0xFFC0, /* all but the flags of what has happened */
	IDS = 20,
	PICKS = 8
};

/* ---- states of the caller ---- */

typedef struct Caller {
	int rounding;
	unsigned flush;
} Caller;

static const Caller plain = {FE_TONEAREST, 0};
static const Caller callers[] = {
    {FE_TONEAREST, FLUSH},
    {FE_TOWARDZERO, FLUSH},
    {FE_UPWARD, 0},
    {FE_DOWNWARD, FLUSH},
};

enum { CALLERS = sizeof callers / sizeof callers[0] };

static unsigned
become(const Caller *c)
{
	fesetenv(FE_DFL_ENV);
	fesetround(c->rounding);
	_mm_setcsr(_mm_getcsr() | c->flush);
	return _mm_getcsr() & CONTROL;
}

/* A teardown: a test that fails leaves its state behind. */
static int
become_plain(void **state)
{
	(void)state;
	return fesetenv(FE_DFL_ENV);
}

/* What a call returned, and whether it left the caller's state alone. */
static void
returned(const Caller *c, ingot_status got, ingot_status want, const Error *e)
{
	unsigned now = _mm_getcsr() & CONTROL;
	int rounding = fegetround();

	if (now != become(c) || rounding != c->rounding)
		fail_msg("a call that returned %d left MXCSR %04x", got, now);
	if (got != want)
		fail_msg("status %d, not %d: %s", got, want,
		    got ? e->text : "it succeeded");
}

/* ---- checkpoints with other magnitudes ---- */

static char folder[] = "/tmp/ingot-fp-XXXXXX";

typedef struct Scaling {
	const char *tensor; /* or the end of its name */
	int exponent;
} Scaling;

/* The file of checkpoints whose tensors are scaled by powers of two. */
typedef struct Scaled {
	const char *file;
	Scaling by[2];
} Scaled;

/* Keys and values keep denormals; logits are ordinary. */
static const Scaled small_values = {
    "values.gguf", {{"attn_v.weight", -122}, {"attn_output.weight", 122}}};
static const Scaled small_logits = {
    "logits.gguf", {{"output_norm.weight", -124}}};
static const Scaled overflow = {"overflow.gguf", {{"output_norm.weight", 127}}};

static const char *
path_of(const Scaled *s)
{
	static char path[64];

	snprintf(path, sizeof path, "%s/%s", folder, s->file);
	return path;
}

static void
scale_tensor(unsigned char *data, const CkptTensor *t, int exponent)
{
	uint64_t i, n = t->bytes / dtypes[t->type].bytes;

	assert_true(t->type == DT_F32 || t->type == DT_BF16);
	for (i = 0; i < n; i++)
		if (t->type == DT_F32)
			((float *)(void *)data)[i] =
			    ldexpf(((float *)(void *)data)[i], exponent);
		else
			((uint16_t *)(void *)data)[i] = ig_to_bf16(
			    ldexpf(ig_from_bf16(((uint16_t *)(void *)data)[i]),
				exponent));
}

static bool
ends(const char *name, const char *end)
{
	size_t n = strlen(name), m = strlen(end);

	return end[0] != '\0' && n >= m && strcmp(name + n - m, end) == 0;
}

/* Scales what s names in bytes, the file of c. */
static void
scale_file(const Checkpoint *c, unsigned char *bytes, const Scaled *s)
{
	const CkptTensor *first = ckpt_find(c, "token_embd.weight");
	unsigned char *at = bytes;
	int scaled = 0;

	while (memcmp(at, first->data, (size_t)first->bytes) != 0)
		at += 32;
	for (size_t i = 0; i < ckpt_count(c); i++)
		for (size_t k = 0; k < 2; k++) {
			const CkptTensor *t = ckpt_tensor(c, i);
			const char *end = s->by[k].tensor;

			if (!end || !ends(t->name, end))
				continue;
			scale_tensor(
			    at + ((const unsigned char *)t->data -
				     (const unsigned char *)first->data),
			    t, s->by[k].exponent);
			scaled++;
		}
	assert_true(scaled > 0);
}

static void
write_scaled(const Scaled *s)
{
	Checkpoint *c;
	Mapping m;
	unsigned char *bytes;
	FILE *f;

	assert_int_equal(map_file(TINY, &m, NULL), INGOT_OK);
	assert_int_equal(ckpt_open(TINY, false, &c, NULL), INGOT_OK);
	bytes = malloc((size_t)m.size);
	assert_non_null(bytes);
	memcpy(bytes, m.data, (size_t)m.size);
	scale_file(c, bytes, s);
	f = fopen(path_of(s), "wb");
	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, (size_t)m.size, f), m.size);
	assert_int_equal(fclose(f), 0);
	free(bytes);
	ckpt_close(c);
	unmap_file(&m);
}

static int
make_files(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	write_scaled(&small_values);
	write_scaled(&small_logits);
	write_scaled(&overflow);
	return 0;
}

static int
remove_files(void **state)
{
	remove(path_of(&small_values));
	remove(path_of(&small_logits));
	remove(path_of(&overflow));
	rmdir(folder);
	return plans_close(state);
}

/* ---- the oracle, flushing ---- */

typedef struct Flushing {
	Backend base;
	Backend *inner;
} Flushing;

static Backend *
inner(Backend *b)
{
	return ((Flushing *)b)->inner;
}

static ingot_status
flush_step(Backend *b, const StepDesc *d, Error *err)
{
	unsigned old = _mm_getcsr();
	ingot_status status;

	_mm_setcsr(old | FLUSH);
	status = inner(b)->ops->step(inner(b), d, err);
	_mm_setcsr(old);
	return status;
}

static void
flush_copy_slot(Backend *b, uint32_t from, uint32_t to, uint32_t length)
{
	inner(b)->ops->copy_slot(inner(b), from, to, length);
}

static void
flush_clear_slot(Backend *b, uint32_t slot)
{
	inner(b)->ops->clear_slot(inner(b), slot);
}

static void
flush_copy_page(Backend *b, uint32_t from, uint32_t to)
{
	inner(b)->ops->copy_page(inner(b), from, to);
}

static void
flush_close(Backend *b)
{
	inner(b)->ops->close(inner(b));
	free(b);
}

static const BackendOps flush_ops = {flush_step, flush_copy_slot,
    flush_clear_slot, flush_copy_page, flush_close};

static ingot_status
flush_open(void *user, const Plan *plan, const Weights *w,
    const BackendLimits *limits, Backend **out, Error *err)
{
	BackendFactory oracle = oracle_factory(NULL);
	Flushing *f = malloc(sizeof *f);

	(void)user;
	assert_non_null(f);
	f->base.ops = &flush_ops;
	*out = &f->base;
	return oracle.open(oracle.user, plan, w, limits, &f->inner, err);
}

/* ---- what a caller sees ---- */

/* Where a model runs: so many threads of the CPU, or these. */
enum { FLUSHED_ORACLE = 1000 };

typedef struct Seen {
	float *logits; /* [IDS][vocab] */
	uint32_t picks[2 * PICKS];
} Seen;

static ingot_status
open_on(ingot_plan *plan, const char *path, uint32_t where, ingot_model **m,
    Error *e)
{
	ingot_model_options o = {
	    .size = sizeof o, .device = "cpu", .threads = where};
	BackendFactory flushed = {flush_open, NULL, "flushed"};
	BackendFactory oracle = oracle_factory(NULL);

	if (where == FLUSHED_ORACLE)
		return model_open_custom(plan, path, &flushed, NULL, m, e);
	if (where == ORACLE)
		return model_open_custom(plan, path, &oracle, NULL, m, e);
	return ingot_model_open(plan, path, &o, m, e);
}

/* The greedy choice of the last row, and draws at two temperatures. */
static void
pick(const Caller *c, ingot_session *s, uint32_t row, uint32_t *picks)
{
	ingot_sampling how = {.size = sizeof how};
	uint32_t i;
	Error e;

	for (i = 0; i < PICKS; i++) {
		how.temp = i == 0 ? 0 : i % 2 ? 1 : 0.5f;
		how.position = how.seed = i;
		returned(
		    c, ingot_sample(s, row, &how, &picks[i], &e), INGOT_OK, &e);
	}
}

/* The ids in a chunk and a last one alone, as c. */
static Seen
look(ingot_plan *plan, const char *path, uint32_t where, const Caller *c)
{
	ingot_session_options o = {
	    .size = sizeof o, .ctx = IDS, .max_rows = IDS};
	uint32_t ids[IDS], vocab = plan->meta->vocab;
	ingot_work work = {0, IDS - 1, ids, INGOT_WANT_ALL};
	ingot_session *s;
	ingot_model *m;
	Seen seen;
	Error e;

	make_ids(ids, IDS, vocab, 3);
	seen.logits = malloc((size_t)IDS * vocab * sizeof(float));
	assert_non_null(seen.logits);
	become(c);
	returned(c, open_on(plan, path, where, &m, &e), INGOT_OK, &e);
	returned(c, ingot_session_open(m, &o, &s, &e), INGOT_OK, &e);
	returned(c, ingot_seq_add(s, &work.seq, &e), INGOT_OK, &e);
	returned(c, ingot_step(s, &work, 1, &e), INGOT_OK, &e);
	memcpy(seen.logits, ingot_logits(s, 0),
	    (size_t)(IDS - 1) * vocab * sizeof(float));
	pick(c, s, IDS - 2, seen.picks);
	work = (ingot_work){work.seq, 1, ids + IDS - 1, INGOT_WANT_LAST};
	returned(c, ingot_step(s, &work, 1, &e), INGOT_OK, &e);
	memcpy(seen.logits + (size_t)(IDS - 1) * vocab, ingot_logits(s, 0),
	    vocab * sizeof(float));
	pick(c, s, 0, seen.picks + PICKS);
	ingot_session_close(s);
	ingot_model_close(m);
	returned(c, INGOT_OK, INGOT_OK, NULL);
	become(&plain);
	return seen;
}

static void
check_callers(ingot_plan *plan, const char *path)
{
	Seen want = look(plan, path, ORACLE, &plain);
	uint32_t where, i;

	for (where = ORACLE; where <= 2; where++)
		for (i = 0; i < CALLERS; i++) {
			Seen got = look(plan, path, where, &callers[i]);

			same_bits(got.logits, want.logits, IDS,
			    plan->meta->vocab, "%s, caller %u, %u threads",
			    path, i, where);
			assert_memory_equal(
			    got.picks, want.picks, sizeof want.picks);
			free(got.logits);
		}
	free(want.logits);
}

/* Fails unless flushing would change the logits of path. */
static void
check_denormals(ingot_plan *plan, const char *path)
{
	Seen want = look(plan, path, ORACLE, &plain);
	Seen got = look(plan, path, FLUSHED_ORACLE, &plain);

	assert_memory_not_equal(got.logits, want.logits,
	    (size_t)IDS * plan->meta->vocab * sizeof(float));
	free(want.logits);
	free(got.logits);
}

static void
test_denormals(void **state)
{
	Build b = {TINY, DT_BF16, FUSE_ALL};

	check_denormals(plan_of(&b), path_of(*state));
	check_callers(plan_of(&b), path_of(*state));
}

/* The float rules of loading count too: 1 + w, -exp(A_log), rope tables. */
static void
test_folder(void **state)
{
	Build b = {HYBRID, DT_BF16, FUSE_ALL};

	(void)state;
	check_callers(plan_of(&b), HYBRID);
}

/* ---- calls that fail ---- */

static void
refuse_models(const Caller *c, ingot_plan *plan)
{
	ingot_model *m;
	Error e;

	returned(c, open_on(plan, "nowhere", 1, &m, &e), INGOT_IO, &e);
	returned(c, open_on(plan, HYBRID, 1, &m, &e), INGOT_MISMATCH, &e);
	returned(c, open_on(NULL, TINY, 1, &m, &e), INGOT_BAD_ARG, &e);
}

static void
refuse_steps(const Caller *c, ingot_model *m)
{
	ingot_session_options o = {.size = sizeof o, .ctx = 1 << 21};
	uint32_t ids[2] = {1, 1 << 30};
	ingot_work work = {0, 2, ids, INGOT_WANT_LAST};
	ingot_sampling how = {.size = sizeof how};
	ingot_session *s;
	Error e;

	returned(c, ingot_session_open(m, &o, &s, &e), INGOT_BAD_ARG, &e);
	o.ctx = 1;
	returned(c, ingot_session_open(m, &o, &s, &e), INGOT_OK, &e);
	returned(c, ingot_step(s, &work, 1, &e), INGOT_BAD_ARG, &e);
	returned(c, ingot_seq_add(s, &work.seq, &e), INGOT_OK, &e);
	returned(c, ingot_step(s, &work, 1, &e), INGOT_BAD_ARG, &e);
	ids[1] = 1;
	returned(c, ingot_step(s, &work, 1, &e), INGOT_FULL, &e);
	returned(c, ingot_sample(s, 9, &how, ids, &e), INGOT_BAD_ARG, &e);
	work.count = 1;
	returned(c, ingot_step(s, &work, 1, &e), INGOT_NOT_FINITE, &e);
	ingot_session_close(s);
}

static void
test_errors(void **state)
{
	Build b = {TINY, DT_BF16, FUSE_ALL};
	ingot_plan *plan = plan_of(&b);
	uint32_t where, i;

	(void)state;
	for (where = ORACLE; where <= 2; where++)
		for (i = 0; i < CALLERS; i++) {
			const Caller *c = &callers[i];
			ingot_model *m;
			Error e;

			become(c);
			refuse_models(c, plan);
			returned(c,
			    open_on(plan, path_of(&overflow), where, &m, &e),
			    INGOT_OK, &e);
			refuse_steps(c, m);
			ingot_model_close(m);
			become(&plain);
		}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    {"small values", test_denormals, NULL, become_plain,
		(void *)&small_values},
	    {"small logits", test_denormals, NULL, become_plain,
		(void *)&small_logits},
	    cmocka_unit_test_teardown(test_folder, become_plain),
	    cmocka_unit_test_teardown(test_errors, become_plain),
	};

	return cmocka_run_group_tests_name(
	    "fp", tests, make_files, remove_files);
}
