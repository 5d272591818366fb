/* Ops as Lua functions: their values are nodes of the graph. Argument lists
 * and attributes come from the op table. */
#include <limits.h>
#include <math.h>
#include <string.h>

#include "front_impl.h"
#include "suggest.h"

static const char value_key[] = "ingot.value";
static const char leaves_key[] = "ingot.leaves";

static const struct {
	const char *name;
	int dim;
} symbols[] = {{"T", DIM_T}, {"R", DIM_R}, {"B", DIM_B}, {"C", DIM_C}};
enum { N_SYMBOLS = sizeof symbols / sizeof symbols[0] };

/* ---- values ---- */

Node *
builder_value(lua_State *L, int index)
{
	Node **n = luaL_testudata(L, index, value_key);

	return n != NULL ? *n : NULL;
}

static void
push_value(lua_State *L, Node *n)
{
	Node **p = lua_newuserdatauv(L, sizeof *p, 0);

	*p = n;
	luaL_setmetatable(L, value_key);
}

static void
push_dim(lua_State *L, int64_t dim)
{
	int i;

	for (i = 0; i < N_SYMBOLS && symbols[i].dim != dim; i++)
		;
	if (i < N_SYMBOLS)
		lua_pushstring(L, symbols[i].name);
	else
		lua_pushinteger(L, dim);
}

static int
value_index(lua_State *L)
{
	const Node *n = builder_value(L, 1);
	const char *key = luaL_tolstring(L, 2, NULL);
	char text[SUGGEST_TEXT];
	Suggestion s;
	int i;

	if (n != NULL && strcmp(key, "dtype") == 0) {
		lua_pushstring(L, dtypes[n->type.dtype].name);
		return 1;
	}
	if (n != NULL && strcmp(key, "shape") == 0) {
		lua_createtable(L, n->type.n_dims, 0);
		for (i = 0; i < n->type.n_dims; i++) {
			push_dim(L, n->type.dim[i]);
			lua_rawseti(L, -2, i + 1);
		}
		return 1;
	}
	suggest_start(&s, key);
	suggest_offer(&s, "dtype");
	suggest_offer(&s, "shape");
	front_error(L, LEVEL_CALLER, "a value has no field '%s'%s", key,
	    suggest_text(&s, text));
}

static int
value_text(lua_State *L)
{
	const Node *n = builder_value(L, 1);
	char text[TYPE_TEXT];

	lua_pushstring(L, n != NULL ? type_text(&n->type, text) : "value");
	return 1;
}

/* ---- arguments ---- */

void
builder_shape(
    lua_State *L, int index, const char *what, Type *type, Level level)
{
	int i, j, n;

	if (lua_type(L, index) != LUA_TTABLE)
		front_error(L, level,
		    "%s: a shape like {T, 64} is missing; "
		    "argument %d is a %s",
		    what, index, luaL_typename(L, index));
	n = (int)lua_rawlen(L, index);
	if (n < 1 || n > MAX_DIMS)
		front_error(L, level, "%s: a shape has 1 to %d axes, not %d",
		    what, MAX_DIMS, n);
	type->n_dims = n;
	for (i = 0; i < n; i++) {
		int is_count = 0;

		lua_rawgeti(L, index, i + 1);
		type->dim[i] = lua_tointegerx(L, -1, &is_count);
		for (j = 0; j < N_SYMBOLS && !is_count; j++)
			if (lua_type(L, -1) == LUA_TSTRING &&
			    strcmp(lua_tostring(L, -1), symbols[j].name) == 0)
				break;
		if (!is_count && j < N_SYMBOLS)
			type->dim[i] = symbols[j].dim;
		else if (!is_count || type->dim[i] < 1)
			front_error(L, level,
			    "%s: axis %d of the shape is %s, "
			    "neither a count nor T, R, B or C",
			    what, i + 1, luaL_tolstring(L, -1, NULL));
		lua_pop(L, 1);
	}
}

DType
builder_dtype(lua_State *L, int index, const char *what, Level level)
{
	const char *name = lua_tostring(L, index);
	DType t = name != NULL ? dtype_by_name(name) : DT_COUNT;
	char text[SUGGEST_TEXT] = "";
	Suggestion s;
	int i;

	if (t != DT_COUNT)
		return t;
	if (name != NULL) {
		suggest_start(&s, name);
		for (i = 0; i < DT_COUNT; i++)
			suggest_offer(&s, dtypes[i].name);
		suggest_text(&s, text);
	}
	front_error(L, level, "%s: %s is not a dtype%s", what,
	    luaL_tolstring(L, index, NULL), text);
}

