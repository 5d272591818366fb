/* The Lua state that models run in: base, string, table and math, counted
 * steps and bytes, and libraries from the binary or beside the model. */
#include <lualib.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "embed.h"
#include "front_impl.h"
#include "suggest.h"

enum { STEP_CHUNK = 100000, MAX_SOURCE = 1 << 20 };

static const char loaded_key[] = "ingot.loaded";
static const char costs_key[] = "ingot.costs";

Front *
front_of(lua_State *L)
{
	return *(Front **)lua_getextraspace(L);
}

const char *
path_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash != NULL ? slash + 1 : path;
}

/* ---- where ---- */

static bool
lua_line(lua_State *L, int level, lua_Debug *ar)
{
	return lua_getstack(L, level, ar) && lua_getinfo(L, "Sl", ar);
}

Place
front_place(lua_State *L, Level level)
{
	Place at = {"", 0};
	lua_Debug ar;
	int i;

	for (i = 0; lua_line(L, i, &ar); i++) {
		if (ar.currentline <= 0)
			continue;
		if (at.line != 0 && strcmp(at.file, ar.short_src) == 0)
			continue;
		snprintf(at.file, sizeof at.file, "%s", ar.short_src);
		at.line = ar.currentline;
		if (level == LEVEL_CALLER)
			break;
		level = LEVEL_CALLER; /* the next other file is it */
	}
	return at;
}

noreturn void
front_error(lua_State *L, Level level, const char *fmt, ...)
{
	Place at = front_place(L, level);
	char text[1024];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	if (at.line > 0)
		lua_pushfstring(L, "%s:%d: %s", at.file, at.line, text);
	else
		lua_pushstring(L, text);
	lua_error(L);
	abort(); /* lua_error does not return, but does not say so */
}

/* ---- limits ---- */

static void *
allocate(void *user, void *p, size_t old, size_t size)
{
	Front *f = user;
	void *q;

	if (p == NULL)
		old = 0; /* then it is a type, not a size */
	if (size == 0) {
		free(p);
		f->memory -= old;
		return NULL;
	}
	if (size > old && (size - old > MAX_MEMORY - f->memory ||
			      f->allocated > MAX_ALLOCATED))
		return NULL;
	q = realloc(p, size);
	if (q == NULL)
		return NULL;
	f->memory += size - old;
	if (size > old)
		f->allocated += size - old;
	return q;
}

static void
charge(lua_State *L, double steps)
{
	Front *f = front_of(L);

	if (steps < (double)(MAX_STEPS - f->steps)) {
		f->steps += (int64_t)steps;
		return;
	}
	f->steps = MAX_STEPS;
	front_error(L, LEVEL_CALLER,
	    "the model has run %d million steps without an end",
	    MAX_STEPS / 1000000);
}

/* Lua counts no step inside a library function, so a call that may loop there
 * is charged before it runs; and addresses, which change from run to run, must
 * not become text. */
typedef enum Cost {
	COST_NONE,
	COST_PATTERN, /* what the worst backtracking takes */
	COST_LENGTH,  /* of the string or table */
	COST_SHIFT,   /* the same, when there is a position */
	COST_SHIFTED, /* the same, with one argument less */
	COST_SORT,
	COST_UNPACK,
	COST_TEXT,  /* no address in the text of any argument */
	COST_ERROR, /* the argument is a sentence */
	COST_INPUT  /* the argument is an input of a graph */
} Cost;

static const struct {
	const char *library, *function;
	Cost cost;
} costs[] = {{"string", "find", COST_PATTERN},
    {"string", "match", COST_PATTERN}, {"string", "gmatch", COST_PATTERN},
    {"string", "gsub", COST_PATTERN}, {"string", "byte", COST_LENGTH},
    {"string", "unpack", COST_LENGTH}, {"table", "concat", COST_LENGTH},
    {"table", "insert", COST_SHIFT}, {"table", "remove", COST_SHIFTED},
    {"table", "sort", COST_SORT}, {"table", "unpack", COST_UNPACK},
    {"_G", "tostring", COST_TEXT}, {"string", "format", COST_TEXT},
    {"_G", "error", COST_ERROR}, {"_G", "input", COST_INPUT}};

