/* ingot logits */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../runtime/mapping.h"
#include "ids.h"
#include "npy.h"
#include "open.h"

/* One --tokens, and the file of its logits, which is open from its first step
 * to its last. */
typedef struct Prompt {
	Ids ids;
	uint32_t seq;
	size_t done;
	Npy file;
} Prompt;

typedef struct Hidden {
	char *label;
	Npy file;
} Hidden;

typedef struct Logits {
	const Options *o;
	const char *checkpoint;
	Opened m;
	ingot_session *session;
	uint32_t max_chunk;
	Prompt *prompts;
	size_t n;
	ingot_work *work; /* [n] */
	OracleWatch watch;
	Hidden *hidden;
	size_t n_hidden;
	bool hidden_failed;
} Logits;

static int
failed(const char *why)
{
	return user_error("%s", why);
}

/* ---- before loading ---- */

static int
check_usage(Logits *l)
{
	const Options *o = l->o;
	int code;

	if (o->tokens.count == 0)
		return usage_error(o, "logits needs --tokens IDS");
	if (!o->output)
		return usage_error(o, "logits needs -o FILE.npy or DIR");
	if (o->hidden && (o->tokens.count > 1 || !o->device ||
			     strcmp(o->device, "oracle") != 0))
		return usage_error(
		    o, "--hidden needs --device oracle and one --tokens");
	if (file_kind(o->output) != FILE_FOLDER) {
		code = open_output(o, o->output);
		if (code)
			return code;
	}
	return open_check(o, &l->checkpoint);
}

static int
read_prompts(Logits *l)
{
	const TextList *tokens = &l->o->tokens;

	l->prompts = calloc(tokens->count, sizeof *l->prompts);
	l->work = calloc(tokens->count, sizeof *l->work);
	if (!l->prompts || !l->work)
		return user_error("no memory for %zu prompts", tokens->count);
	for (; l->n < tokens->count; l->n++)
		if (!ids_read(tokens->at[l->n], &l->prompts[l->n].ids)) {
			ids_free(&l->prompts[l->n].ids);
			return EXIT_USER;
		}
	return EXIT_DONE;
}

static int
make_folder(const char *path)
{
	if (mkdir(path, 0777) == 0 || file_kind(path) == FILE_FOLDER)
		return EXIT_DONE;
	return user_error(
	    "cannot make the folder %s: %s", path, strerror(errno));
}

/* Whether there is a folder to write into. */
static bool
into_folder(const Logits *l)
{
	const char *path = l->o->output;

	return l->n > 1 || file_kind(path) == FILE_FOLDER ||
	       (path[0] && path[strlen(path) - 1] == '/');
}

static int
make_folders(Logits *l)
{
	int code = EXIT_DONE;

	if (into_folder(l))
		code = make_folder(l->o->output);
	if (!code && l->o->hidden)
		code = make_folder(l->o->hidden);
	return code;
}

/* ---- labelled values ---- */

/* DIR/NAME.npy, from malloc. */
static char *
npy_path(const char *dir, const char *name)
{
	size_t room = strlen(dir) + strlen(name) + sizeof "/.npy";
	char *path = malloc(room);

	if (path)
		snprintf(path, room, "%s/%s.npy", dir, name);
	return path;
}

/* Puts label behind the others and starts its file; false after a sentence. */
static bool
add_hidden(Logits *l, const char *label, uint64_t columns)
{
	size_t room = (l->n_hidden + 1) * sizeof *l->hidden;
	Hidden *more = realloc(l->hidden, room);
	char *path = npy_path(l->o->hidden, label), *copy = strdup(label);
	char why[NPY_WHY] = "no memory for the label of a value";
	bool ok = false;

	if (more) {
		l->hidden = more;
		ok = path && copy &&
		     npy_create(&more[l->n_hidden].file, path,
			 l->prompts[0].ids.count, columns, why);
	}
	free(path);
	if (!ok) {
		free(copy);
		note("%s", why);
		return false;
	}
	more[l->n_hidden++].label = copy;
	return true;
}

