#include "checkpoint.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint_impl.h"

/* ---- errors ---- */

ingot_status
ckpt_fail(
    Error *err, ingot_status status, const char *file, const char *fmt, ...)
{
	char sentence[INGOT_ERROR_TEXT];
	Quote q;
	va_list args;

	va_start(args, fmt);
	vsnprintf(sentence, sizeof sentence, fmt, args);
	va_end(args);
	return fail(
	    err, status, "%s: %s", quote(&q, file, strlen(file)), sentence);
}

ingot_status
ckpt_no_memory(const char *file, Error *err)
{
	return ckpt_fail(
	    err, INGOT_NO_MEMORY, file, "memory ran out while reading");
}

/* ---- building ---- */

ingot_status
ckpt_add_files(Checkpoint *c, size_t n, Error *err)
{
	c->files = pool_alloc(&c->pool, n, sizeof *c->files);
	if (!c->files)
		return ckpt_no_memory(c->path, err);
	c->n_files = n;
	return INGOT_OK;
}

CkptTensor *
ckpt_add_tensor(Checkpoint *c)
{
	size_t room = c->capacity ? c->capacity * 2 : 64;
	CkptTensor *grown;

	if (c->count == c->capacity) {
		grown = realloc(c->tensors, room * sizeof *grown);
		if (!grown)
			return NULL;
		c->tensors = grown;
		c->capacity = room;
	}
	c->tensors[c->count] = (CkptTensor){0};
	return &c->tensors[c->count++];
}

const char *
ckpt_join(Checkpoint *c, const char *name)
{
	size_t n = strlen(c->path) + strlen(name) + 2;
	char *path = pool_alloc(&c->pool, n, 1);

	if (path)
		snprintf(path, n, "%s/%s", c->path, name);
	return path;
}

ingot_status
ckpt_check_name(const char *file, const char *what, const char *name,
    size_t length, Error *err)
{
	Quote q;

	if (length == 0)
		return ckpt_fail(
		    err, INGOT_BAD_FILE, file, "a %s has an empty name", what);
	if (length > CKPT_MAX_NAME)
		return ckpt_fail(err, INGOT_BAD_FILE, file,
		    "the name of a %s has %zu bytes, more than %d", what,
		    length, CKPT_MAX_NAME);
	if (!is_printable(name, length))
		return ckpt_fail(err, INGOT_BAD_FILE, file,
		    "the name of %s '%s' holds bytes that are not printable "
		    "UTF-8",
		    what, quote(&q, name, length));
	return INGOT_OK;
}

ingot_status
ckpt_set_dims(
    const char *file, CkptTensor *t, const uint64_t *dims, size_t n, Error *err)
{
	Quote q;
	const char *name = quote(&q, t->name, strlen(t->name));
	uint64_t elements = 1;
	size_t i;

	for (i = 0; i < n; i++) {
		if (dims[i] == 0)
			return ckpt_fail(err, INGOT_BAD_FILE, file,
			    "tensor '%s' has a dimension of 0", name);
		if (dims[i] > INT64_MAX / elements)
			return ckpt_fail(err, INGOT_BAD_FILE, file,
			    "the number of elements of tensor '%s' does not "
			    "fit 63 bits (a dimension is %llu)",
			    name, (unsigned long long)dims[i]);
		elements *= dims[i];
		t->dims[i] = dims[i];
	}
	t->dims[0] = n ? t->dims[0] : 1;
	t->n_dims = n ? (int)n : 1;
	return INGOT_OK;
}

uint64_t
ckpt_elements(const CkptTensor *t)
{
	uint64_t n = 1;
	int i;

	for (i = 0; i < t->n_dims; i++)
		n *= t->dims[i];
	return n;
}

static int
compare_spans(const void *a, const void *b)
{
	const Span *x = a, *y = b;

	if (x->begin != y->begin)
		return x->begin < y->begin ? -1 : 1;
	return (x->end > y->end) - (x->end < y->end);
}