/* Pushes argument i of the function being called, if it has that many. */
static bool
argument(lua_State *L, lua_Debug *ar, int i)
{
	return lua_getlocal(L, ar, i) != NULL;
}

static double
length_of(lua_State *L, lua_Debug *ar, int i)
{
	double n = 0;

	if (argument(L, ar, i)) {
		n = (double)lua_rawlen(L, -1);
		lua_pop(L, 1);
	}
	return n;
}

/* Each repetition may try every length at every length of those before it,
 * from every start. A ] or % that makes one a plain character is not looked
 * at: that charges too much. */
static double
pattern_steps(lua_State *L, lua_Debug *ar)
{
	double n = length_of(L, ar, 1) + 2, steps = n;
	size_t length, i;
	const char *s;

	if (!argument(L, ar, 2))
		return 1;
	s = lua_type(L, -1) == LUA_TSTRING ? lua_tolstring(L, -1, &length)
					   : NULL;
	for (i = 0; s != NULL && i < length; i++)
		if (strchr("*+-?", s[i]) != NULL ||
		    (i > 0 && s[i - 1] == '%' &&
			strchr("b123456789", s[i]) != NULL))
			steps *= n;
	if (s != NULL)
		steps *= 1 + (double)(length / 8);
	lua_pop(L, 1);
	return steps;
}

static double
unpack_steps(lua_State *L, lua_Debug *ar)
{
	double first = 1, last = length_of(L, ar, 1);

	if (argument(L, ar, 2)) {
		first = lua_isnil(L, -1) ? 1 : (double)lua_tonumber(L, -1);
		lua_pop(L, 1);
	}
	if (argument(L, ar, 3)) {
		last = lua_isnil(L, -1) ? last : (double)lua_tonumber(L, -1);
		lua_pop(L, 1);
	}
	return last > first ? last - first : 1;
}

static void
check_text(lua_State *L, lua_Debug *ar)
{
	int i, type;

	for (i = 1; argument(L, ar, i); lua_pop(L, 1), i++) {
		type = lua_type(L, -1);
		if (type != LUA_TTABLE && type != LUA_TFUNCTION)
			continue;
		if (luaL_getmetafield(L, -1, "__tostring") == LUA_TNIL)
			front_error(L, LEVEL_CALLER,
			    "a %s has no text: its address changes from run "
			    "to run",
			    lua_typename(L, type));
		lua_pop(L, 1);
	}
}

static void
check_error(lua_State *L, lua_Debug *ar)
{
	int type = argument(L, ar, 1) ? lua_type(L, -1) : LUA_TNIL;

	if (type != LUA_TSTRING)
		front_error(L, LEVEL_CALLER,
		    "the model raised a %s instead of a sentence",
		    lua_typename(L, type));
	lua_pop(L, 1);
}

static void
check_input(lua_State *L, lua_Debug *ar)
{
	static const char *const inputs[] = {"tokens", "positions", "rows"};
	char text[SUGGEST_TEXT];
	Suggestion s;
	size_t i;

	if (!argument(L, ar, 1) || lua_type(L, -1) != LUA_TSTRING)
		return;
	suggest_start(&s, lua_tostring(L, -1));
	for (i = 0; i < sizeof inputs / sizeof inputs[0]; i++) {
		if (strcmp(s.word, inputs[i]) == 0)
			return;
		suggest_offer(&s, inputs[i]);
	}
	front_error(L, LEVEL_CALLER, "there is no input '%s'%s", s.word,
	    suggest_text(&s, text));
}

static void
check_call(lua_State *L, lua_Debug *ar, Cost cost)
{
	double n = length_of(L, ar, 1);

	if (cost == COST_PATTERN)
		charge(L, pattern_steps(L, ar));
	else if (cost == COST_LENGTH ||
		 (cost == COST_SHIFT && argument(L, ar, 3)) ||
		 (cost == COST_SHIFTED && argument(L, ar, 2)))
		charge(L, n);
	else if (cost == COST_SORT)
		charge(L, 16 * n);
	else if (cost == COST_UNPACK)
		charge(L, unpack_steps(L, ar));
	else if (cost == COST_TEXT)
		check_text(L, ar);
	else if (cost == COST_ERROR)
		check_error(L, ar);
	else if (cost == COST_INPUT)
		check_input(L, ar);
}

