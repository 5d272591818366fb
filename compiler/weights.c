/* The checkpoint as models see it: its configuration, its tensors, and
 * weights made of them. */
#include <string.h>

#include "../runtime/quote.h"
#include "front_impl.h"
#include "suggest.h"

static const char read_key[] = "ingot.read";

/* ---- the checkpoint ---- */

static void push_config(lua_State *L, const Value *v);

static void
push_list(lua_State *L, const Value *v)
{
	size_t i;

	lua_newtable(L);
	for (i = 0; i < v->u.list.count; i++) {
		const Value *item = &v->u.list.items[i];

		if (v->kind == VAL_ARRAY) {
			push_config(L, item);
			lua_rawseti(L, -2, (lua_Integer)i + 1);
		} else if (strncmp(item->key, "tokenizer.", 10) != 0) {
			/* Vocabularies are large, and nothing to a graph. */
			push_config(L, item);
			lua_setfield(L, -2, item->key);
		}
	}
}

static void
push_config(lua_State *L, const Value *v)
{
	luaL_checkstack(L, 8, "the configuration is nested too deep");
	switch (v->kind) {
	case VAL_NULL:
		lua_pushnil(L);
		break;
	case VAL_BOOL:
		lua_pushboolean(L, v->u.boolean);
		break;
	case VAL_INT:
		lua_pushinteger(L, v->u.integer);
		break;
	case VAL_FLOAT:
		lua_pushnumber(L, v->u.number);
		break;
	case VAL_STRING:
		lua_pushlstring(L, v->u.string.text, v->u.string.length);
		break;
	case VAL_ARRAY:
	case VAL_OBJECT:
		push_list(L, v);
		break;
	}
}

static Type
tensor_type(const CkptTensor *t)
{
	Type type = {t->type, t->n_dims, {0}};
	int i;

	for (i = 0; i < t->n_dims; i++)
		type.dim[i] = (int64_t)t->dims[i];
	return type;
}

/* checkpoint.tensor(name): {dtype = , shape = } of the tensor, or nil. */
static int
tensor(lua_State *L)
{
	const char *name = luaL_checkstring(L, 1);
	const CkptTensor *t = ckpt_find(front_of(L)->ckpt, name);
	int i;

	if (t == NULL)
		return 0;
	lua_createtable(L, 0, 2);
	lua_pushstring(L, t->type_name);
	lua_setfield(L, -2, "dtype");
	lua_createtable(L, t->n_dims, 0);
	for (i = 0; i < t->n_dims; i++) {
		lua_pushinteger(L, (lua_Integer)t->dims[i]);
		lua_rawseti(L, -2, i + 1);
	}
	lua_setfield(L, -2, "shape");
	return 1;
}

/* ---- weights ---- */

typedef struct Making {
	lua_State *L;
	Weight w;
	uint64_t rows; /* of the pieces so far */
	bool typed;    /* the first piece has set stored */
	DType stored;  /* dtype of the pieces */
} Making;

/* A name that stands in the model file may be misspelt; one that a library
 * looked up is right, and its neighbours are other weights. */
static noreturn void
no_tensor(Making *m, const char *name)
{
	const Checkpoint *c = front_of(m->L)->ckpt;
	Place by = front_place(m->L, LEVEL_CALLER);
	Place user = front_place(m->L, LEVEL_OUTSIDE);
	char text[SUGGEST_TEXT];
	Suggestion s;
	size_t i, n = strcmp(by.file, user.file) == 0 ? ckpt_count(c) : 0;

	suggest_start(&s, name);
	for (i = 0; i < n; i++)
		suggest_offer(&s, ckpt_tensor(c, i)->name);
	front_error(m->L, LEVEL_OUTSIDE,
	    "weight \"%s\": the checkpoint has no tensor %s%s", m->w.name, name,
	    suggest_text(&s, text));
}

