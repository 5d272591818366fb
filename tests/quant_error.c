/* What quantising activations costs: products with quantised weights as the
 * oracle computes them, against the same in double on the weights' values and
 * the activations as they were before. Products of one quantised value are one
 * region, as they are one launch; a call is one token's.
 *
 *     quant_error [CHECKPOINT [GOLDEN.json]]
 *
 * runs a prompt of golden.json, a table of each region's normalised mean square
 * errors comes out, and a region fails whose error over all calls, or in any
 * one of them, is above 5e-4. Run in the repository's root. */
#include <jansson.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../compiler/compile.h"
#include "../compiler/oracle.h"
#include "../numerics/quant.h"

#define LIMIT 5e-4
#define DEMO "models/demo/kjv-moe-9m-Q4_K_M.gguf"
#define GOLDEN "models/demo/golden.json"

enum { MAX_NODES = 4096, IDS = 64 };

/* The errors of one region, by call. */
typedef struct Tally {
	const Node *input;  /* the quantised value */
	const Node *weight; /* the first one */
	Op op;
	double error[IDS], power[IDS];
	uint32_t calls;
} Tally;

typedef struct Table {
	void *values[MAX_NODES]; /* by node; copies but for weights */
	Tally tallies[MAX_NODES];
	uint32_t n;
} Table;

static void *
take_memory(size_t bytes)
{
	void *p = malloc(bytes + 1);

	if (!p) {
		fputs("no memory\n", stderr);
		exit(1);
	}
	return p;
}

/* ---- one product ---- */

/* A linear or experts node of the step, seen as calls of slots products. */
typedef struct Product {
	DType type;
	const char *weight;
	const float *x, *got;
	const int32_t *ids;      /* [calls * slots] matrix of each, or NULL */
	uint64_t rows, k, slots; /* of a matrix; products of a call */
	bool shared;             /* the slots of a call have one x */
} Product;

static Product
product_of(const Table *t, const Node *n)
{
	const Type *w = &n->in[1]->type;
	const Node *x = n->in[0]->in[0];
	bool experts = n->op == OP_EXPERTS;

	return (Product){w->dtype, t->values[n->in[1]->id], t->values[x->id],
	    t->values[n->id], experts ? t->values[n->in[2]->id] : NULL,
	    (uint64_t)w->dim[w->n_dims - 2], (uint64_t)w->dim[w->n_dims - 1],
	    experts ? (uint64_t)n->type.dim[1] : 1, x->type.n_dims == 2};
}

/* Adds row r of slot s of call c to *error and *power; row holds k values. */
static void
add_row(const Product *p, uint64_t c, uint64_t s, uint64_t r, float *row,
    double *error, double *power)
{
	uint64_t slot = c * p->slots + s, i;
	uint64_t matrix = p->ids ? (uint64_t)p->ids[slot] : 0;
	const float *x = p->x + (p->shared ? c : slot) * p->k;
	double want = 0, d;

	dequant_row(p->type,
	    p->weight + (matrix * p->rows + r) * dtype_bytes(p->type, p->k),
	    p->k, row);
	for (i = 0; i < p->k; i++)
		want += (double)row[i] * (double)x[i];
	d = (double)p->got[slot * p->rows + r] - want;
	*error += d * d;
	*power += want * want;
}

static void
add_calls(Tally *t, const Product *p, uint64_t calls)
{
	float *row = take_memory(p->k * sizeof *row);
	uint64_t c, s, r;

	for (c = 0; c < calls; c++)
		for (s = 0; s < p->slots; s++)
			for (r = 0; r < p->rows; r++)
				add_row(p, c, s, r, row, &t->error[c],
				    &t->power[c]);
	t->calls = (uint32_t)calls;
	free(row);
}

/* ---- all of them ---- */

static Tally *
tally_of(Table *t, const Node *product)
{
	Tally *y = t->tallies;

	for (; y < t->tallies + t->n; y++)
		if (y->input == product->in[0] && y->op == product->op)
			return y;
	t->n++;
	y->input = product->in[0];
	y->weight = product->in[1];
	y->op = product->op;
	return y;
}

static void
watch(void *user, const Node *n, const void *value, uint64_t rows)
{
	Table *t = user;
	uint64_t bytes = dtype_bytes(n->type.dtype, rows * type_row(&n->type));
	Product p;

	if (n->id >= MAX_NODES) {
		fputs("the graph is too large for this test\n", stderr);
		exit(1);
	}
	if (n->op == OP_WEIGHT) {
		t->values[n->id] = (void *)(uintptr_t)value;
		return;
	}
	if (n->type.dim[0] > 0)
		return;
	free(t->values[n->id]);
	t->values[n->id] = take_memory((size_t)bytes);
	memcpy(t->values[n->id], value, (size_t)bytes);
	if (ops[n->op].kind != KIND_CONTRACT || n->in[0]->op != OP_QUANTISE)
		return;
	p = product_of(t, n);
	add_calls(tally_of(t, n), &p, rows);
}