/* The file ends before spans[cut] does, the first in file order. */
static ingot_status
too_short(const char *file, const Span *spans, size_t n, size_t cut,
    uint64_t size, Error *err)
{
	Quote q;
	uint64_t whole = 0;
	size_t i;

	for (i = 0; i < n; i++)
		whole = spans[i].end > whole ? spans[i].end : whole;
	return ckpt_fail(err, INGOT_BAD_FILE, file,
	    "the file is cut short: it has %llu bytes of %llu, and tensor "
	    "'%s' is the first that lies beyond its end; fetch the file again",
	    (unsigned long long)size, (unsigned long long)whole,
	    quote(&q, spans[cut].name, strlen(spans[cut].name)));
}

ingot_status
ckpt_check_spans(
    const char *file, Span *spans, size_t n, uint64_t size, Error *err)
{
	Quote q, r;
	const Span *last = NULL, *s;
	size_t i;

	for (i = 0; i < n; i++)
		if (size && spans[i].end > size)
			return too_short(file, spans, n, i, size, err);
	if (n)
		qsort(spans, n, sizeof *spans, compare_spans);
	for (i = 0; i < n; i++) {
		s = &spans[i];
		if (s->begin == s->end)
			continue;
		if (last && s->begin < last->end &&
		    strcmp(last->name, s->name) == 0)
			return ckpt_fail(err, INGOT_BAD_FILE, file,
			    "tensor '%s' is there twice",
			    quote(&q, s->name, strlen(s->name)));
		if (last && s->begin < last->end)
			return ckpt_fail(err, INGOT_BAD_FILE, file,
			    "tensors '%s' and '%s' overlap at byte %llu",
			    quote(&q, last->name, strlen(last->name)),
			    quote(&r, s->name, strlen(s->name)),
			    (unsigned long long)s->begin);
		last = s;
	}
	return INGOT_OK;
}

static int
compare_names(const void *a, const void *b)
{
	const CkptTensor *const *x = a, *const *y = b;

	return strcmp((*x)->name, (*y)->name);
}

/* The file that holds t. */
static const char *
path_of(const Checkpoint *c, const CkptTensor *t)
{
	size_t f, at = (size_t)(t - c->tensors);

	for (f = 0; at >= c->files[f].end; f++)
		;
	return c->files[f].path;
}

static ingot_status
there_twice(
    const Checkpoint *c, const CkptTensor *a, const CkptTensor *b, Error *err)
{
	Quote q, r;
	const char *first = path_of(c, a < b ? a : b);
	const char *name = quote(&q, a->name, strlen(a->name));

	if (c->n_files == 1)
		return ckpt_fail(err, INGOT_BAD_FILE, first,
		    "tensor '%s' is there twice", name);
	return ckpt_fail(err, INGOT_BAD_FILE, path_of(c, a < b ? b : a),
	    "tensor '%s' is there twice, first in %s", name,
	    quote(&r, first, strlen(first)));
}

ingot_status
ckpt_index(Checkpoint *c, Error *err)
{
	size_t i;

	if (c->count == 0)
		return INGOT_OK;
	c->by_name = malloc(c->count * sizeof *c->by_name);
	if (!c->by_name)
		return ckpt_no_memory(c->path, err);
	for (i = 0; i < c->count; i++)
		c->by_name[i] = &c->tensors[i];
	qsort(c->by_name, c->count, sizeof *c->by_name, compare_names);
	for (i = 1; i < c->count; i++)
		if (compare_names(&c->by_name[i - 1], &c->by_name[i]) == 0)
			return there_twice(
			    c, c->by_name[i - 1], c->by_name[i], err);
	return INGOT_OK;
}

/* ---- opening ---- */

static ingot_status
read_folder(Checkpoint *c, Error *err)
{
	ingot_status s;

	c->kind = CKPT_FOLDER;
	s = ckpt_json(c, "config.json", &c->config, err);
	if (s)
		return s;
	if (!c->config)
		return ckpt_fail(err, INGOT_BAD_FILE, c->path,
		    "the folder has no config.json; name a Hugging Face "
		    "folder or a GGUF file");
	return safetensors_read(c, err);
}

