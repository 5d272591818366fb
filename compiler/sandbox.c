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

	for (i = 1; lua_line(L, i, &ar); i++) {
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
	if (size > old && size - old > MAX_MEMORY - f->memory)
		return NULL;
	q = realloc(p, size);
	if (q != NULL)
		f->memory += size - old;
	return q;
}

static void
count_steps(lua_State *L, lua_Debug *ar)
{
	Front *f = front_of(L);

	f->steps += STEP_CHUNK;
	if (f->steps < MAX_STEPS)
		return;
	lua_getinfo(L, "Sl", ar);
	lua_pushfstring(L,
	    "%s:%d: the model has run %d million steps without an end",
	    ar->short_src, ar->currentline, MAX_STEPS / 1000000);
	lua_error(L);
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
		front_error(L, LEVEL_CALLER, "there is no library '%s'", name);
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
	lua_createtable(L, 0, 1);
	lua_insert(L, 2);
	lua_pushcclosure(L, unknown_key, 1);
	lua_setfield(L, 2, "__index");
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

/* Lua's own, but for finalizers: the step limit does not reach them. */
static int
set_metatable(lua_State *L)
{
	luaL_checktype(L, 1, LUA_TTABLE);
	luaL_checktype(L, 2, LUA_TTABLE);
	if (lua_getfield(L, 2, "__gc") != LUA_TNIL)
		front_error(L, LEVEL_CALLER, "a model has no finalizers");
	lua_settop(L, 2);
	lua_setmetatable(L, 1);
	return 1;
}

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

/* pcall would catch the step limit; the last three loop where it does not
 * see. */
static void
remove_functions(lua_State *L)
{
	static const char *const names[][2] = {{"_G", "load"},
	    {"_G", "loadfile"}, {"_G", "dofile"}, {"_G", "collectgarbage"},
	    {"_G", "pcall"}, {"_G", "xpcall"}, {"_G", "warn"},
	    {"string", "dump"}, {"string", "rep"}, {"table", "move"}};
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
	lua_sethook(L, count_steps, LUA_MASKCOUNT, STEP_CHUNK);
	return L;
}