static double
sum(const double *x, uint32_t n)
{
	double all = 0;

	while (n-- > 0)
		all += x[n];
	return all;
}

static double
pooled(const Tally *t)
{
	return sum(t->error, t->calls) / sum(t->power, t->calls);
}

static double
worst(const Tally *t)
{
	double most = 0;
	uint32_t c;

	for (c = 0; c < t->calls; c++)
		if (!(t->error[c] <= most * t->power[c]))
			most = t->error[c] / t->power[c];
	return most;
}

static int
compare_tallies(const void *a, const void *b)
{
	double p = worst(a), q = worst(b);

	return (p < q) - (p > q);
}

/* The last line counts the regions. */
static int
print_table(Table *t)
{
	double error = 0, power = 0;
	uint32_t i, failed = 0;

	qsort(t->tallies, t->n, sizeof t->tallies[0], compare_tallies);
	puts("pooled   worst    calls  region of");
	for (i = 0; i < t->n; i++) {
		const Tally *y = &t->tallies[i];

		printf("%.2e %.2e %5u  %s\n", pooled(y), worst(y), y->calls,
		    y->weight->name);
		failed += !(pooled(y) <= LIMIT && worst(y) <= LIMIT);
		error += sum(y->error, y->calls);
		power += sum(y->power, y->calls);
	}
	if (t->n == 0)
		failed = 1;
	printf("%.2e all\n", error / power);
	printf("%u passed, %u failed\n", t->n - (t->n ? failed : 0), failed);
	return failed > 0;
}

/* ---- running the model ---- */

static void
ok(ingot_status status, const Error *e)
{
	if (status == INGOT_OK)
		return;
	fprintf(stderr, "%s\n", e->text);
	exit(1);
}

static ingot_plan *
compile(const char *path)
{
	CompileOptions o = compile_defaults();
	Diag d = {0};
	Checkpoint *c;
	ingot_plan *plan;
	void *bytes;
	size_t length;
	Error e;

	o.targets = "";
	ok(ckpt_open(path, false, &c, &e), &e);
	if (setjmp(d.jump)) {
		fprintf(stderr, "%s\n", d.text);
		exit(1);
	}
	compile_plan(c, &o, &d, &bytes, &length);
	ckpt_close(c);
	ok(ingot_plan_read(bytes, length, &plan, &e), &e);
	free(bytes);
	return plan;
}

/* The first ids of the first prompt. */
static uint32_t
read_ids(const char *path, uint32_t ids[IDS])
{
	json_error_t why;
	json_t *all = json_load_file(path, 0, &why);
	const json_t *list = json_object_get(json_array_get(all, 0), "tokens");
	uint32_t n = (uint32_t)json_array_size(list), i;

	if (n == 0) {
		fprintf(
		    stderr, "%s: no tokens %s\n", path, all ? "" : why.text);
		exit(1);
	}
	for (i = 0; i < n && i < IDS; i++)
		ids[i] = (uint32_t)json_integer_value(json_array_get(list, i));
	json_decref(all);
	return i;
}

static int
run(ingot_plan *plan, const char *path, const char *golden)
{
	static Table t;
	NodeWatch nodes = {watch, &t};
	BackendFactory oracle = oracle_factory_nodes(&nodes);
	ingot_session_options so = {.size = sizeof so, .max_rows = IDS};
	uint32_t ids[IDS];
	ingot_work work = {0, read_ids(golden, ids), ids, INGOT_WANT_ALL};
	ingot_model *m;
	ingot_session *s;
	Error e;
	int failed;

	ok(model_open_custom(plan, path, &oracle, NULL, &m, &e), &e);
	ok(ingot_session_open(m, &so, &s, &e), &e);
	ok(ingot_seq_add(s, &work.seq, &e), &e);
	ok(ingot_step(s, &work, 1, &e), &e);
	failed = print_table(&t); /* names live in the session's graph */
	ingot_session_close(s);
	ingot_model_close(m);
	return failed;
}

int
main(int argc, char **argv)
{
	const char *path = argc > 1 ? argv[1] : DEMO;
	ingot_plan *plan = compile(path);
	int failed = run(plan, path, argc > 2 ? argv[2] : GOLDEN);

	ingot_plan_close(plan);
	return failed;
}
