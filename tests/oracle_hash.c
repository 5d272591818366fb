/* Prints, for each graph file, its name and the SHA-256 of the logits that the
 * oracle computes from it: oracle_hash FILE...
 *
 * A file holds a graph's text, perhaps between a first line "lower: ..." and a
 * line "----". Weights are made up: they depend on their name and type alone,
 * and making them rounds nothing that a compiler could round otherwise, so
 * that a change of the hash is a change of the evaluator. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../ir/eval.h"
#include "../numerics/arith.h"
#include "sha256.h"

enum { TOKENS = 150, STEPS = 3, MAX_WEIGHTS = 128 };

/* Tokens of two sequences in each step: the second needs two spans of keys. */
static const uint32_t counts[STEPS][2] = {{24, 100}, {15, 49}, {1, 1}};

typedef struct Made {
	void *data[MAX_WEIGHTS];
	uint32_t n;
} Made;

static void
die(const char *file, const char *why)
{
	fprintf(stderr, "oracle_hash: %s: %s\n", file, why);
	exit(1);
}

static void *
take_memory(size_t n)
{
	void *p = calloc(1, n);

	if (!p)
		die("memory", "there is none");
	return p;
}

/* ---- weights ---- */

static uint32_t
draw(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*seed >> 33);
}

/* -1 .. 1 with 24 bits. */
static float
draw_float(uint64_t *seed)
{
	return (float)((int32_t)(draw(seed) >> 7) - (1 << 23)) * 0x1p-23f;
}

static bool
ends(const char *name, const char *end)
{
	size_t n = strlen(name), m = strlen(end);

	return n >= m && strcmp(name + n - m, end) == 0;
}

/* A power of two near the square root of 3/k: sums of k products of weights
 * with activations around 1 are around 1 too. */
static float
amplitude(int64_t k)
{
	float a = 1;

	for (; k > 3; k = (k + 3) / 4)
		a *= 0.5f;
	return a;
}

static float
draw_value(const Weight *w, uint64_t *seed)
{
	float u = draw_float(seed);

	if (ends(w->name, "norm"))
		return 1 + u * 0.25f;
	if (ends(w->name, ".A"))
		return -1 - u * 0.5f;
	return u * amplitude(w->type.dim[w->type.n_dims - 1]);
}

/* Where blocks keep binary16 numbers, and a least value that gives weights
 * around 1/16; they get up to twice that. */
static const struct {
	DType type;
	uint32_t at;
	uint16_t least;
} halves[] = {
    {DT_Q4_0, 0, 0x2000},
    {DT_Q4_1, 0, 0x2000},
    {DT_Q4_1, 2, 0xAC00},
    {DT_Q5_0, 0, 0x1C00},
    {DT_Q5_1, 0, 0x1C00},
    {DT_Q5_1, 2, 0xAC00},
    {DT_Q8_0, 0, 0x1000},
    {DT_IQ4_NL, 0, 0x1400},
    {DT_Q2_K, 80, 0x2000},
    {DT_Q2_K, 82, 0x2000},
    {DT_Q3_K, 108, 0x1400},
    {DT_Q4_K, 0, 0x0C00},
    {DT_Q4_K, 2, 0x1800},
    {DT_Q5_K, 0, 0x0800},
    {DT_Q5_K, 2, 0x1800},
    {DT_Q6_K, 208, 0x0400},
    {DT_IQ4_XS, 0, 0x0400},
};

static void
put_half(unsigned char *at, uint32_t bits)
{
	at[0] = (unsigned char)bits;
	at[1] = (unsigned char)(bits >> 8);
}

static void
fill_blocks(DType t, unsigned char *data, uint64_t bytes, uint64_t *seed)
{
	uint64_t i;
	size_t h;

	for (i = 0; i < bytes; i++)
		data[i] = (unsigned char)(draw(seed) >> 8);
	for (i = 0; i < bytes; i += dtypes[t].bytes)
		for (h = 0; h < sizeof halves / sizeof halves[0]; h++)
			if (halves[h].type == t)
				put_half(data + i + halves[h].at,
				    halves[h].least + draw(seed) % 1024);
}

