#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "../numerics/angle.h"
#include "../runtime/backend.h"
#include "../runtime/tokenizer.h"
#include "toy_session.h"

#include <cmocka.h> /* its macro fail hides the runtime's function */

static const char *object_path[2] = {
    "build/toy_kernels.so", "build/toy_kernels_shift.so"};

/* ---- the parts of the runtime that are not under test ---- */

static float bias[TOY_VOCAB];
static bool bound_plain;
int ckpt_is_open;

ingot_status
ckpt_open(const char *path, bool header_only, Checkpoint **out, Error *err)
{
	(void)header_only;
	(void)err;
	*out = (Checkpoint *)(void *)&ckpt_is_open;
	ckpt_is_open += strcmp(path, "toy") == 0;
	return INGOT_OK;
}

void
ckpt_close(Checkpoint *c)
{
	(void)c;
	ckpt_is_open--;
}

ingot_status
weights_bind(const Plan *plan, uint32_t target, Checkpoint *c, bool plain,
    WeightProgress progress, Weights *out, Error *err)
{
	static void *data[2] = {bias, bias};

	(void)plan;
	(void)target;
	(void)c;
	(void)err;
	if (progress.call)
		progress.call(progress.user, 160, 160);
	*out = (Weights){.data = data, .count = 2, .total = 160};
	bound_plain = plain;
	return INGOT_OK;
}

void
weights_free(Weights *w)
{
	*w = (Weights){0};
}

Tokenizer *
tokenizer_of(const ingot_tokenizer *t)
{
	return (Tokenizer *)(void *)(uintptr_t)t;
}

bool
tok_is_token(const Tokenizer *t, uint32_t id)
{
	(void)t;
	return id % 2 == 1;
}

/* ---- counting allocations ---- */

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__real_mmap(void *, size_t, int, int, int, off_t);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void *__wrap_mmap(void *, size_t, int, int, int, off_t);

unsigned allocations, refuse_from;

static bool
refused(void)
{
	allocations++;
	return refuse_from != 0 && allocations >= refuse_from;
}

void *
__wrap_malloc(size_t n)
{
	return refused() ? NULL : __real_malloc(n);
}

void *
__wrap_calloc(size_t n, size_t size)
{
	return refused() ? NULL : __real_calloc(n, size);
}

void *
__wrap_realloc(void *p, size_t n)
{
	return refused() ? NULL : __real_realloc(p, n);
}

void *
__wrap_mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset)
{
	return refused() ? MAP_FAILED
			 : __real_mmap(at, n, prot, flags, fd, offset);
}

/* ---- a backend from outside: the same function from whole histories ---- */

typedef struct Outside {
	Backend base;
	BackendLimits limits;
	float table[TOY_CTX * TOY_ROT];
	uint32_t history[MAX_SLOTS][TOY_CTX];
} Outside;

/* Logits of the last token of a history. */
static void
expect(const uint32_t *history, uint32_t n, const float *table, float *out)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < n; i++)
		sum = toy_scan(sum, history[i]);
	for (uint32_t i = 0; i < n; i++)
		sum = toy_add(sum, history[i], i);
	for (uint32_t v = 0; v < TOY_VOCAB; v++)
		out[v] = toy_logit(sum, v, bias[v], table[(n - 1) * TOY_ROT]);
}

static ingot_status
outside_step(Backend *b, const StepDesc *d, Error *err)
{
	Outside *o = (Outside *)b;
	uint32_t r = 0;

	(void)err;
	for (uint32_t i = 0; i < d->n_seqs; i++) {
		const StepSeq *s = &d->seqs[i];

		memcpy(&o->history[s->slot][s->start], d->tokens + s->first,
		    s->count * sizeof(uint32_t));
		for (; r < d->n_rows && d->rows[r] < s->first + s->count; r++)
			expect(o->history[s->slot],
			    s->start + d->rows[r] - s->first + 1, o->table,
			    o->limits.logits + r * TOY_VOCAB);
	}
	assert_int_equal(r, d->n_rows);
	return INGOT_OK;
}

static void
outside_copy(Backend *b, uint32_t from, uint32_t to, uint32_t length)
{
	Outside *o = (Outside *)b;

	memcpy(o->history[to], o->history[from], length * sizeof(uint32_t));
}

