/* What the files of the Lua front end share. A model runs in one Lua state,
 * whose extra space points to its Front. */
#ifndef COMPILER_FRONT_IMPL_H
#define COMPILER_FRONT_IMPL_H

#include <lauxlib.h>
#include <lua.h>

#include "frontend.h"

enum { WHY_BYTES = 512, FILE_TEXT = 64 };

/* Limits on a model file: guards against mistakes, not against malice. */
#define MAX_ALLOCATED ((uint64_t)4 << 30) /* bytes, those freed too */
enum {
	MAX_STEPS = 50000000,           /* instructions and their like in C */
	MAX_MEMORY = 256 * 1024 * 1024, /* bytes held by Lua */
	MAX_ARGUMENTS = 250,           /* of a call */
	MAX_NODES = 1 << 20,
	MAX_WEIGHTS = 1 << 14,
	MAX_IGNORED = 1 << 12,
	MAX_PIECES = 1 << 18 /* of all weights */
};

typedef struct Front {
	Arena *arena;
	Graph *graph;
	const Checkpoint *ckpt;
	const FrontOptions *options;
	const char *arch;
	const char *model;  /* basename of the model file */
	const char *folder; /* where libraries are looked for first, or NULL */
	const char **ignored; /* beginnings of names */
	size_t n_ignored;
	size_t n_pieces;    /* of weights so far */
	size_t memory;      /* bytes held by Lua */
	uint64_t allocated; /* bytes, those freed too */
	int64_t steps;
} Front;

Front *front_of(lua_State *L);

/* Which Lua line a builder function answers for: the one that called it, or
 * the nearest one outside of that file (for a library's look-ups). */
typedef enum Level { LEVEL_CALLER, LEVEL_OUTSIDE } Level;

typedef struct Place {
	char file[FILE_TEXT]; /* basename; "" when no Lua code is running */
	int line;
} Place;

Place front_place(lua_State *L, Level level);
/* Raises "file:line: sentence". */
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
noreturn void
front_error(lua_State *L, Level level, const char *fmt, ...);

/* sandbox.c: a state without io, os, package and debug, or NULL without
 * memory; and the source of a model or a library, run in it. */
lua_State *sandbox_new(Front *f);
/* Pushes the compiled chunk of embedded file name; returns false, pushing
 * nothing, when there is none; raises what is wrong with it. */
bool sandbox_embedded(lua_State *L, const char *name);
/* The same for a file on disk. */
bool sandbox_file(lua_State *L, const char *path);
const char *path_base(const char *path);

/* builder.c: the ops as Lua functions, values, labels. */
void builder_open(lua_State *L);
/* The node of the value at index, or NULL. */
Node *builder_value(lua_State *L, int index);
/* Adds a leaf, or finds the one of that name and type; pushes its value. */
int builder_leaf(
    lua_State *L, Op op, const char *name, const Type *type, Level level);
/* Reads a shape, an array of counts and symbols, into type. */
void builder_shape(
    lua_State *L, int index, const char *what, Type *type, Level level);
/* Reads the name of a dtype. */
DType builder_dtype(lua_State *L, int index, const char *what, Level level);

/* weights.c: the checkpoint as Lua sees it, and weights. */
void weights_open(lua_State *L);
/* Raises unless every tensor is read or ignored; reports the ignored. */
void weights_all_read(lua_State *L);

#endif
