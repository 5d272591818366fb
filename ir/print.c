/* The text of a graph; parse.c reads it back.
 *
 *	graph "qwen3" vocab=32000 ctx=4096
 *	weight "qkv" : f32[96,64] = "q" 0+64, "kv" 8+32
 *	weight "norm" : f32[64] = one_plus "in.norm"
 *	%0 = input "tokens" : i32[T]  ; qwen3.lua:12
 *	%4 = rms_norm %2 %3 eps=1e-06 : f32[T,64]
 *	result %9
 *
 * A name after the op is that of a leaf or a label. In names and files a
 * backslash, a quote and control bytes are written \xHH.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ir_impl.h"

static void
print_escaped(const char *s, FILE *out)
{
	for (; *s != '\0'; s++) {
		unsigned char c = (unsigned char)*s;

		if (c < 0x20 || c == 0x7f || c == '"' || c == '\\')
			fprintf(out, "\\x%02x", c);
		else
			putc(c, out);
	}
}

static void
print_quoted(const char *s, FILE *out)
{
	putc('"', out);
	print_escaped(s, out);
	putc('"', out);
}

static void
print_type(const Type *t, FILE *out)
{
	char text[TYPE_TEXT];

	fprintf(out, " : %s", type_text(t, text));
}

/* The fewest digits, from 6 or 10 on, that read back as x. */
static void
print_f32(float x, FILE *out)
{
	char text[32];
	int digits = 6;

	do
		snprintf(text, sizeof text, "%.*g", digits, (double)x);
	while (strtof(text, NULL) != x && digits++ < 9);
	fputs(text, out);
}

static void
print_f64(double x, FILE *out)
{
	char text[32];
	int digits = 10;

	do
		snprintf(text, sizeof text, "%.*g", digits, x);
	while (strtod(text, NULL) != x && digits++ < 17);
	fputs(text, out);
}

static void
print_attr(const AttrInfo *a, const Attrs *values, FILE *out)
{
	const char *field = (const char *)values + a->offset;

	if (a->type == ATTR_flag) {
		if (*(const attr_flag *)field)
			fprintf(out, " %s", a->name);
		return;
	}
	fprintf(out, " %s=", a->name);
	if (a->type == ATTR_u32)
		fprintf(
		    out, "%" PRIu32, *(const attr_u32 *)(const void *)field);
	else if (a->type == ATTR_f32)
		print_f32(*(const attr_f32 *)(const void *)field, out);
	else
		print_f64(*(const attr_f64 *)(const void *)field, out);
}

static void
print_node(const Node *n, FILE *out)
{
	size_t i;

	fprintf(out, "%%%" PRIu32 " = %s", n->id, ops[n->op].name);
	if (n->name != NULL) {
		putc(' ', out);
		print_quoted(n->name, out);
	}
	for (i = 0; i < (size_t)ops[n->op].inputs; i++)
		fprintf(out, " %%%" PRIu32, n->in[i]->id);
	for (i = 0; i < attr_count; i++)
		if (attrs[i].op == n->op)
			print_attr(&attrs[i], &n->attr, out);
	print_type(&n->type, out);
	if (n->file != NULL) {
		fputs("  ; ", out);
		print_escaped(n->file, out);
		fprintf(out, ":%" PRIu32, n->line);
	}
	putc('\n', out);
}

static void
print_weight(const Weight *w, FILE *out)
{
	uint32_t i;

	fputs("weight ", out);
	print_quoted(w->name, out);
	print_type(&w->type, out);
	fputs(" =", out);
	if (w->map != MAP_NONE)
		fprintf(out, " %s", weight_maps[w->map]);
	for (i = 0; i < w->n_pieces; i++) {
		const WeightPiece *p = &w->pieces[i];

		fputs(i > 0 ? ", " : " ", out);
		print_quoted(p->tensor, out);
		if (p->row != 0 || p->rows != 0)
			fprintf(out, " %" PRIu32 "+%" PRIu32, p->row, p->rows);
	}
	putc('\n', out);
}

void
graph_print(const Graph *g, FILE *out)
{
	uint32_t i;

	fputs("graph ", out);
	print_quoted(g->arch != NULL ? g->arch : "", out);
	fprintf(out, " vocab=%" PRIu32 " ctx=%" PRIu32 "\n", g->vocab, g->ctx);
	for (i = 0; i < g->n_weights; i++)
		print_weight(&g->weights[i], out);
	for (i = 0; i < g->count; i++)
		print_node(g->nodes[i], out);
	if (g->result != NULL)
		fprintf(out, "result %%%" PRIu32 "\n", g->result->id);
}