static Node *
operand(lua_State *L, Op op, int index)
{
	Node *n = builder_value(L, index);

	if (n == NULL)
		front_error(L, LEVEL_CALLER,
		    "%s: argument %d must be a value, but is %s %s",
		    ops[op].name, index, luaL_typename(L, index),
		    lua_isnoneornil(L, index) ? ""
					      : luaL_tolstring(L, index, NULL));
	return n;
}

static const AttrInfo *
find_attr(lua_State *L, Op op, const char *name)
{
	char text[SUGGEST_TEXT];
	Suggestion s;
	size_t i;

	suggest_start(&s, name);
	for (i = 0; i < attr_count; i++) {
		if (attrs[i].op != op)
			continue;
		if (strcmp(attrs[i].name, name) == 0)
			return &attrs[i];
		suggest_offer(&s, attrs[i].name);
	}
	front_error(L, LEVEL_CALLER, "%s: there is no attribute '%s'%s",
	    ops[op].name, name, suggest_text(&s, text));
}

/* Stores the value on top of the stack; false when it is of another kind. */
static bool
store_attr(lua_State *L, AttrType type, void *field)
{
	int ok = 0;
	lua_Integer i;
	double x;

	switch (type) {
	case ATTR_u32:
		i = lua_tointegerx(L, -1, &ok);
		ok = ok && (uint64_t)i <= UINT32_MAX; /* none below 0 */
		*(attr_u32 *)field = ok ? (attr_u32)i : 0;
		break;
	case ATTR_f32:
	case ATTR_f64:
		x = lua_tonumberx(L, -1, &ok);
		ok = ok && isfinite(x);
		if (type == ATTR_f64)
			*(attr_f64 *)field = x;
		else
			*(attr_f32 *)field = (attr_f32)x;
		break;
	case ATTR_flag:
		ok = lua_isboolean(L, -1);
		*(attr_flag *)field = lua_toboolean(L, -1);
		break;
	}
	return ok != 0;
}

static void
need_attrs(lua_State *L, Op op, int index)
{
	size_t i;

	for (i = 0; i < attr_count; i++) {
		if (attrs[i].op != op || !attrs[i].required)
			continue;
		if (lua_isnoneornil(L, index) ||
		    lua_getfield(L, index, attrs[i].name) == LUA_TNIL)
			front_error(L, LEVEL_CALLER,
			    "%s: attribute '%s' is missing", ops[op].name,
			    attrs[i].name);
		lua_pop(L, 1);
	}
}

static void
read_attrs(lua_State *L, Op op, int index, Attrs *out)
{
	static const char *const wanted[] = {[ATTR_u32] = "a count",
	    [ATTR_f32] = "a number",
	    [ATTR_f64] = "a number",
	    [ATTR_flag] = "true or false"};
	const AttrInfo *a;

	if (!lua_isnoneornil(L, index) && !lua_istable(L, index))
		front_error(L, LEVEL_CALLER,
		    "%s: argument %d must be a table of attributes, but is a "
		    "%s",
		    ops[op].name, index, luaL_typename(L, index));
	if (lua_istable(L, index))
		for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1)) {
			lua_pushvalue(L, -2); /* tostring may convert a key */
			a = find_attr(L, op, luaL_tolstring(L, -1, NULL));
			lua_pop(L, 2);
			if (!store_attr(L, a->type, (char *)out + a->offset))
				front_error(L, LEVEL_CALLER,
				    "%s: %s must be %s, but is %s",
				    ops[op].name, a->name, wanted[a->type],
				    luaL_tolstring(L, -1, NULL));
		}
	need_attrs(L, op, index);
}

/* ---- nodes ---- */

static int
add_node(lua_State *L, Op op, Node *const *in, const Attrs *attr,
    const Type *type, const char *name, Level level)
{
	Front *f = front_of(L);
	Place at = front_place(L, level);
	char why[WHY_BYTES];
	Node *n;

	if (f->graph->count == MAX_NODES)
		front_error(
		    L, level, "the model builds more than %d ops", MAX_NODES);
	n = graph_add(f->graph, op, in, attr, type, name, why);
	if (n == NULL)
		front_error(L, level, "%s", why);
	n->file = arena_strdup(f->arena, at.file);
	n->line = (uint32_t)at.line;
	push_value(L, n);
	return 1;
}