static const CkptTensor *
find_tensor(Making *m, const char *name)
{
	const CkptTensor *t = ckpt_find(front_of(m->L)->ckpt, name);

	if (t == NULL)
		no_tensor(m, name);
	lua_getfield(m->L, LUA_REGISTRYINDEX, read_key);
	lua_pushboolean(m->L, 1);
	lua_setfield(m->L, -2, name);
	lua_pop(m->L, 1);
	return t;
}

/* All pieces of a weight have one dtype. */
static void
take_dtype(Making *m, const CkptTensor *t)
{
	if (t->type == DT_COUNT)
		front_error(m->L, LEVEL_OUTSIDE,
		    "tensor %s is of type %s, which cannot be read", t->name,
		    t->type_name);
	if (m->typed && t->type != m->stored)
		front_error(m->L, LEVEL_OUTSIDE,
		    "weight \"%s\": tensor %s is %s, but the tensors before "
		    "it are %s",
		    m->w.name, t->name, dtypes[t->type].name,
		    dtypes[m->stored].name);
	m->stored = t->type;
	m->typed = true;
}

static noreturn void
wrong_shape(Making *m, const CkptTensor *t, const char *must)
{
	Type is = tensor_type(t);
	char got[TYPE_TEXT], want[TYPE_TEXT];

	m->w.type.dtype = t->type;
	front_error(m->L, LEVEL_OUTSIDE,
	    "weight \"%s\": tensor %s is %s, but must be %s%s", m->w.name,
	    t->name, type_text(&is, got), must, type_text(&m->w.type, want));
}

/* Whether a and b differ in axes of 1 alone. */
static bool
same_axes(const Type *a, const Type *b)
{
	int i = 0, j = 0;

	for (;;) {
		while (i < a->n_dims && a->dim[i] == 1)
			i++;
		while (j < b->n_dims && b->dim[j] == 1)
			j++;
		if (i == a->n_dims || j == b->n_dims)
			return i == a->n_dims && j == b->n_dims;
		if (a->dim[i++] != b->dim[j++])
			return false;
	}
}

/* Rows of t as a matrix [.., its last axis]. */
static uint64_t
rows_of(const Type *t)
{
	uint64_t n = 1;
	int i;

	for (i = 0; i + 1 < t->n_dims; i++)
		n *= (uint64_t)t->dim[i];
	return n;
}

/* The argument is a tensor's name: all of it is the weight. */
static void
whole_tensor(Making *m, const char *name)
{
	const CkptTensor *t = find_tensor(m, name);
	Type is = tensor_type(t);

	take_dtype(m, t);
	if (!same_axes(&is, &m->w.type))
		wrong_shape(m, t, "");
	m->rows = rows_of(&m->w.type);
	m->w.n_pieces = 1;
	m->w.pieces[0] = (WeightPiece){t->name, 0, (uint32_t)m->rows};
}

static uint64_t
piece_count(Making *m, int field)
{
	lua_Integer n;

	lua_rawgeti(m->L, -1, field);
	n = lua_tointeger(m->L, -1);
	lua_pop(m->L, 1);
	if (n < 0 || n > INT32_MAX)
		front_error(m->L, LEVEL_OUTSIDE,
		    "weight \"%s\": a piece is {tensor, row, rows, of}",
		    m->w.name);
	return (uint64_t)n;
}

/* {tensor, row, rows, of} is on top of the stack: rows from row on, of a
 * tensor that has of rows as long as the weight's. */
static void
one_piece(Making *m)
{
	uint64_t row = piece_count(m, 2), rows = piece_count(m, 3);
	uint64_t of = piece_count(m, 4);
	const Type *type = &m->w.type;
	const CkptTensor *t;
	const char *name;
	Type is;

	lua_rawgeti(m->L, -1, 1);
	name = lua_tostring(m->L, -1);
	t = find_tensor(m, name != NULL ? name : "");
	lua_pop(m->L, 1);
	take_dtype(m, t);
	is = tensor_type(t);
	if (row + rows > of || rows_of(&is) != of || is.n_dims < 1 ||
	    is.dim[is.n_dims - 1] != type->dim[type->n_dims - 1])
		wrong_shape(m, t, "rows for ");
	m->rows += rows;
	m->w.pieces[m->w.n_pieces++] =
	    (WeightPiece){t->name, (uint32_t)row, (uint32_t)rows};
}