static void
outside_clear(Backend *b, uint32_t slot)
{
	memset(((Outside *)b)->history[slot], 0xFF, sizeof(uint32_t) * TOY_CTX);
}

static void
outside_page(Backend *b, uint32_t from, uint32_t to)
{
	(void)b;
	assert_int_not_equal(from, to);
}

static void
outside_close(Backend *b)
{
	free(b);
}

static ingot_status
outside_open(void *user, const Plan *plan, const Weights *w,
    const BackendLimits *limits, Backend **out, Error *err)
{
	static const BackendOps ops = {outside_step, outside_copy,
	    outside_clear, outside_page, outside_close};
	Outside *o = calloc(1, sizeof *o);

	(void)user;
	(void)plan;
	(void)err;
	assert_non_null(o);
	assert_int_equal(w->count, 2);
	assert_true(limits->max_seqs <= MAX_SLOTS && limits->ctx <= TOY_CTX);
	o->base.ops = &ops;
	o->limits = *limits;
	rope_table(o->table, limits->ctx, TOY_ROT, 10000.0);
	*out = &o->base;
	return INGOT_OK;
}

/* ---- opening ---- */

ingot_plan *
toy_open(int which)
{
	FILE *f = fopen(object_path[which], "rb");
	static unsigned char code[1 << 18];
	size_t n;
	PlanWriter *pw;
	const unsigned char *bytes;
	ingot_plan *p;

	assert_non_null(f);
	n = fread(code, 1, sizeof code, f);
	fclose(f);
	assert_true(n > 0 && n < sizeof code);
	pw = toy_plan(code, n);
	bytes = pw_bytes(pw, &n);
	assert_int_equal(ingot_plan_read(bytes, n, &p, NULL), INGOT_OK);
	plan_writer_free(pw);
	return p;
}

Toy
toy_session(int kind, uint32_t max_seqs, uint32_t max_rows)
{
	static const BackendFactory outside = {outside_open, NULL, "outside"};
	ingot_model_options mo = {
	    sizeof mo, NULL, kind == CPU ? 1 : 3, NULL, NULL};
	ingot_session_options so = {sizeof so, 0, max_seqs, max_rows};
	Toy t = {toy_open(0), NULL, NULL};
	Error err = {0};
	ingot_status status =
	    kind == OUTSIDE
		? model_open_custom(
		      t.plan, "toy", &outside, NULL, &t.model, &err)
		: ingot_model_open(t.plan, "toy", &mo, &t.model, &err);

	if (!status)
		status = ingot_session_open(t.model, &so, &t.s, &err);
	if (status)
		fail_msg("%s", err.text);
	assert_int_equal(bound_plain, kind == OUTSIDE);
	return t;
}

void
toy_close(Toy *t)
{
	ingot_session_close(t->s);
	ingot_model_close(t->model);
	ingot_plan_close(t->plan);
	assert_int_equal(ckpt_is_open, 0);
}

/* ---- what a sequence should be ---- */

uint32_t
next_random(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*seed >> 33);
}

/* Any token but those that fail. */
uint32_t
random_token(uint64_t *seed)
{
	uint32_t t = next_random(seed) % (TOY_VOCAB - 2);

	return t < TOY_FAULT ? t : t + 2;
}

void
assert_row(Toy *t, uint32_t row, const uint32_t *history, uint32_t n)
{
	static float table[TOY_CTX * TOY_ROT];
	float want[TOY_VOCAB];
	const float *got = ingot_logits(t->s, row);

	if (table[0] == 0.0f)
		rope_table(table, TOY_CTX, TOY_ROT, 10000.0);
	assert_non_null(got);
	expect(history, n, table, want);
	/* The last two columns are about other things. */
	assert_memory_equal(got, want, TOY_COL_DENORMAL * sizeof(float));
}

void
step_one(
    Toy *t, uint32_t seq, const uint32_t *tokens, uint32_t n, ingot_want want)
{
	ingot_work w = {seq, n, tokens, want};
	Error err = {0};

	if (ingot_step(t->s, &w, 1, &err) != INGOT_OK)
		fail_msg("%s", err.text);
}

void
toy_main(int argc, char **argv)
{
	for (int i = 1; i < argc && i < 3; i++)
		object_path[i - 1] = argv[i];
	for (uint32_t i = 0; i < TOY_VOCAB; i++)
		bias[i] = (float)i * 0.25f;
}
