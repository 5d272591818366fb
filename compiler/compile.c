#include "compile.h"

#include <stdlib.h>
#include <string.h>

#include "../codegen/plan_build.h"
#include "../runtime/fingerprint.h"
#include "../runtime/pack.h"
#include "frontend.h"
#include "version.h"

CompileOptions
compile_defaults(void)
{
	return (CompileOptions){.targets = "cpu",
	    .kv = DT_BF16,
	    .max_chunk = 512,
	    .fusion = true,
	    .rules = FUSE_ALL};
}

/* ---- the graph ---- */

static void
check(const Graph *g, const char *after, Diag *d)
{
	const char *fault = verify(g);

	if (fault)
		err(d, 70, NULL, "the graph is wrong after %s: %s", after,
		    fault);
}

static Graph *
build_graph(Arena *a, Checkpoint *c, const CompileOptions *o, Diag *d)
{
	FrontOptions front = {.model = o->model,
	    .kv = o->kv,
	    .ignored = o->ignored,
	    .user = o->user,
	    .stop = o->stop};
	Graph *g = frontend_build(a, c, &front, d);

	check(g, "the front end", d);
	simplify(g);
	check(g, "simplify", d);
	cse(g);
	check(g, "cse", d);
	dce(g);
	check(g, "dce", d);
	legalise(g);
	cse(g);
	check(g, "legalise", d);
	return g;
}

/* ---- what ties the plan to the checkpoint ---- */

static uint32_t
add_tensor(PlanWriter *pw, const CkptTensor *t, Diag *d)
{
	uint32_t name = pw_string(pw, t->name);
	uint32_t n = pw_count(pw, SEC_TENSORS);
	PlanTensor *p;

	for (uint32_t i = 0; i < n; i++)
		if (((PlanTensor *)pw_at(pw, SEC_TENSORS, i))->name == name)
			return i;
	if (t->n_dims > 4)
		err(d, 1, NULL, "tensor %s has %d axes; a weight has at most 4",
		    t->name, t->n_dims);
	p = pw_add(pw, SEC_TENSORS, 1);
	p->name = name;
	p->dtype = t->type;
	p->n_dims = (uint32_t)t->n_dims;
	for (int i = 0; i < 4; i++)
		p->dim[i] = i < t->n_dims ? t->dims[i] : 1;
	return n;
}

static uint64_t
tensor_rows(const CkptTensor *t)
{
	uint64_t rows = 1;

	for (int i = 0; i + 1 < t->n_dims; i++)
		rows *= t->dims[i];
	return rows;
}

static void
add_piece(
    PlanWriter *pw, const Checkpoint *c, const WeightPiece *piece, Diag *d)
{
	const CkptTensor *t = ckpt_find(c, piece->tensor);
	PlanPiece p = {0}, *at;

	if (!t)
		err(d, 70, NULL, "tensor %s is not there", piece->tensor);
	p.tensor = add_tensor(pw, t, d);
	p.row = piece->row;
	p.rows = piece->rows ? piece->rows : tensor_rows(t);
	at = pw_add(pw, SEC_PIECES, 1);
	*at = p;
}

static void
add_weight(PlanWriter *pw, const Checkpoint *c, const Weight *w, Diag *d)
{
	PlanWeight p = {0}, *at;

	p.name = pw_string(pw, w->name);
	p.dtype = w->type.dtype;
	p.map = w->map;
	p.n_dims = (uint32_t)w->type.n_dims;
	for (int i = 0; i < 4; i++)
		p.dim[i] = i < w->type.n_dims ? (uint64_t)w->type.dim[i] : 1;
	p.first_piece = pw_count(pw, SEC_PIECES);
	p.n_pieces = w->n_pieces;
	for (uint32_t i = 0; i < w->n_pieces; i++)
		add_piece(pw, c, &w->pieces[i], d);
	at = pw_add(pw, SEC_WEIGHTS, 1);
	*at = p;
}

static void
add_meta(PlanWriter *pw, const Checkpoint *c, const Graph *g,
    const CompileOptions *o)
{
	PlanMeta m = {0}, *at;

	m.arch = pw_string(pw, g->arch);
	m.model_file = pw_string(pw, g->model);
	m.compiler = pw_string(pw, INGOT_VERSION);
	m.numerics = pw_string(pw, o->numerics ? o->numerics : "exact");
	m.kv_dtype = o->kv;
	m.vocab = g->vocab;
	m.ctx = g->ctx;
	m.max_chunk = o->max_chunk;
	m.layout = fingerprint_layout(c);
	m.data = fingerprint_data(c);
	at = pw_add(pw, SEC_META, 1);
	*at = m;
}

/* ---- targets ---- */

/* A weight as matrices of rows x k for packing: experts of them. */
static uint64_t
packed_bytes(const Weight *w, uint32_t pack)
{
	const Type *t = &w->type;
	uint64_t k = (uint64_t)t->dim[t->n_dims - 1];
	uint64_t experts = t->n_dims == 3 ? (uint64_t)t->dim[0] : 1;

	return pack_bytes(
	    pack, t->dtype, experts, type_count(t) / k / experts, k);
}

