/* Reads the text of print.c.
 *
 * A Reader walks over one line at a time. Its first complaint stays in why and
 * turns every later step into a failure, so callers may check at the end. */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "ir_impl.h"

typedef struct Reader {
	Graph *g;
	const char *at; /* the rest of the line; ends in NUL */
	unsigned line;
	const char *file; /* the last one made, to share it */
	char *why;
	bool failed;
} Reader;

static bool
fault(Reader *r, const char *fmt, ...)
{
	va_list args;
	int used;

	if (r->failed)
		return false;
	r->failed = true;
	used = snprintf(r->why, WHY_BYTES, "line %u: ", r->line);
	va_start(args, fmt);
	vsnprintf(r->why + used, WHY_BYTES - (size_t)used, fmt, args);
	va_end(args);
	return false;
}

static void
blanks(Reader *r)
{
	while (*r->at == ' ')
		r->at++;
}

/* Steps over text when it is next. */
static bool
next_is(Reader *r, const char *text)
{
	size_t n = strlen(text);

	blanks(r);
	if (r->failed || strncmp(r->at, text, n) != 0)
		return false;
	r->at += n;
	return true;
}

static bool
need(Reader *r, const char *text)
{
	return next_is(r, text) ||
	       fault(r, "\"%s\" is missing before \"%.40s\"", text, r->at);
}

/* A word of letters, digits and underscores into out; "" when there is none. */
static const char *
word(Reader *r, char out[32])
{
	size_t n = 0;

	blanks(r);
	while (n < 31 && (isalnum((unsigned char)*r->at) || *r->at == '_'))
		out[n++] = *r->at++;
	out[n] = '\0';
	return out;
}

static uint32_t
number(Reader *r)
{
	unsigned long long n;
	char *end;

	blanks(r);
	errno = 0;
	n = isdigit((unsigned char)*r->at) ? strtoull(r->at, &end, 10) : 0;
	if (!isdigit((unsigned char)*r->at) || errno != 0 || n > UINT32_MAX) {
		fault(r, "a count is missing before \"%.40s\"", r->at);
		return 0;
	}
	r->at = end;
	return (uint32_t)n;
}

/* ---- strings ---- */

static int
hex(char c)
{
	const char *digits = "0123456789abcdef";
	const char *d = c != '\0' ? strchr(digits, c) : NULL;

	return d != NULL ? (int)(d - digits) : -1;
}

/* The n bytes at s without their escapes, in the arena. */
static char *
unescape(Reader *r, const char *s, size_t n)
{
	char *out = arena_strndup(r->g->arena, s, n);
	size_t i, used = 0;

	for (i = 0; i < n; i++) {
		int high = -1, low = -1;

		if (s[i] != '\\') {
			out[used++] = s[i];
			continue;
		}
		if (i + 3 < n && s[i + 1] == 'x') {
			high = hex(s[i + 2]);
			low = hex(s[i + 3]);
		}
		if (high < 0 || low < 0 || high + low == 0) {
			fault(r, "a bad escape in \"%.40s\"", s);
			break;
		}
		out[used++] = (char)(16 * high + low);
		i += 3;
	}
	out[used] = '\0';
	return out;
}

static char *
quoted(Reader *r)
{
	const char *end;
	char *s;

	if (!need(r, "\""))
		return NULL;
	end = strchr(r->at, '"');
	if (end == NULL) {
		fault(r, "a quote is not closed");
		return NULL;
	}
	s = unescape(r, r->at, (size_t)(end - r->at));
	r->at = end + 1;
	return s;
}

/* ---- pieces of a line ---- */

static int64_t
dim(Reader *r)
{
	static const char symbols[] = "?TRBC";
	const char *s;

	blanks(r);
	s = *r->at != '\0' && *r->at != '?' ? strchr(symbols, *r->at) : NULL;
	if (s == NULL)
		return number(r);
	r->at++;
	return -(int64_t)(s - symbols);
}