static void
all_pieces(Making *m, int index)
{
	size_t i, n = lua_rawlen(m->L, index);
	char text[TYPE_TEXT];

	for (i = 0; i < n; i++) {
		if (lua_rawgeti(m->L, index, (lua_Integer)i + 1) != LUA_TTABLE)
			front_error(m->L, LEVEL_OUTSIDE,
			    "weight \"%s\": a piece is {tensor, row, rows, of}",
			    m->w.name);
		one_piece(m);
		lua_pop(m->L, 1);
	}
	if (m->rows != rows_of(&m->w.type))
		front_error(m->L, LEVEL_OUTSIDE,
		    "weight \"%s\": the pieces have %llu rows, but %s has %llu",
		    m->w.name, (unsigned long long)m->rows,
		    type_text(&m->w.type, text),
		    (unsigned long long)rows_of(&m->w.type));
}

/* {map = , dtype = }: what is done with the values on load. */
static void
read_how(Making *m, int index)
{
	static const char *const maps[] = {
	    "as stored", "one_plus", "neg_exp", NULL};
	DType dtype = m->stored;

	if (!lua_isnoneornil(m->L, index)) {
		luaL_checktype(m->L, index, LUA_TTABLE);
		lua_getfield(m->L, index, "map");
		m->w.map =
		    (WeightMap)luaL_checkoption(m->L, -1, maps[MAP_NONE], maps);
		if (m->w.map != MAP_NONE)
			dtype = DT_F32;
		if (lua_getfield(m->L, index, "dtype") != LUA_TNIL)
			dtype =
			    builder_dtype(m->L, -1, "weight", LEVEL_OUTSIDE);
		lua_pop(m->L, 2);
	}
	if (dtype != m->stored &&
	    (dtype != DT_F32 || dtypes[m->stored].kind != DK_FLOAT))
		front_error(m->L, LEVEL_OUTSIDE,
		    "weight \"%s\": tensor %s is %s, which cannot be read as "
		    "%s",
		    m->w.name, m->w.pieces[0].tensor, dtypes[m->stored].name,
		    dtypes[dtype].name);
	m->w.type.dtype = dtype;
}

static void
check_limits(Making *m, int index)
{
	Front *f = front_of(m->L);
	lua_Unsigned n = lua_rawlen(m->L, index); /* of a name: its bytes */

	n = lua_istable(m->L, index) ? n : 1;
	if (f->graph->n_weights >= MAX_WEIGHTS)
		front_error(m->L, LEVEL_OUTSIDE,
		    "the model has more than %d weights", MAX_WEIGHTS);
	if (n > MAX_PIECES - f->n_pieces)
		front_error(m->L, LEVEL_OUTSIDE,
		    "weight \"%s\": all weights together have more than %d "
		    "pieces",
		    m->w.name, MAX_PIECES);
	f->n_pieces += (size_t)n;
}

/* weight(name, shape, pieces [, how]): pieces is the name of a tensor, or a
 * list of {tensor, row, rows, of}; how may hold map = "one_plus" or "neg_exp"
 * and dtype = "f32". */
static int
weight(lua_State *L)
{
	Front *f = front_of(L);
	Making m = {.L = L, .stored = DT_F32};

	m.w.name = luaL_checkstring(L, 1);
	builder_shape(L, 2, "weight", &m.w.type, LEVEL_OUTSIDE);
	check_limits(&m, 3);
	if (lua_type(L, 3) == LUA_TSTRING) {
		m.w.pieces = arena_alloc(f->arena, sizeof *m.w.pieces);
		whole_tensor(&m, lua_tostring(L, 3));
	} else {
		luaL_checktype(L, 3, LUA_TTABLE);
		m.w.pieces = arena_array(
		    f->arena, lua_rawlen(L, 3) + 1, sizeof *m.w.pieces);
		all_pieces(&m, 3);
	}
	read_how(&m, 4);
	if (graph_weight(f->graph, m.w.name) == NULL)
		graph_add_weight(f->graph, &m.w);
	return builder_leaf(L, OP_WEIGHT, m.w.name, &m.w.type, LEVEL_OUTSIDE);
}