/* The file of a label, started on first sight; NULL after a sentence. */
static Hidden *
hidden_file(Logits *l, const char *label, uint64_t columns)
{
	size_t i;

	for (i = 0; i < l->n_hidden; i++)
		if (strcmp(l->hidden[i].label, label) == 0)
			return &l->hidden[i];
	return add_hidden(l, label, columns) ? &l->hidden[i] : NULL;
}

static void
write_hidden(void *user, const char *label, const float *value, uint64_t rows,
    uint64_t columns)
{
	Logits *l = user;
	char why[NPY_WHY];
	Hidden *h;

	/* Labels are the model's: none may lead out of the folder. */
	if (l->hidden_failed || label[0] == '.' || strchr(label, '/'))
		return;
	h = hidden_file(l, label, columns);
	if (h && npy_rows(&h->file, value, rows, why))
		return;
	if (h)
		note("%s", why);
	l->hidden_failed = true;
}

static int
commit_hidden(Logits *l)
{
	char why[NPY_WHY];
	size_t i;

	for (i = 0; i < l->n_hidden; i++)
		if (!npy_commit(&l->hidden[i].file, why))
			return failed(why);
	return EXIT_DONE;
}

/* ---- loading ---- */

static int
load(Logits *l)
{
	l->watch = (OracleWatch){write_hidden, l};
	return open_model(l->o, l->o->hidden ? &l->watch : NULL, &l->m);
}

static int
check_prompts(const Logits *l, uint32_t ctx)
{
	const ingot_model_info info = ingot_model_get_info(l->m.model);
	size_t i;

	for (i = 0; i < l->n; i++) {
		const Ids *ids = &l->prompts[i].ids;
		const char *name = l->o->tokens.at[i];

		if (!ids_check(ids, name, info.vocab))
			return EXIT_USER;
		if (ids->count > ctx)
			return user_error("--tokens %.100s has %zu tokens, "
					  "but the context holds %u; see --ctx",
			    name, ids->count, ctx);
	}
	return EXIT_DONE;
}

/* Room for these prompts and no more, unless the command line asks for it. */
static ingot_session_options
session_options(const Logits *l)
{
	ingot_session_options so = {
	    sizeof so, l->o->ctx, l->o->max_seqs, l->max_chunk};
	uint64_t total = 0;
	size_t i;

	for (i = 0; i < l->n; i++) {
		uint32_t count = (uint32_t)l->prompts[i].ids.count;

		total += count;
		if (count > so.ctx)
			so.ctx = count;
	}
	if (total < so.max_rows)
		so.max_rows = (uint32_t)total;
	if (so.max_seqs < l->n)
		so.max_seqs = (uint32_t)l->n;
	return so;
}

static int
open_logits(Logits *l)
{
	ingot_session_options so;
	size_t i;
	Error e;
	int code = check_prompts(l, open_ctx(l->o, &l->m));

	if (code)
		return code;
	l->max_chunk = ingot_model_get_info(l->m.model).max_chunk;
	so = session_options(l);
	code = open_session(&l->m, &so, &l->session);
	for (i = 0; i < l->n && !code; i++)
		if (ingot_seq_add(l->session, &l->prompts[i].seq, &e))
			code = library_error(&e);
	return code;
}

/* ---- steps ---- */

/* Chooses what the next step does: one chunk of each sequence, in order, as
 * far as the step has room. With --chunk a chunk is never cut for that. Returns
 * the number of sequences in l->work. */