ingot_status
ckpt_open(
    const char *path, bool allow_header_only, Checkpoint **out, Error *err)
{
	Checkpoint *c;
	ingot_status s;

	*out = NULL;
	if (!path || !*path)
		return fail(
		    err, INGOT_BAD_ARG, "the path of the checkpoint is empty");
	c = calloc(1, sizeof *c);
	if (!c)
		return ckpt_no_memory(path, err);
	c->path = pool_text(&c->pool, path, strlen(path));
	if (!c->path)
		s = ckpt_no_memory(path, err);
	else if (file_kind(path) == FILE_FOLDER)
		s = read_folder(c, err);
	else
		s = split_read(c, allow_header_only, err);
	if (s)
		ckpt_close(c);
	else
		*out = c;
	return s;
}

void
ckpt_close(Checkpoint *c)
{
	size_t i;

	if (!c)
		return;
	for (i = 0; i < c->n_files; i++)
		unmap_file(&c->files[i].map);
	free(c->by_name);
	free(c->tensors);
	pool_free(&c->pool);
	free(c);
}

/* ---- looking ---- */

CkptKind
ckpt_kind(const Checkpoint *c)
{
	return c->kind;
}

const char *
ckpt_path(const Checkpoint *c)
{
	return c->path;
}

bool
ckpt_header_only(const Checkpoint *c)
{
	return c->header_only;
}

size_t
ckpt_count(const Checkpoint *c)
{
	return c->count;
}

const CkptTensor *
ckpt_tensor(const Checkpoint *c, size_t i)
{
	return i < c->count ? &c->tensors[i] : NULL;
}

const CkptTensor *
ckpt_find(const Checkpoint *c, const char *name)
{
	CkptTensor key = {.name = name};
	const CkptTensor *k = &key;
	const CkptTensor **hit = NULL;

	if (c->count)
		hit = bsearch(&k, c->by_name, c->count, sizeof *c->by_name,
		    compare_names);
	return hit ? *hit : NULL;
}

const Value *
ckpt_config(const Checkpoint *c)
{
	return c->config;
}

/* The parsed file of the folder, or NULL in *out when it is not there. */
static ingot_status
load_json(Checkpoint *c, const char *file, const Value **out, Error *err)
{
	Mapping m = {0};
	ingot_status s;
	const char *path = ckpt_join(c, file);

	*out = NULL;
	if (!path)
		return ckpt_no_memory(c->path, err);
	if (file_kind(path) == FILE_MISSING)
		return INGOT_OK;
	s = map_file(path, &m, err);
	if (s)
		return s;
	s = json_read(
	    &c->pool, path, (const char *)m.data, (size_t)m.size, out, err);
	unmap_file(&m);
	return s;
}

ingot_status
ckpt_json(Checkpoint *c, const char *file, const Value **out, Error *err)
{
	CkptJson *j;
	ingot_status s;

	*out = NULL;
	if (c->kind != CKPT_FOLDER)
		return INGOT_OK;
	for (j = c->json; j; j = j->next)
		if (strcmp(j->file, file) == 0) {
			*out = j->value;
			return INGOT_OK;
		}
	j = pool_alloc(&c->pool, 1, sizeof *j);
	if (!j || !(j->file = pool_text(&c->pool, file, strlen(file))))
		return ckpt_no_memory(c->path, err);
	s = load_json(c, file, &j->value, err);
	if (s)
		return s;
	j->next = c->json;
	c->json = j;
	*out = j->value;
	return INGOT_OK;
}

/* ---- values ---- */

const Value *
value_get(const Value *o, const char *key)
{
	size_t i;

	if (!o || o->kind != VAL_OBJECT)
		return NULL;
	for (i = 0; i < o->u.list.count; i++)
		if (strcmp(o->u.list.items[i].key, key) == 0)
			return &o->u.list.items[i];
	return NULL;
}

const char *
value_string(const Value *v)
{
	if (!v || v->kind != VAL_STRING ||
	    strlen(v->u.string.text) != v->u.string.length)
		return NULL;
	return v->u.string.text;
}