static Type
type(Reader *r)
{
	char name[32];
	Type t = {0};

	need(r, ":");
	t.dtype = dtype_by_name(word(r, name));
	if (t.dtype == DT_COUNT)
		fault(r, "\"%s\" is not a dtype", name);
	need(r, "[");
	do {
		if (t.n_dims == MAX_DIMS)
			fault(r, "more than %d axes", (int)MAX_DIMS);
		else
			t.dim[t.n_dims++] = dim(r);
	} while (next_is(r, ","));
	need(r, "]");
	return t;
}

static Node *
reference(Reader *r)
{
	uint32_t id;

	if (!need(r, "%"))
		return NULL;
	id = number(r);
	if (!r->failed && id >= r->g->count)
		fault(r, "%%%u is not defined before", id);
	return r->failed ? NULL : r->g->nodes[id];
}

static void
attr_value(Reader *r, const AttrInfo *a, Attrs *values)
{
	void *field = (char *)values + a->offset;
	char *end = NULL;

	if (a->type == ATTR_flag) {
		*(attr_flag *)field = true;
		return;
	}
	if (!need(r, "="))
		return;
	if (a->type == ATTR_u32)
		*(attr_u32 *)field = number(r);
	else if (a->type == ATTR_f32)
		*(attr_f32 *)field = strtof(r->at, &end);
	else
		*(attr_f64 *)field = strtod(r->at, &end);
	if (end == r->at)
		fault(r, "%s has no value", a->name);
	else if (end != NULL)
		r->at = end;
}

static const AttrInfo *
find_attr(Op op, const char *name)
{
	size_t i;

	for (i = 0; i < attr_count; i++)
		if (attrs[i].op == op && strcmp(attrs[i].name, name) == 0)
			return &attrs[i];
	return NULL;
}

static Attrs
node_attrs(Reader *r, Op op)
{
	Attrs values = {0};
	uint32_t given = 0;
	char name[32];
	size_t i;

	while (!r->failed && *word(r, name) != '\0') {
		const AttrInfo *a = find_attr(op, name);

		if (a == NULL || (given >> (a - attrs) & 1) != 0) {
			fault(r, "%s: %s attribute %s", ops[op].name,
			    a == NULL ? "no" : "a second", name);
			break;
		}
		given |= (uint32_t)1 << (a - attrs);
		attr_value(r, a, &values);
	}
	for (i = 0; i < attr_count; i++)
		if (attrs[i].op == op && attrs[i].required &&
		    (given >> i & 1) == 0)
			fault(r, "%s: %s is missing", ops[op].name,
			    attrs[i].name);
	return values;
}

/* "; file:line", or nothing. */
static void
source(Reader *r, const char **file, uint32_t *line)
{
	const char *start, *colon;
	char *name;

	*file = NULL;
	*line = 0;
	if (!next_is(r, "; "))
		return;
	start = r->at;
	colon = strrchr(start, ':');
	if (colon == NULL) {
		fault(r, "a model line is not file:line");
		return;
	}
	name = unescape(r, start, (size_t)(colon - start));
	if (r->file == NULL || strcmp(r->file, name) != 0)
		r->file = name;
	r->at = colon + 1;
	*file = r->file;
	*line = number(r);
}

/* ---- lines ---- */

static void
header(Reader *r)
{
	r->g->arch = quoted(r);
	if (need(r, "vocab="))
		r->g->vocab = number(r);
	if (need(r, "ctx="))
		r->g->ctx = number(r);
}

static WeightMap
map(Reader *r)
{
	char name[32];
	int m;

	if (*word(r, name) == '\0')
		return MAP_NONE;
	for (m = MAP_NONE + 1; m < WEIGHT_MAPS; m++)
		if (strcmp(weight_maps[m], name) == 0)
			return (WeightMap)m;
	fault(r, "\"%s\" is not a map", name);
	return MAP_NONE;
}