static uint32_t
add_packs(PlanWriter *pw, const Graph *g)
{
	uint32_t first = pw_count(pw, SEC_PACKS);

	for (uint32_t i = 0; i < g->n_weights; i++) {
		const Weight *w = &g->weights[i];
		PlanPack *p = pw_add(pw, SEC_PACKS, 1);

		p->pack = is_packed(g, w) ? PACK_ROWS8 : PACK_PLAIN;
		p->bytes = packed_bytes(w, p->pack);
	}
	return first;
}

/* TMPDIR is one of the variables the command line reads. */
static const char *
temporary_folder(void)
{
	const char *tmp = getenv("TMPDIR");

	return tmp && *tmp ? tmp : "/tmp";
}

static void
build_object(const Emitted *e, ToolResult *out, Diag *d)
{
	const Target *t = e->l->target;
	size_t length;
	const char *source = target_source(e, &length);
	ToolJob job = {
	    e->l->graph->arena, t, source, length, temporary_folder()};
	char why[TOOL_WHY];

	if (!tool_compile(tool_for(t), &job, out, why))
		err(d, 1, NULL, "target %s: %s", t->name, why);
}

static void
add_target(
    PlanWriter *pw, Graph *g, const Target *t, const CompileOptions *o, Diag *d)
{
	LowerOptions lo = {.rules = o->fusion ? o->rules : 0};
	Lowered *l = lower(g, t, &lo, d);
	Emitted *e = o->missing ? emit_anyway(l, d) : emit(l, d);
	ToolResult object = {.toolchain = ""};

	if (o->missing)
		for (uint32_t i = 0; i < e->n_missing; i++)
			o->missing(
			    o->user, e->missing[i].op, e->missing[i].why);
	else
		build_object(e, &object, d);
	plan_add_target(pw, e, &object, add_packs(pw, g));
}

static void
add_targets(PlanWriter *pw, Graph *g, const CompileOptions *o, Diag *d)
{
	char *names = arena_strdup(g->arena, o->targets), *rest = NULL;

	for (char *name = strtok_r(names, ",", &rest); name;
	     name = strtok_r(NULL, ",", &rest)) {
		const Target *t = target_by_name(name);

		if (!t)
			err(d, 2, NULL,
			    "there is no target %s; see ingot targets", name);
		if (!t->kernels)
			err(d, 2, NULL, "target %s has no kernels yet", name);
		add_target(pw, g, t, o, d);
	}
}

/* ---- the whole ---- */

static void
fill(PlanWriter *pw, Arena *a, Checkpoint *c, const CompileOptions *o, Diag *d)
{
	Graph *g = build_graph(a, c, o, d);

	add_meta(pw, c, g, o);
	for (uint32_t i = 0; i < g->n_weights; i++)
		add_weight(pw, c, &g->weights[i], d);
	plan_add_graph(pw, g);
	add_targets(pw, g, o, d);
}

/* Runs fill and finish with everything freed on both ways out: a mistake
 * inside is passed on to d afterwards. */
static void
with_plan(Checkpoint *c, const CompileOptions *o, Diag *d,
    void (*finish)(PlanWriter *, Diag *, void *), void *user)
{
	Arena *a = arena_new();
	PlanWriter *pw = plan_writer_new();
	Diag inner = {0};
	volatile bool failed = false;

	if (setjmp(inner.jump) == 0) {
		fill(pw, a, c, o, &inner);
		finish(pw, &inner, user);
	} else {
		failed = true;
	}
	plan_writer_free(pw);
	arena_free(a);
	if (failed)
		err(d, inner.exit_code, NULL, "%s", inner.text);
}

typedef struct Memory {
	void *bytes;
	size_t length;
} Memory;

static void
to_memory(PlanWriter *pw, Diag *d, void *user)
{
	Memory *m = user;
	const void *bytes = pw_bytes(pw, &m->length);

	m->bytes = malloc(m->length);
	if (!m->bytes)
		err(d, 1, NULL, "no memory for a plan of %zu bytes", m->length);
	memcpy(m->bytes, bytes, m->length);
}

static void
to_file(PlanWriter *pw, Diag *d, void *user)
{
	const char *const *path = user;
	char why[PLAN_WHY];

	if (!pw_write(pw, *path, why))
		err(d, 1, NULL, "%s", why);
}

void
compile_plan(Checkpoint *c, const CompileOptions *o, Diag *d, void **bytes,
    size_t *length)
{
	Memory m = {0};

	with_plan(c, o, d, to_memory, &m);
	*bytes = m.bytes;
	*length = m.length;
}

void
compile_to_file(
    Checkpoint *c, const CompileOptions *o, Diag *d, const char *path)
{
	with_plan(c, o, d, to_file, &path);
}
