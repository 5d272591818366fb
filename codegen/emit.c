/* From regions to kernels and launches; equal texts become one kernel. */
#include <string.h>

#include "emit.h"

static void (*const emit_family[FAM_COUNT])(Kernel *) = {
    [FAM_ROW] = emit_row,
    [FAM_MATMUL] = emit_matmul,
    [FAM_EXPERTS] = emit_experts,
    [FAM_CONV] = emit_conv,
    [FAM_DELTA] = emit_delta,
    [FAM_ATTENTION] = emit_attention,
};

noreturn void
err_missing(const Lowered *l, const Missing *m, Diag *d)
{
	char type[TYPE_TEXT];

	err(d, 3, m->op, "%s to %s has no kernel for target %s: %s",
	    ops[m->op->op].name, type_text(&m->op->type, type), l->target->name,
	    m->why);
}

noreturn void
no_kernel(Kernel *k, const Node *n, const char *why)
{
	k->missing = (Missing){n, why};
	err_missing(k->l, &k->missing, k->diag);
}

static Kernel
kernel_new(const Lowered *l, const Region *r)
{
	Arena *a = l->graph->arena;
	Kernel k = {.l = l, .r = r, .arena = a};

	k.body.arena = a;
	k.body.indent = 1;
	k.names = arena_array(a, l->graph->count, sizeof *k.names);
	k.declared = arena_array(a, l->graph->count, sizeof *k.declared);
	k.counts = arena_array(a, OP_COUNT, sizeof *k.counts);
	return k;
}

/* The region's ops, with names as in the text, behind prefix a line each. */
static const char *
ops_text(Kernel *k, const char *prefix)
{
	Text t = {.arena = k->arena};

	for (uint32_t i = 0; i < k->r->n_ops; i++) {
		const Node *n = k->r->ops[i];
		char type[TYPE_TEXT];

		text_add(&t, "%s%s = %s(", prefix, value_name(k, n),
		    ops[n->op].name);
		for (int j = 0; j < ops[n->op].inputs; j++) {
			Node *in = root_of(n->in[j]);

			text_add(&t, "%s%s", j > 0 ? ", " : "",
			    ops[in->op].kind == KIND_LEAF
				? type_text(&in->type, type)
				: value_name(k, in));
		}
		text_add(&t, "): %s\n", type_text(&n->type, type));
	}
	return t.at;
}

static const char *
arg_type(const Arg *a)
{
	switch (a->kind) {
	case ARG_BUFFER:
	case ARG_WEIGHT:
		return dtypes[a->node->type.dtype].kind == DK_QUANT ? "uint8_t"
		       : a->node->type.dtype == DT_Q8A              ? "Q8A"
		       : a->node->type.dtype == DT_F32              ? "float"
		       : a->node->type.dtype == DT_I32              ? "uint32_t"
						       : "uint16_t";
	case ARG_INPUT:
		return "uint32_t";
	default:
		return a->kind == ARG_STATE && a->node->type.dtype == DT_BF16
			   ? "uint16_t"
			   : "float";
	}
}

static bool
is_written(const Kernel *k, const Arg *a)
{
	return a->kind == ARG_STATE || a->kind == ARG_LOGITS ||
	       (a->kind == ARG_BUFFER && in_region(k, a->node));
}

/* Whether a kernel's body reads its parameter s. */
static bool
uses_step(const char *body)
{
	return strstr(body, " s->") || strstr(body, "(s->") ||
	       strstr(body, ", s)") || strstr(body, "(s)");
}

/* Everything behind the kernel's name. */
static const char *
finish_text(Kernel *k)
{
	Text t = {.arena = k->arena};

	text_line(&t, "(void *const *arg, const StepArgs *s, uint32_t wg)");
	text_line(&t, "{");
	for (uint32_t i = 0; i < k->n_args; i++)
		text_line(&t, "\t%s%s *%s = arg[%u];",
		    is_written(k, &k->args[i]) ? "" : "const ",
		    arg_type(&k->args[i]), k->args[i].name, i);
	text_line(&t, uses_step(k->body.at) ? "" : "\t(void)s;\n");
	text_add(&t, "%s}\n", k->body.at);
	return t.at;
}

static bool
name_taken(const Emitted *e, const char *name)
{
	for (uint32_t i = 0; i < e->n_codes; i++)
		if (strcmp(e->codes[i].name, name) == 0)
			return true;
	return false;
}

/* The kernel with this text, or a new one under a name of its own. */
static uint32_t
intern(Emitted *e, Kernel *k, const char **bodies)
{
	Arena *a = k->arena;
	const char *body = finish_text(k), *name = k->stem;

	for (uint32_t i = 0; i < e->n_codes; i++)
		if (strcmp(bodies[i], body) == 0)
			return i;
	for (uint32_t n = 2; name_taken(e, name); n++)
		name = arena_printf(a, "%s_%u", k->stem, n);
	bodies[e->n_codes] = body;
	e->codes[e->n_codes] = (Code){name, k->r->family,
	    arena_printf(a, "/*\n%s */\nIG_KERNEL void\n%s%s",
		ops_text(k, " * "), name, body)};
	return e->n_codes++;
}

/* Writes the kernel of k's region; false when an op has none. */
static bool
write_kernel(Kernel *k, Diag *d)
{
	Diag inner = {0};

	k->diag = &inner;
	if (setjmp(inner.jump) == 0) {
		emit_family[k->r->family](k);
		return true;
	}
	if (!k->missing.op)
		err(d, inner.exit_code, NULL, "%s", inner.text);
	return false;
}

static void
emit_region(Emitted *e, const Region *r, const char **bodies, Diag *d)
{
	Kernel k = kernel_new(e->l, r);
	Launch *launch = &e->launches[e->n_launches++];
	Arg *args;

	if (!write_kernel(&k, d)) {
		e->missing[e->n_missing++] = k.missing;
		k = kernel_new(e->l, r);
		k.stem = "missing";
		k.grid = (Grid){SYM_ONE, 1, 1, 0};
		text_line(&k.body, "/* %s */", ops[r->ops[0]->op].name);
	}
	args = arena_array(k.arena, k.n_args, sizeof *args);
	memcpy(args, k.args, k.n_args * sizeof *args);
	*launch = (Launch){intern(e, &k, bodies), k.r, k.grid, args, k.n_args,
	    ops_text(&k, "")};
}

Emitted *
emit_anyway(const Lowered *l, Diag *d)
{
	Arena *a = l->graph->arena;
	Emitted *e = arena_alloc(a, sizeof *e);
	const char **bodies = arena_array(a, l->n_regions, sizeof *bodies);

	e->l = l;
	e->codes = arena_array(a, l->n_regions, sizeof *e->codes);
	e->launches = arena_array(a, l->n_regions, sizeof *e->launches);
	e->missing = arena_array(a, l->n_regions, sizeof *e->missing);
	for (uint32_t i = 0; i < l->n_regions; i++)
		emit_region(e, &l->regions[i], bodies, d);
	return e;
}

Emitted *
emit(const Lowered *l, Diag *d)
{
	Emitted *e = emit_anyway(l, d);

	if (e->n_missing > 0)
		err_missing(l, &e->missing[0], d);
	return e;
}