/* What every op but a leaf is in Lua; upvalue: the op. */
static int
build(lua_State *L)
{
	Op op = (Op)lua_tointeger(L, lua_upvalueindex(1));
	int i, n = ops[op].inputs;
	Node *in[MAX_INPUTS] = {0};
	Attrs attr = {0};
	Type type = {0};

	for (i = 0; i < n; i++)
		in[i] = operand(L, op, i + 1);
	if (lua_gettop(L) > n + 1)
		front_error(L, LEVEL_CALLER, "%s: takes %d arguments, not %d",
		    ops[op].name, n + 1, lua_gettop(L));
	if (op == OP_RESHAPE)
		builder_shape(L, n + 1, ops[op].name, &type, LEVEL_CALLER);
	else if (op == OP_CAST)
		type.dtype =
		    builder_dtype(L, n + 1, ops[op].name, LEVEL_CALLER);
	else
		read_attrs(L, op, n + 1, &attr);
	return add_node(L, op, in, &attr, &type, NULL, LEVEL_CALLER);
}

int
builder_leaf(
    lua_State *L, Op op, const char *name, const Type *type, Level level)
{
	const char *key = lua_pushfstring(L, "%s %s", ops[op].name, name);
	char old[TYPE_TEXT], new[TYPE_TEXT];
	const Node *n;

	lua_getfield(L, LUA_REGISTRYINDEX, leaves_key);
	if (lua_getfield(L, -1, key) == LUA_TNIL) {
		add_node(L, op, NULL, NULL, type, name, level);
		lua_pushvalue(L, -1);
		lua_setfield(L, -4, key);
		return 1;
	}
	n = builder_value(L, -1);
	if (n == NULL || !type_equal(&n->type, type))
		front_error(L, level, "%s: \"%s\" is %s, and was %s before",
		    ops[op].name, name, type_text(type, new),
		    n != NULL ? type_text(&n->type, old) : "nothing");
	return 1;
}

/* input(name): tokens and positions, one a row of the step, or rows, the
 * indices of the rows whose logits are wanted. */
static int
input(lua_State *L)
{
	const char *name = luaL_checkstring(L, 1);
	Type t = {DT_I32, 1, {DIM_T}};

	if (strcmp(name, "rows") == 0)
		t.dim[0] = DIM_R;
	return builder_leaf(L, OP_INPUT, name, &t, LEVEL_CALLER);
}

/* state(name, dtype, shape) */
static int
state(lua_State *L)
{
	const char *name = luaL_checkstring(L, 1);
	Type t = {0};

	t.dtype = builder_dtype(L, 2, "state", LEVEL_CALLER);
	builder_shape(L, 3, "state", &t, LEVEL_CALLER);
	return builder_leaf(L, OP_STATE, name, &t, LEVEL_CALLER);
}

/* label(value, name): names a value in listings; returns it. */
static int
label(lua_State *L)
{
	Node *n = builder_value(L, 1);
	const char *name = luaL_checkstring(L, 2);

	if (n == NULL)
		front_error(L, LEVEL_CALLER,
		    "label: argument 1 must be a value, but is a %s",
		    luaL_typename(L, 1));
	if (n->name != NULL)
		front_error(L, LEVEL_CALLER,
		    "label: the value is called \"%s\" already", n->name);
	n->name = arena_strdup(front_of(L)->arena, name);
	lua_settop(L, 1);
	return 1;
}

/* ---- opening ---- */

static void
push_op(lua_State *L, Op op)
{
	lua_pushinteger(L, op);
	lua_pushcclosure(L, build, 1);
}

static void
open_values(lua_State *L)
{
	luaL_newmetatable(L, value_key);
	lua_pushcfunction(L, value_index);
	lua_setfield(L, -2, "__index");
	lua_pushcfunction(L, value_text);
	lua_setfield(L, -2, "__tostring");
	push_op(L, OP_ADD);
	lua_setfield(L, -2, "__add");
	push_op(L, OP_MUL);
	lua_setfield(L, -2, "__mul");
	lua_pushboolean(L, 0);
	lua_setfield(L, -2, "__metatable");
	lua_pop(L, 1);
}

void
builder_open(lua_State *L)
{
	int i;

	open_values(L);
	lua_newtable(L);
	lua_setfield(L, LUA_REGISTRYINDEX, leaves_key);
	for (i = 0; i < OP_COUNT; i++) {
		if (ops[i].kind == KIND_LEAF)
			continue;
		push_op(L, (Op)i);
		lua_setglobal(L, ops[i].name);
	}
	for (i = 0; i < N_SYMBOLS; i++) {
		lua_pushstring(L, symbols[i].name);
		lua_setglobal(L, symbols[i].name);
	}
	lua_register(L, "input", input);
	lua_register(L, "state", state);
	lua_register(L, "label", label);
}