static size_t
plan_step(Logits *l)
{
	uint32_t chunk = l->o->chunk, room = l->max_chunk, take;
	size_t i, n = 0;

	if (chunk == 0 || chunk > room)
		chunk = room;
	for (i = 0; i < l->n && room > 0; i++) {
		const Prompt *p = &l->prompts[i];
		size_t left = p->ids.count - p->done;

		take = left < chunk ? (uint32_t)left : chunk;
		if (take > room && l->o->chunk)
			break;
		take = take > room ? room : take;
		room -= take;
		if (take > 0)
			l->work[n++] = (ingot_work){
			    p->seq, take, p->ids.at + p->done, INGOT_WANT_ALL};
	}
	return n;
}

static int
start_file(Logits *l, Prompt *p)
{
	uint32_t vocab = ingot_model_get_info(l->m.model).vocab;
	char name[24], why[NPY_WHY];
	char *path;
	int code;

	snprintf(name, sizeof name, "%zu", (size_t)(p - l->prompts));
	path = into_folder(l) ? npy_path(l->o->output, name)
			      : strdup(l->o->output);
	if (!path)
		return user_error("no memory");
	code = open_output(l->o, path);
	if (!code && !npy_create(&p->file, path, p->ids.count, vocab, why))
		code = failed(why);
	free(path);
	return code;
}

/* Writes the rows of p that start at row of the last step. */
static int
write_rows(Logits *l, Prompt *p, uint32_t row, uint32_t count)
{
	char why[NPY_WHY];

	if (p->done == 0) {
		int code = start_file(l, p);

		if (code)
			return code;
	}
	if (!npy_rows(&p->file, ingot_logits(l->session, row), count, why))
		return failed(why);
	p->done += count;
	if (p->done == p->ids.count && !npy_commit(&p->file, why))
		return failed(why);
	return EXIT_DONE;
}

static Prompt *
prompt_of(Logits *l, uint32_t seq)
{
	size_t i = 0;

	while (l->prompts[i].seq != seq)
		i++;
	return &l->prompts[i];
}

static int
step(Logits *l, size_t n)
{
	uint32_t row = 0;
	size_t i;
	Error e;
	int code = EXIT_DONE;

	if (ingot_step(l->session, l->work, n, &e))
		return library_error(&e);
	if (l->hidden_failed)
		return EXIT_USER;
	for (i = 0; i < n && !code; i++) {
		const ingot_work *w = &l->work[i];

		code = write_rows(l, prompt_of(l, w->seq), row, w->count);
		row += w->count;
	}
	return code;
}

static int
run_steps(Logits *l)
{
	double start = seconds();
	uint64_t tokens = 0, steps = 0;
	size_t i, n;
	int code = EXIT_DONE;

	while (!code && !interrupted() && (n = plan_step(l)) > 0) {
		code = step(l, n);
		for (i = 0; i < n; i++)
			tokens += l->work[i].count;
		steps++;
	}
	if (code || interrupted())
		return code ? code : EXIT_INTERRUPTED;
	if (l->o->verbose)
		note("%llu tokens in %llu steps, %.3f s",
		    (unsigned long long)tokens, (unsigned long long)steps,
		    seconds() - start);
	return commit_hidden(l);
}

static void
close_logits(Logits *l)
{
	size_t i;

	ingot_session_close(l->session);
	open_close(&l->m);
	for (i = 0; i < l->n; i++) {
		npy_abandon(&l->prompts[i].file);
		ids_free(&l->prompts[i].ids);
	}
	for (i = 0; i < l->n_hidden; i++) {
		npy_abandon(&l->hidden[i].file);
		free(l->hidden[i].label);
	}
	free(l->hidden);
	free(l->prompts);
	free(l->work);
}

int
cmd_logits(const Options *o)
{
	static int (*const phases[])(Logits *) = {check_usage, read_prompts,
	    load, open_logits, make_folders, run_steps};
	Logits l = {.o = o};
	int code = EXIT_DONE;
	size_t i;

	for (i = 0; i < sizeof phases / sizeof phases[0] && !code; i++)
		code = phases[i](&l);
	close_logits(&l);
	return code;
}