static WeightPiece
piece(Reader *r)
{
	WeightPiece p = {0};

	p.tensor = quoted(r);
	blanks(r);
	if (isdigit((unsigned char)*r->at)) {
		p.row = number(r);
		need(r, "+");
		p.rows = number(r);
	}
	return p;
}

static void
weight_line(Reader *r)
{
	uint32_t cap = 0;
	Weight w = {0};

	w.name = quoted(r);
	w.type = type(r);
	need(r, "=");
	w.map = map(r);
	do {
		if (w.n_pieces == cap) {
			WeightPiece *old = w.pieces;

			cap = cap ? 2 * cap : 4;
			w.pieces =
			    arena_array(r->g->arena, cap, sizeof *w.pieces);
			if (old != NULL)
				memcpy(w.pieces, old, w.n_pieces * sizeof *old);
		}
		w.pieces[w.n_pieces++] = piece(r);
	} while (next_is(r, ","));
	if (!r->failed)
		graph_add_weight(r->g, &w);
}

static void
add_node(Reader *r, Op op, Node **in, const Attrs *attr, const Type *t,
    const char *name)
{
	char why[WHY_BYTES], got[TYPE_TEXT], want[TYPE_TEXT];
	const char *file;
	uint32_t line;
	Node *n;

	source(r, &file, &line);
	if (r->failed)
		return;
	n = graph_add(r->g, op, in, attr, t, name, why);
	if (n == NULL) {
		fault(r, "%s", why);
	} else if (!type_equal(&n->type, t)) {
		fault(r, "%s: typed %s but is %s", ops[op].name,
		    type_text(t, want), type_text(&n->type, got));
	} else {
		n->file = file;
		n->line = line;
	}
}

static void
node_line(Reader *r)
{
	Node *in[MAX_INPUTS] = {0};
	const char *name = NULL;
	char op_name[32];
	Attrs attr;
	Type t;
	Op op;
	int i;

	if (number(r) != r->g->count)
		fault(r, "the next node is %%%u", r->g->count);
	need(r, "=");
	op = op_by_name(word(r, op_name));
	if (op == OP_COUNT) {
		fault(r, "\"%s\" is not an op", op_name);
		return;
	}
	blanks(r);
	if (*r->at == '"')
		name = quoted(r);
	for (i = 0; i < ops[op].inputs; i++)
		in[i] = reference(r);
	attr = node_attrs(r, op);
	t = type(r);
	add_node(r, op, in, &attr, &t, name);
}

static void
read_line(Reader *r)
{
	if (r->line == 1) {
		if (need(r, "graph"))
			header(r);
	} else if (next_is(r, "weight")) {
		weight_line(r);
	} else if (next_is(r, "%")) {
		node_line(r);
	} else if (next_is(r, "result")) {
		if (r->g->result != NULL)
			fault(r, "a second result");
		r->g->result = reference(r);
	} else {
		blanks(r);
		if (*r->at != '\0')
			fault(r, "not a line of a graph: \"%.40s\"", r->at);
	}
	blanks(r);
	if (*r->at != '\0')
		fault(r, "left over: \"%.40s\"", r->at);
}

Graph *
graph_parse(Arena *a, const char *text, size_t length, char *why)
{
	Reader r = {.g = graph_new(a), .why = why};
	const char *end = text + length;

	while (text < end && !r.failed) {
		const char *stop = memchr(text, '\n', (size_t)(end - text));
		size_t n = (size_t)((stop != NULL ? stop : end) - text);

		r.line++;
		r.at = arena_strndup(a, text, n);
		if (strlen(r.at) != n)
			fault(&r, "a NUL byte");
		read_line(&r);
		text += n + (stop != NULL);
	}
	if (r.line == 0)
		fault(&r, "the text is empty");
	return r.failed ? NULL : r.g;
}