/* ---- tensors without a reader ---- */

/* ignore(beginning): no op reads the tensors whose names begin so. */
static int
ignore(lua_State *L)
{
	Front *f = front_of(L);
	const char *beginning = luaL_checkstring(L, 1);
	size_t n = f->n_ignored;
	const char **more;

	if (n == MAX_IGNORED)
		front_error(L, LEVEL_CALLER,
		    "ignore: more than %d beginnings are ignored", MAX_IGNORED);
	if ((n & (n + 1)) == 0) { /* full at 0, 1, 3, 7, ... */
		more = arena_array(f->arena, 2 * n + 1, sizeof *more);
		if (n > 0)
			memcpy(more, f->ignored, n * sizeof *more);
		f->ignored = more;
	}
	f->ignored[f->n_ignored++] = arena_strdup(f->arena, beginning);
	return 0;
}

static bool
is_ignored(const Front *f, const char *name)
{
	size_t i;

	for (i = 0; i < f->n_ignored; i++)
		if (strncmp(name, f->ignored[i], strlen(f->ignored[i])) == 0)
			return true;
	return false;
}

static bool
is_read(lua_State *L, const char *name)
{
	bool yes;

	lua_getfield(L, LUA_REGISTRYINDEX, read_key);
	yes = lua_getfield(L, -1, name) != LUA_TNIL;
	lua_pop(L, 2);
	return yes;
}

/* Appends name to the list on top of the stack. */
static void
list_name(lua_State *L, const char *name)
{
	const char *list = lua_tostring(L, -1);
	Quote q;

	lua_pushfstring(L, "%s%s%s", list, *list != '\0' ? ", " : "",
	    quote(&q, name, strlen(name)));
	lua_remove(L, -2);
}

void
weights_all_read(lua_State *L)
{
	enum { SHOWN = 3 };
	Front *f = front_of(L);
	size_t i, unread = 0;

	lua_pushliteral(L, "");
	for (i = 0; i < ckpt_count(f->ckpt); i++) {
		const char *name = ckpt_tensor(f->ckpt, i)->name;

		if (is_read(L, name))
			continue;
		if (!is_ignored(f, name)) {
			if (unread++ < SHOWN)
				list_name(L, name);
		} else if (f->options->ignored != NULL) {
			f->options->ignored(f->options->user, name);
		}
	}
	if (unread > 0)
		luaL_error(L,
		    "%s: no op reads %d of the checkpoint's tensors: %s%s",
		    f->model, (int)unread, lua_tostring(L, -1),
		    unread > SHOWN ? ", ..." : "");
	lua_pop(L, 1);
}

/* ---- opening ---- */

void
weights_open(lua_State *L)
{
	const Front *f = front_of(L);
	bool gguf = ckpt_kind(f->ckpt) == CKPT_GGUF;

	lua_newtable(L);
	lua_setfield(L, LUA_REGISTRYINDEX, read_key);
	lua_createtable(L, 0, 4);
	lua_pushstring(L, gguf ? "gguf" : "folder");
	lua_setfield(L, -2, "kind");
	lua_pushstring(L, f->arch);
	lua_setfield(L, -2, "arch");
	push_config(L, ckpt_config(f->ckpt));
	lua_setfield(L, -2, "config");
	lua_pushcfunction(L, tensor);
	lua_setfield(L, -2, "tensor");
	lua_setglobal(L, "checkpoint");
	lua_pushstring(L, dtypes[f->options->kv].name);
	lua_setglobal(L, "kv_dtype");
	lua_register(L, "weight", weight);
	lua_register(L, "ignore", ignore);
}
