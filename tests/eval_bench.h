/* A graph from text with made-up weights, and every value it computes. */
#ifndef TESTS_EVAL_BENCH_H
#define TESTS_EVAL_BENCH_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../ir/eval.h"
#include "../ir/ir.h"
#include "../numerics/arith.h"

enum { BENCH_NODES = 512, BENCH_SLOTS = 4, BENCH_CTX = 512 };

typedef struct Bench {
	Arena *arena;
	Graph *g;
	Eval *e;
	void *value[BENCH_NODES]; /* of the last step, by node id */
	uint64_t count[BENCH_NODES];
	void *weight[BENCH_NODES]; /* passes may drop some from the graph */
	const char *weight_name[BENCH_NODES];
	bool listening;
} Bench;

static uint32_t
bench_random(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*seed >> 33);
}

/* -1 .. 1, with 16 bits. */
static float
bench_float(uint64_t *seed)
{
	return ((float)(bench_random(seed) % 65536) - 32767.5f) / 32768;
}

static void
put16(unsigned char *at, unsigned v)
{
	at[0] = (unsigned char)v;
	at[1] = (unsigned char)(v >> 8);
}

/* Random codes, small f16 scales where the type keeps them. */
static void
fill_quant(DType t, unsigned char *w, uint64_t bytes, uint64_t *seed)
{
	uint64_t i;

	for (i = 0; i < bytes; i++)
		w[i] = (unsigned char)bench_random(seed);
	for (i = 0; i < bytes; i += dtypes[t].bytes) {
		put16(w + i + (t == DT_Q6_K ? 208 : 0),
		    0x1c00 + bench_random(seed) % 512);
		if (t == DT_Q4_K)
			put16(w + i + 2, 0x1c00);
	}
}

static void *
fill_weight(const Weight *w)
{
	uint64_t n = type_count(&w->type), seed = 1, i;
	uint64_t bytes = dtype_bytes(w->type.dtype, n);
	void *data = malloc(bytes);
	const char *c;

	for (c = w->name; *c != '\0'; c++)
		seed = seed * 31 + (unsigned char)*c;
	if (dtypes[w->type.dtype].kind == DK_QUANT)
		fill_quant(w->type.dtype, data, bytes, &seed);
	for (i = 0; i < n; i++) {
		if (w->type.dtype == DT_F32)
			((float *)data)[i] = bench_float(&seed);
		else if (w->type.dtype == DT_BF16)
			((uint16_t *)data)[i] = ig_to_bf16(bench_float(&seed));
		else if (w->type.dtype == DT_F16)
			((uint16_t *)data)[i] =
			    (uint16_t)(0x3000 + bench_random(&seed) % 0x800);
	}
	return data;
}

static const void *
bench_weight(void *user, const Weight *w)
{
	Bench *b = user;
	uint32_t i;

	for (i = 0; strcmp(b->weight_name[i], w->name) != 0; i++)
		continue;
	return b->weight[i];
}

static void
bench_watch(void *user, const Node *n, const void *value, uint64_t rows)
{
	Bench *b = user;
	uint64_t count = rows, bytes;

	if (!b->listening)
		return;
	if (n->type.dim[0] < 0)
		count *= type_row(&n->type);
	bytes = dtype_bytes(n->type.dtype, count);
	free(b->value[n->id]);
	b->value[n->id] = malloc(bytes > 0 ? bytes : 1);
	memcpy(b->value[n->id], value, bytes);
	b->count[n->id] = count;
}

static void
bench_eval(Bench *b)
{
	EvalOptions o = {BENCH_CTX, BENCH_SLOTS, bench_weight, bench_watch, b};

	b->e = eval_new(b->g, &o);
}

static void
bench_start(Bench *b)
{
	uint32_t i;

	for (i = 0; i < b->g->n_weights; i++) {
		b->weight[i] = fill_weight(&b->g->weights[i]);
		b->weight_name[i] = b->g->weights[i].name;
	}
	b->listening = true;
	bench_eval(b);
}

static Bench *
bench_new(const char *text)
{
	Bench *b = calloc(1, sizeof *b);
	char why[512] = "";

	b->arena = arena_new();
	b->g = graph_parse(b->arena, text, strlen(text), why);
	assert_string_equal(why, "");
	assert_true(b->g->count <= BENCH_NODES);
	bench_start(b);
	return b;
}

static void
bench_free(Bench *b)
{
	uint32_t i;

	eval_free(b->e);
	for (i = 0; i < BENCH_NODES; i++) {
		free(b->value[i]);
		free(b->weight[i]);
	}
	arena_free(b->arena);
	free(b);
}

/* One sequence's tokens first .. first+count-1 of ids, in slot; logits of all
 * of them. */
static const Node *
bench_feed(Bench *b, uint32_t slot, const uint32_t *ids, uint32_t first,
    uint32_t count, float *logits)
{
	EvalSeq seq = {slot, 0, count, first};
	EvalStep step = {count, ids + first, 1, &seq, 0, NULL};
	uint32_t rows[BENCH_CTX], i;

	for (i = 0; i < count; i++)
		rows[i] = i;
	step.rows = rows;
	step.n_rows = logits != NULL ? count : 0;
	return eval_step(b->e, &step, logits);
}

/* Tokens 0 .. count-1 through a graph that has no logits. */
static void
bench_run(Bench *b, uint32_t count)
{
	uint32_t ids[BENCH_CTX], i;

	for (i = 0; i < count; i++)
		ids[i] = i;
	assert_null(bench_feed(b, 0, ids, 0, count, NULL));
}

#define GRAPH "graph \"t\" vocab=8 ctx=512\n"

/* Ops of the graphs whose values were looked at. */
static int covered[OP_COUNT];

static const float *
floats(const Bench *b, uint32_t id)
{
	uint32_t i;

	for (i = 0; i < b->g->count; i++)
		covered[b->g->nodes[i]->op]++;
	assert_int_equal(b->g->nodes[id]->type.dtype, DT_F32);
	return b->value[id];
}

static void
near(double got, double want, double tolerance)
{
	if (!(fabs(got - want) <= tolerance * (1 + fabs(want))))
		fail_msg("%.9g instead of %.9g", got, want);
}

static void
same_bits(const float *a, const float *b, uint64_t n)
{
	uint64_t i;

	for (i = 0; i < n; i++)
		if (ig_bits(a[i]) != ig_bits(b[i]))
			fail_msg("element %llu: %a, %a", (unsigned long long)i,
			    (double)a[i], (double)b[i]);
}

/* Every op for which wanted says so was evaluated. */
static void
check_coverage(bool (*wanted)(Op))
{
	int op;

	for (op = 0; op < OP_COUNT; op++)
		if (wanted((Op)op) && covered[op] == 0)
			fail_msg("no test evaluates %s", ops[op].name);
}

#endif