static void
check_stop(lua_State *L)
{
	const FrontOptions *o = front_of(L)->options;

	if (o->stop && o->stop())
		front_error(L, LEVEL_CALLER, "interrupted");
}

static void
hook(lua_State *L, lua_Debug *ar)
{
	int top = lua_gettop(L);
	Cost cost;

	if (ar->event == LUA_HOOKCOUNT) {
		check_stop(L);
		charge(L, STEP_CHUNK);
		return;
	}
	luaL_checkstack(L, 8, NULL);
	lua_getinfo(L, "f", ar);
	lua_getfield(L, LUA_REGISTRYINDEX, costs_key);
	lua_pushvalue(L, -2);
	lua_rawget(L, -2);
	cost = (Cost)lua_tointeger(L, -1);
	lua_settop(L, top);
	/* Copying many takes one step. */
	if (lua_getlocal(L, ar, -MAX_ARGUMENTS) != NULL)
		front_error(L, LEVEL_CALLER,
		    "a call has more than %d "
		    "arguments",
		    MAX_ARGUMENTS);
	if (cost != COST_NONE)
		check_call(L, ar, cost);
	lua_settop(L, top);
}

static void
set_costs(lua_State *L)
{
	size_t i;

	lua_newtable(L);
	for (i = 0; i < sizeof costs / sizeof costs[0]; i++) {
		lua_getglobal(L, costs[i].library);
		lua_getfield(L, -1, costs[i].function);
		lua_pushinteger(L, costs[i].cost);
		lua_rawset(L, -4);
		lua_pop(L, 1);
	}
	lua_setfield(L, LUA_REGISTRYINDEX, costs_key);
}

/* ---- sources ---- */

static void
compile(lua_State *L, const char *name, const char *text, size_t length)
{
	const char *base = path_base(name);
	const char *chunk = lua_pushfstring(L, "@%s", base), *why;

	if (luaL_loadbufferx(L, text, length, chunk, "t") != LUA_OK) {
		/* Limits of the parser do not say where. */
		why = lua_tostring(L, -1);
		if (strncmp(why, base, strlen(base)) != 0)
			lua_pushfstring(L, "%s: %s", base, why);
		lua_error(L);
	}
	lua_remove(L, -2);
}

bool
sandbox_embedded(lua_State *L, const char *name)
{
	const EmbeddedFile *e = embedded_models;

	while (e->name != NULL && strcmp(e->name, name) != 0)
		e++;
	if (e->name != NULL)
		compile(L, name, (const char *)e->data, e->length);
	return e->name != NULL;
}

bool
sandbox_file(lua_State *L, const char *path)
{
	char *text = arena_alloc(front_of(L)->arena, MAX_SOURCE);
	FILE *in = fopen(path, "rb");
	size_t n;
	bool bad;

	if (in == NULL)
		return false;
	n = fread(text, 1, MAX_SOURCE, in);
	bad = ferror(in) != 0;
	fclose(in);
	if (bad || n == MAX_SOURCE)
		luaL_error(L, "%s: %s", path,
		    bad ? "cannot be read" : "is too long for a model file");
	compile(L, path, text, n);
	return true;
}

/* ---- require ---- */

/* Words of letters, digits and _, joined by single dots: no way out of the
 * folder. */
static bool
library_name(const char *s, size_t length)
{
	const char *end = s + length;
	const char *word = "abcdefghijklmnopqrstuvwxyz_0123456789"
			   "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	size_t n;

	while ((n = strspn(s, word)) > 0 && s[n] == '.')
		s += n + 1;
	return n > 0 && s + n == end;
}

static noreturn void
no_library(lua_State *L, const char *name)
{
	const EmbeddedFile *e;
	char text[SUGGEST_TEXT];
	const char *known;
	Suggestion s;

	suggest_start(&s, name);
	for (e = embedded_models; e->name != NULL; e++) {
		known = luaL_gsub(L, e->name, ".lua", "");
		suggest_offer(&s, luaL_gsub(L, known, "/", "."));
	}
	front_error(L, LEVEL_CALLER, "there is no library '%s'%s", name,
	    suggest_text(&s, text));
}

