/* From a checkpoint to its graph: which model, running it, what it made. */
#include "frontend.h"

#include <stdio.h>
#include <string.h>

#include "../runtime/quote.h"
#include "embed.h"
#include "front_impl.h"
#include "suggest.h"

/* ---- which model ---- */

/* A folder's model_type without the underscores and a final "_text":
 * "qwen3_5_moe_text" is "qwen35moe". */
static const char *
squeeze(Arena *a, const char *model_type)
{
	static const char text[] = "_text";
	size_t i, n = strlen(model_type), tail = sizeof text - 1;
	char *out = arena_alloc(a, n + 1), *p = out;

	if (n > tail && strcmp(model_type + n - tail, text) == 0)
		n -= tail;
	for (i = 0; i < n; i++)
		if (model_type[i] != '_')
			*p++ = model_type[i];
	return out;
}

static const char *
architecture(Arena *a, const Checkpoint *c, Diag *d)
{
	bool gguf = ckpt_kind(c) == CKPT_GGUF;
	const char *key = gguf ? "general.architecture" : "model_type";
	const char *arch = value_string(value_get(ckpt_config(c), key));

	if (arch == NULL)
		err(d, 1, NULL, "%s: key %s is missing or no text",
		    ckpt_path(c), key);
	return gguf ? arch : squeeze(a, arch);
}

static noreturn void
unknown_architecture(Arena *a, const Checkpoint *c, const char *arch, Diag *d)
{
	const EmbeddedFile *e;
	const char *known = "";
	char text[SUGGEST_TEXT];
	Suggestion s;
	Quote q;

	suggest_start(&s, arch);
	for (e = embedded_models; e->name != NULL; e++) {
		size_t n = strlen(e->name);
		char *name;

		if (strchr(e->name, '/') != NULL || n < 4)
			continue;
		name = arena_strndup(a, e->name, n - 4); /* ".lua" */
		suggest_offer(&s, name);
		known = arena_printf(
		    a, "%s%s%s", known, *known != '\0' ? ", " : "", name);
	}
	err(d, 1, NULL,
	    "%s: architecture %s is not known%s; known are %s; another needs "
	    "a model file of its own",
	    ckpt_path(c), quote(&q, arch, strlen(arch)), suggest_text(&s, text),
	    known);
}

static void
pick_model(Front *f, Diag *d)
{
	const char *path = f->options->model, *base;
	const EmbeddedFile *e = embedded_models;

	f->arch = architecture(f->arena, f->ckpt, d);
	if (path != NULL) {
		base = path_base(path);
		f->model = base;
		f->folder = base == path ? "."
					 : arena_strndup(f->arena, path,
					       (size_t)(base - path));
		return;
	}
	f->model = arena_printf(f->arena, "%s.lua", f->arch);
	while (e->name != NULL && strcmp(e->name, f->model) != 0)
		e++;
	if (e->name == NULL || strchr(f->arch, '/') != NULL)
		unknown_architecture(f->arena, f->ckpt, f->arch, d);
}

/* ---- running it ---- */

/* What the model returned: its logits and the trained context. */
static void
take_result(lua_State *L)
{
	Front *f = front_of(L);
	Graph *g = f->graph;
	Node *n = builder_value(L, -2);
	lua_Integer ctx = lua_tointeger(L, -1);
	char text[TYPE_TEXT];

	if (n == NULL)
		luaL_error(L,
		    "%s: returns a %s, but must return its logits "
		    "and the trained context",
		    f->model, luaL_typename(L, -2));
	if (n->type.dtype != DT_F32 || n->type.n_dims != 2 ||
	    n->type.dim[0] != DIM_R)
		luaL_error(L, "%s: returns %s as its logits, not f32[R,vocab]",
		    f->model, type_text(&n->type, text));
	if (ctx < 1 || ctx > INT32_MAX)
		luaL_error(L, "%s: the trained context it returns is no count",
		    f->model);
	g->result = n;
	g->arch = f->arch;
	g->model = f->model;
	g->vocab = (uint32_t)n->type.dim[1];
	g->ctx = (uint32_t)ctx;
}

static int
run_model(lua_State *L)
{
	Front *f = front_of(L);
	const char *path = f->options->model;

	if (path != NULL ? !sandbox_file(L, path)
			 : !sandbox_embedded(L, f->model))
		luaL_error(L, "%s: cannot be opened", path ? path : f->model);
	lua_call(L, 0, 2);
	take_result(L);
	weights_all_read(L);
	return 0;
}

/* text, in which keys and names of the checkpoint may stand, on one line. */
static const char *
one_line(Arena *a, const char *text)
{
	char *out = arena_strdup(a, text), *p;

	for (p = out; *p != '\0'; p++)
		if ((unsigned char)*p < ' ' || *p == 127)
			*p = '?';
	return out;
}

/* The sentence that ended the model, in f's arena. */
static const char *
complaint(lua_State *L, const Front *f, int status)
{
	const char *text =
	    lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : NULL;

	if (status == LUA_ERRMEM)
		return arena_printf(f->arena,
		    "%s: the model holds more than %d MiB in Lua, or has made "
		    "more than %d GiB in all",
		    f->model, MAX_MEMORY >> 20, (int)(MAX_ALLOCATED >> 30));
	if (text == NULL || *text == '\0')
		return arena_printf(f->arena, "%s: raised %s %s", f->model,
		    text != NULL ? "an empty" : "a", luaL_typename(L, -1));
	return one_line(f->arena, text);
}

Graph *
frontend_build(Arena *a, const Checkpoint *c, const FrontOptions *o, Diag *d)
{
	Front f = {.arena = a, .ckpt = c, .options = o};
	const char *why = NULL;
	lua_State *L;
	int status;

	f.graph = graph_new(a);
	pick_model(&f, d);
	L = sandbox_new(&f);
	if (L == NULL)
		err(d, 1, NULL, "%s: no memory for the model file", f.model);
	lua_pushcfunction(L, run_model);
	status = lua_pcall(L, 0, 0, 0);
	if (status != LUA_OK)
		why = complaint(L, &f, status);
	lua_close(L);
	if (why != NULL)
		err(d, 1, NULL, "%s", why);
	why = verify(f.graph);
	if (why != NULL)
		err(d, o->model != NULL ? 1 : 70, NULL, "%s: %s", f.model, why);
	return f.graph;
}