static void
fill_floats(const Weight *w, void *data, uint64_t n, uint64_t *seed)
{
	uint64_t i;

	for (i = 0; i < n; i++)
		if (w->type.dtype == DT_F32)
			((float *)data)[i] = draw_value(w, seed);
		else if (w->type.dtype == DT_BF16)
			((uint16_t *)data)[i] = ig_to_bf16(draw_value(w, seed));
		else /* 2^-5 .. 2^-3, either sign */
			((uint16_t *)data)[i] =
			    (uint16_t)(0x2800 + draw(seed) % 0x800 +
				       draw(seed) % 2 * 0x8000);
}

static void *
make_weight(const Weight *w)
{
	uint64_t n = type_count(&w->type), seed = 1;
	uint64_t bytes = dtype_bytes(w->type.dtype, n);
	void *data = take_memory((size_t)bytes);
	const char *c;

	for (c = w->name; *c != '\0'; c++)
		seed = seed * 31 + (unsigned char)*c;
	if (dtypes[w->type.dtype].kind == DK_QUANT)
		fill_blocks(w->type.dtype, data, bytes, &seed);
	else
		fill_floats(w, data, n, &seed);
	return data;
}

static const void *
weight_data(void *user, const Weight *w)
{
	Made *m = user;

	if (m->n == MAX_WEIGHTS)
		die(w->name, "too many weights");
	m->data[m->n] = make_weight(w);
	return m->data[m->n++];
}

/* ---- steps ---- */

/* Runs the steps of both sequences, adding the logits of all rows. */
static void
run_steps(Eval *e, const Graph *g, const char *file, Sha256 *hash)
{
	uint32_t tokens[TOKENS], rows[TOKENS], done[2] = {0}, i, s;
	float *logits = take_memory((size_t)TOKENS * g->vocab * sizeof *logits);
	uint64_t seed = 7;

	for (s = 0; s < STEPS; s++) {
		uint32_t a = counts[s][0], b = counts[s][1];
		EvalSeq seqs[2] = {{0, 0, a, done[0]}, {1, a, b, done[1]}};
		EvalStep step = {a + b, tokens, 2, seqs, a + b, rows};

		for (i = 0; i < a + b; i++) {
			tokens[i] = draw(&seed) % g->vocab;
			rows[i] = i;
		}
		if (eval_step(e, &step, logits))
			die(file, "a value is not finite");
		sha256_add(
		    hash, logits, (size_t)(a + b) * g->vocab * sizeof *logits);
		done[0] += a;
		done[1] += b;
	}
	free(logits);
}

static Graph *
read_graph(Arena *a, const char *file)
{
	FILE *in = fopen(file, "rb");
	static char text[1 << 16];
	char why[512], *start = text, *end;
	const char *fault;
	size_t n;
	Graph *g;

	if (!in)
		die(file, "cannot be read");
	n = fread(text, 1, sizeof text - 1, in);
	fclose(in);
	text[n] = '\0';
	if (strncmp(text, "lower: ", 7) == 0)
		start = strchr(text, '\n') + 1;
	end = strstr(start, "\n----\n");
	n = end ? (size_t)(end + 1 - start) : strlen(start);
	g = graph_parse(a, start, n, why);
	if (!g)
		die(file, why);
	legalise(g);
	fault = verify(g);
	if (fault)
		die(file, fault);
	return g;
}

static void
hash_graph(const char *file)
{
	Arena *a = arena_new();
	Graph *g = read_graph(a, file);
	Made made = {.n = 0};
	EvalOptions o = {
	    .ctx = 256, .max_seqs = 2, .weight = weight_data, .user = &made};
	Eval *e = eval_new(g, &o);
	Sha256 hash = sha256_start();
	char text[SHA256_TEXT];

	run_steps(e, g, file, &hash);
	sha256_end(&hash, text);
	printf("%s %s\n", file, text);
	eval_free(e);
	while (made.n > 0)
		free(made.data[--made.n]);
	arena_free(a);
}

int
main(int argc, char **argv)
{
	int i;

	for (i = 1; i < argc; i++)
		hash_graph(argv[i]);
	return 0;
}