static void
load_library(lua_State *L, const char *name)
{
	const char *folder = front_of(L)->folder, *file;

	file = luaL_gsub(L, name, ".", "/");
	file = lua_pushfstring(L, "%s.lua", file);
	if (folder != NULL &&
	    sandbox_file(L, lua_pushfstring(L, "%s/%s", folder, file)))
		return;
	if (!sandbox_embedded(L, file))
		no_library(L, name);
}

/* require(name): what library name returned, run on first use. */
static int
require(lua_State *L)
{
	size_t length;
	const char *name = luaL_checklstring(L, 1, &length);

	if (!library_name(name, length))
		front_error(L, LEVEL_CALLER,
		    "require: '%s' is not the name of a library", name);
	lua_settop(L, 1);
	lua_getfield(L, LUA_REGISTRYINDEX, loaded_key);
	if (lua_getfield(L, 2, name) == LUA_TBOOLEAN)
		front_error(L, LEVEL_CALLER,
		    "require: '%s' is being loaded already", name);
	if (!lua_isnil(L, -1))
		return 1;
	lua_pushboolean(L, 1);
	lua_setfield(L, 2, name);
	load_library(L, name);
	lua_call(L, 0, 1);
	if (lua_isnil(L, -1))
		front_error(L, LEVEL_CALLER,
		    "require: library '%s' returns nothing", name);
	lua_pushvalue(L, -1);
	lua_setfield(L, 2, name);
	return 1;
}

/* ---- globals ---- */

static void
offer_keys(lua_State *L, int table, Suggestion *s)
{
	for (lua_pushnil(L); lua_next(L, table); lua_pop(L, 1))
		if (lua_type(L, -2) == LUA_TSTRING)
			suggest_offer(s, lua_tostring(L, -2));
}

/* Reading a key that table does not have; upvalue: what its keys are. */
static int
unknown_key(lua_State *L)
{
	const char *what = lua_tostring(L, lua_upvalueindex(1));
	const char *key = luaL_tolstring(L, 2, NULL);
	char text[SUGGEST_TEXT];
	Suggestion s;

	suggest_start(&s, key);
	offer_keys(L, 1, &s);
	front_error(L, LEVEL_CALLER, "there is no %s '%s'%s", what, key,
	    suggest_text(&s, text));
}

static int
new_global(lua_State *L)
{
	front_error(L, LEVEL_CALLER, "'%s' is assigned but not declared local",
	    luaL_tolstring(L, 2, NULL));
}

/* strict(table, what): reading a key it does not have is a mistake. */
static int
strict(lua_State *L)
{
	luaL_checktype(L, 1, LUA_TTABLE);
	luaL_checkstring(L, 2);
	lua_settop(L, 2);
	if (lua_getmetatable(L, 1))
		front_error(L, LEVEL_CALLER,
		    "strict: the table has a metatable already");
	lua_createtable(L, 0, 2);
	lua_insert(L, 2);
	lua_pushcclosure(L, unknown_key, 1);
	lua_setfield(L, 2, "__index");
	lua_pushboolean(L, 0);
	lua_setfield(L, 2, "__metatable");
	lua_setmetatable(L, 1);
	return 1;
}

/* blame(sentence [, word, table]): a mistake of the code that called the
 * calling file; suggests the key of table nearest to word. */
static int
blame(lua_State *L)
{
	const char *sentence = luaL_checkstring(L, 1);
	char text[SUGGEST_TEXT] = "";
	Suggestion s;

	if (!lua_isnoneornil(L, 2)) {
		suggest_start(&s, luaL_checkstring(L, 2));
		luaL_checktype(L, 3, LUA_TTABLE);
		offer_keys(L, 3, &s);
		suggest_text(&s, text);
	}
	front_error(L, LEVEL_OUTSIDE, "%s%s", sentence, text);
}

/* Lua's own, but the table gets a copy, once: what setmetatable refuses cannot
 * come later, and strict tables stay so. getmetatable returns the original. */
static int
set_metatable(lua_State *L)
{
	static const char *const refused[][2] = {{"__gc", "finalizers"},
	    {"__len", "lengths of its own"},
	    {"__call", "tables that are called"},
	    {"__name", "type names of its own"},
	    {"__pairs", "traversals of its own"}};
	size_t i;

	luaL_checktype(L, 1, LUA_TTABLE);
	luaL_checktype(L, 2, LUA_TTABLE);
	lua_settop(L, 2);
	if (lua_getmetatable(L, 1))
		front_error(L, LEVEL_CALLER,
		    "setmetatable: the metatable of this table is protected");
	for (i = 0; i < sizeof refused / sizeof refused[0]; i++) {
		lua_pushstring(L, refused[i][0]);
		if (lua_rawget(L, 2) != LUA_TNIL)
			front_error(L, LEVEL_CALLER, "a model has no %s (%s)",
			    refused[i][1], refused[i][0]);
		lua_pop(L, 1);
	}
	lua_newtable(L);
	for (lua_pushnil(L); lua_next(L, 2);) {
		lua_pushvalue(L, -2);
		lua_insert(L, -2);
		lua_rawset(L, 3);
	}
	if (lua_getfield(L, 3, "__metatable") == LUA_TNIL) {
		lua_pushvalue(L, 2);
		lua_setfield(L, 3, "__metatable");
	}
	lua_settop(L, 3);
	lua_setmetatable(L, 1);
	lua_settop(L, 1);
	return 1;
}

/* ---- pairs ---- */

/* Numbers, then strings, then booleans: an order of no process's own. */
static int
key_before(lua_State *L)
{
	int a = lua_type(L, 1), b = lua_type(L, 2);
	static const int rank[] = {
	    [LUA_TNUMBER] = 0, [LUA_TSTRING] = 1, [LUA_TBOOLEAN] = 2};

	if (a != b)
		lua_pushboolean(L, rank[a] < rank[b]);
	else if (a == LUA_TBOOLEAN)
		lua_pushboolean(L, !lua_toboolean(L, 1) && lua_toboolean(L, 2));
	else
		lua_pushboolean(L, lua_compare(L, 1, 2, LUA_OPLT));
	return 1;
}

/* Upvalues: the table, its keys in order, how many of them are done. */
static int
next_pair(lua_State *L)
{
	lua_Integer i = lua_tointeger(L, lua_upvalueindex(3));

	while (lua_rawgeti(L, lua_upvalueindex(2), ++i) != LUA_TNIL) {
		lua_pushvalue(L, -1);
		if (lua_rawget(L, lua_upvalueindex(1)) != LUA_TNIL) {
			lua_pushinteger(L, i);
			lua_replace(L, lua_upvalueindex(3));
			return 2;
		}
		lua_pop(L, 2);
	}
	return 1;
}

/* pairs(table): a loop over the keys it has now, in order. Upvalue: sort. */
static int
sorted_pairs(lua_State *L)
{
	lua_Integer n = 0;
	int type;

	luaL_checktype(L, 1, LUA_TTABLE);
	lua_settop(L, 1);
	lua_newtable(L);
	for (lua_pushnil(L); lua_next(L, 1); lua_pop(L, 1)) {
		type = lua_type(L, -2);
		if (type != LUA_TNUMBER && type != LUA_TSTRING &&
		    type != LUA_TBOOLEAN)
			front_error(L, LEVEL_CALLER,
			    "pairs: a key is a %s, which has no order",
			    lua_typename(L, type));
		lua_pushvalue(L, -2);
		lua_rawseti(L, 2, ++n);
	}
	charge(L, (double)n);
	lua_pushvalue(L, lua_upvalueindex(1));
	lua_pushvalue(L, 2);
	lua_pushcfunction(L, key_before);
	lua_call(L, 2, 0);
	lua_pushinteger(L, 0);
	lua_pushcclosure(L, next_pair, 3);
	return 1;
}

/* ---- libraries ---- */

static int
print_to_stderr(lua_State *L)
{
	int i, n = lua_gettop(L);

	for (i = 1; i <= n; i++) {
		fprintf(stderr, "%s%s", i > 1 ? "\t" : "",
		    luaL_tolstring(L, i, NULL));
		lua_pop(L, 1);
	}
	fputc('\n', stderr);
	return 0;
}

/* pcall would catch the step limit; string.rep and table.move loop where it
 * does not see; next and random differ from run to run. */
static void
remove_functions(lua_State *L)
{
	static const char *const names[][2] = {{"_G", "load"},
	    {"_G", "loadfile"}, {"_G", "dofile"}, {"_G", "collectgarbage"},
	    {"_G", "pcall"}, {"_G", "xpcall"}, {"_G", "warn"},
	    {"string", "dump"}, {"string", "rep"}, {"table", "move"},
	    {"_G", "next"}, {"math", "random"}, {"math", "randomseed"}};
	size_t i;

	for (i = 0; i < sizeof names / sizeof names[0]; i++) {
		lua_getglobal(L, names[i][0]);
		lua_pushnil(L);
		lua_setfield(L, -2, names[i][1]);
		lua_pop(L, 1);
	}
}

static void
close_globals(lua_State *L)
{
	lua_pushglobaltable(L);
	lua_createtable(L, 0, 3);
	lua_pushliteral(L, "function or variable");
	lua_pushcclosure(L, unknown_key, 1);
	lua_setfield(L, -2, "__index");
	lua_pushcfunction(L, new_global);
	lua_setfield(L, -2, "__newindex");
	lua_pushboolean(L, 0);
	lua_setfield(L, -2, "__metatable");
	lua_setmetatable(L, -2);
	lua_pop(L, 1);
}

/* Makes the tables of the sandbox strict, and sorts pairs. */
static void
close_libraries(lua_State *L)
{
	static const char *const what[][2] = {{"string", "function of string"},
	    {"table", "function of table"}, {"math", "function of math"},
	    {"checkpoint", "field of checkpoint"}};
	size_t i;

	lua_getglobal(L, "table");
	lua_getfield(L, -1, "sort");
	lua_pushcclosure(L, sorted_pairs, 1);
	lua_setglobal(L, "pairs");
	for (i = 0; i < sizeof what / sizeof what[0]; i++) {
		lua_pushcfunction(L, strict);
		lua_getglobal(L, what[i][0]);
		lua_pushstring(L, what[i][1]);
		lua_call(L, 2, 0);
	}
	lua_pushliteral(L, "");
	lua_getmetatable(L, -1);
	lua_pushboolean(L, 0);
	lua_setfield(L, -2, "__metatable");
	lua_pop(L, 3);
}

static int
open_all(lua_State *L)
{
	static const luaL_Reg libraries[] = {{"_G", luaopen_base},
	    {"string", luaopen_string}, {"table", luaopen_table},
	    {"math", luaopen_math}, {NULL, NULL}};
	static const luaL_Reg functions[] = {{"require", require},
	    {"strict", strict}, {"blame", blame},
	    {"setmetatable", set_metatable}, {"print", print_to_stderr},
	    {NULL, NULL}};
	const luaL_Reg *r;

	for (r = libraries; r->name != NULL; r++) {
		luaL_requiref(L, r->name, r->func, 1);
		lua_pop(L, 1);
	}
	remove_functions(L);
	for (r = functions; r->name != NULL; r++)
		lua_register(L, r->name, r->func);
	lua_newtable(L);
	lua_setfield(L, LUA_REGISTRYINDEX, loaded_key);
	builder_open(L);
	weights_open(L);
	set_costs(L);
	close_libraries(L);
	close_globals(L);
	return 0;
}

lua_State *
sandbox_new(Front *f)
{
	lua_State *L = lua_newstate(allocate, f);

	if (L == NULL)
		return NULL;
	*(Front **)lua_getextraspace(L) = f;
	lua_pushcfunction(L, open_all);
	if (lua_pcall(L, 0, 0, 0) != LUA_OK) {
		lua_close(L);
		return NULL;
	}
	lua_sethook(L, hook, LUA_MASKCOUNT | LUA_MASKCALL, STEP_CHUNK);
	return L;
}
