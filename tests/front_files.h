/* For tests of the front end: descriptions of checkpoints, taken from a
 * fixture, edited, and written as GGUF headers or as folders whose tensors are
 * holes; and building a graph from them, or being refused. */
#ifndef TESTS_FRONT_FILES_H
#define TESTS_FRONT_FILES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../compiler/frontend.h"

/* Last: it defines a macro fail. */
#include <cmocka.h>

enum { MAX_TENSORS = 256, MAX_KEYS = 64 };

static char folder[] = "/tmp/unit_frontend.XXXXXX";

typedef struct Tensor {
	char name[128];
	DType type;
	int n;
	uint64_t dim[4]; /* slowest first */
} Tensor;

typedef struct Key {
	char name[96];
	Value value; /* its text and items belong to others */
} Key;

typedef struct Description {
	Tensor tensor[MAX_TENSORS];
	size_t n_tensors;
	Key key[MAX_KEYS]; /* of a GGUF file */
	size_t n_keys;
	const char *config; /* of a folder: config.json */
} Description;

/* ---- editing ---- */

static inline Tensor *
find(Description *d, const char *name)
{
	size_t i;

	for (i = 0; i < d->n_tensors; i++)
		if (strcmp(d->tensor[i].name, name) == 0)
			return &d->tensor[i];
	fail_msg("the description has no tensor %s", name);
	return NULL;
}

static inline void
add(Description *d, const char *name, DType type, int n, ...)
{
	Tensor *t = &d->tensor[d->n_tensors++];
	va_list dims;
	int i;

	assert_true(d->n_tensors <= MAX_TENSORS);
	*t = (Tensor){.type = type, .n = n};
	snprintf(t->name, sizeof t->name, "%s", name);
	va_start(dims, n);
	for (i = 0; i < n; i++)
		t->dim[i] = (uint64_t)va_arg(dims, int);
	va_end(dims);
}

/* Drops the tensors whose names begin so: at least one. */
static inline void
drop(Description *d, const char *beginning)
{
	size_t i, kept = 0;

	for (i = 0; i < d->n_tensors; i++)
		if (strncmp(d->tensor[i].name, beginning, strlen(beginning)))
			d->tensor[kept++] = d->tensor[i];
	assert_true(kept < d->n_tensors);
	d->n_tensors = kept;
}

static inline void
rename_tensor(Description *d, const char *old, const char *name)
{
	Tensor *t = find(d, old);

	snprintf(t->name, sizeof t->name, "%s", name);
}

static inline void
set_value(Description *d, const char *name, Value v)
{
	size_t i = 0;

	while (i < d->n_keys && strcmp(d->key[i].name, name) != 0)
		i++;
	if (i == d->n_keys)
		d->n_keys++;
	assert_true(i < MAX_KEYS);
	snprintf(d->key[i].name, sizeof d->key[i].name, "%s", name);
	d->key[i].value = v;
}

static inline void
set_count(Description *d, const char *name, int64_t n)
{
	set_value(d, name, (Value){.kind = VAL_INT, .u.integer = n});
}

static inline void
set_number(Description *d, const char *name, double x)
{
	set_value(d, name, (Value){.kind = VAL_FLOAT, .u.number = x});
}

static inline void
set_flag(Description *d, const char *name, bool b)
{
	set_value(d, name, (Value){.kind = VAL_BOOL, .u.boolean = b});
}

static inline void
set_text(Description *d, const char *name, const char *text)
{
	set_value(d, name,
	    (Value){.kind = VAL_STRING, .u.string = {text, strlen(text)}});
}

static inline void
set_list(Description *d, const char *name, const Value *items, size_t n)
{
	set_value(d, name, (Value){.kind = VAL_ARRAY, .u.list = {items, n}});
}

/* ---- reading a fixture ---- */

/* All but the tokenizer of a GGUF file; c must stay open. */
static inline void
describe(Description *d, const Checkpoint *c)
{
	const Value *config = ckpt_config(c);
	size_t i, j;

	d->n_tensors = d->n_keys = 0;
	for (i = 0; i < ckpt_count(c); i++) {
		const CkptTensor *t = ckpt_tensor(c, i);
		Tensor *to = &d->tensor[d->n_tensors++];

		assert_true(d->n_tensors <= MAX_TENSORS);
		*to = (Tensor){.type = t->type, .n = t->n_dims};
		snprintf(to->name, sizeof to->name, "%s", t->name);
		for (j = 0; j < (size_t)t->n_dims; j++)
			to->dim[j] = t->dims[j];
	}
	for (i = 0; i < config->u.list.count; i++) {
		const Value *v = &config->u.list.items[i];

		if (strncmp(v->key, "tokenizer.", 10) != 0)
			set_value(d, v->key, *v);
	}
}

/* ---- writing ---- */

static inline const char *
path_of(const char *name)
{
	static char path[4][256];
	static int turn;

	turn = (turn + 1) % 4;
	snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
	return path[turn];
}

static inline FILE *
create(const char *name)
{
	FILE *f = fopen(path_of(name), "wb");

	assert_non_null(f);
	return f;
}

static inline void
write_text(const char *name, const char *text)
{
	FILE *f = create(name);

	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

static inline void
put(FILE *f, uint64_t v, int n)
{
	for (; n > 0; n--, v >>= 8)
		fputc((int)(v & 255), f);
}

static inline void
put_string(FILE *f, const char *s, size_t n)
{
	put(f, n, 8);
	fwrite(s, 1, n, f);
}

static inline int
gguf_kind(const Value *v)
{
	switch (v->kind) {
	case VAL_BOOL:
		return 7;
	case VAL_INT:
		return 4;
	case VAL_FLOAT:
		return 12;
	case VAL_STRING:
		return 8;
	default:
		return 9;
	}
}

static inline void
put_value(FILE *f, const Value *v)
{
	uint64_t bits;
	size_t i;

	switch (v->kind) {
	case VAL_BOOL:
		put(f, v->u.boolean, 1);
		break;
	case VAL_INT:
		put(f, (uint64_t)v->u.integer, 4);
		break;
	case VAL_FLOAT:
		memcpy(&bits, &v->u.number, 8);
		put(f, bits, 8);
		break;
	case VAL_STRING:
		put_string(f, v->u.string.text, v->u.string.length);
		break;
	default:
		put(f, (uint64_t)gguf_kind(&v->u.list.items[0]), 4);
		put(f, v->u.list.count, 8);
		for (i = 0; i < v->u.list.count; i++)
			put_value(f, &v->u.list.items[i]);
	}
}

static inline uint64_t
tensor_bytes(const Tensor *t)
{
	uint64_t n = 1;
	int i;

	for (i = 0; i < t->n; i++)
		n *= t->dim[i];
	return dtype_bytes(t->type, n);
}

/* A file that ends where its data would start. Returns its path. */
static inline const char *
write_gguf(const Description *d, const char *name)
{
	FILE *f = create(name);
	uint64_t at = 0;
	size_t i;
	int j;

	fwrite("GGUF", 1, 4, f);
	put(f, 3, 4);
	put(f, d->n_tensors, 8);
	put(f, d->n_keys, 8);
	for (i = 0; i < d->n_keys; i++) {
		put_string(f, d->key[i].name, strlen(d->key[i].name));
		put(f, (uint64_t)gguf_kind(&d->key[i].value), 4);
		put_value(f, &d->key[i].value);
	}
	for (i = 0; i < d->n_tensors; i++) {
		const Tensor *t = &d->tensor[i];

		put_string(f, t->name, strlen(t->name));
		put(f, (uint64_t)t->n, 4);
		for (j = t->n - 1; j >= 0; j--)
			put(f, t->dim[j], 8);
		put(f, (uint64_t)dtypes[t->type].gguf, 4);
		put(f, at, 8);
		at += (tensor_bytes(t) + 31) / 32 * 32;
	}
	while (ftell(f) % 32 != 0)
		fputc(0, f);
	assert_int_equal(fclose(f), 0);
	return path_of(name);
}

static inline void
put_header(const Description *d, FILE *f)
{
	uint64_t at = 0;
	size_t i;
	int j;

	for (i = 0; i < d->n_tensors; i++) {
		const Tensor *t = &d->tensor[i];

		fprintf(f, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[",
		    i > 0 ? "," : "{", t->name,
		    t->type == DT_BF16 ? "BF16" : "F32");
		for (j = 0; j < t->n; j++)
			fprintf(f, "%s%llu", j > 0 ? "," : "",
			    (unsigned long long)t->dim[j]);
		fprintf(f, "],\"data_offsets\":[%llu,%llu]}",
		    (unsigned long long)at,
		    (unsigned long long)(at + tensor_bytes(t)));
		at += tensor_bytes(t);
	}
	fputc('}', f);
}

/* A folder called name, with model.safetensors and config.json. */
static inline const char *
write_folder(const Description *d, const char *name)
{
	char file[128];
	uint64_t data = 0;
	size_t i;
	long end;
	FILE *f;

	mkdir(path_of(name), 0777);
	snprintf(file, sizeof file, "%s/config.json", name);
	write_text(file, d->config);
	snprintf(file, sizeof file, "%s/model.safetensors", name);
	f = create(file);
	put(f, 0, 8);
	put_header(d, f);
	while ((end = ftell(f)) % 8 != 0)
		fputc(' ', f);
	rewind(f);
	put(f, (uint64_t)end - 8, 8);
	for (i = 0; i < d->n_tensors; i++)
		data += tensor_bytes(&d->tensor[i]);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(
	    truncate(path_of(file), (off_t)((uint64_t)end + data)), 0);
	return path_of(name);
}

/* ---- building ---- */

#define FIXTURE(name) "tests/fixtures/" name "-tiny/model-bf16.gguf"

typedef struct Built {
	Arena *arena;
	Checkpoint *ckpt;
	Graph *graph; /* NULL: diag says why */
	Diag diag;
	int ignored;
} Built;

static inline void
count_ignored(void *user, const char *tensor)
{
	assert_non_null(tensor);
	++*(int *)user;
}

static inline void
build(Built *b, const char *path, const char *model, DType kv)
{
	FrontOptions o = {.model = model,
	    .kv = kv,
	    .ignored = count_ignored,
	    .user = &b->ignored};
	Error e = {0};

	*b = (Built){.arena = arena_new()};
	if (ckpt_open(path, true, &b->ckpt, &e))
		fail_msg("%s", e.text);
	if (setjmp(b->diag.jump) == 0)
		b->graph = frontend_build(b->arena, b->ckpt, &o, &b->diag);
}

static inline void
release(Built *b)
{
	ckpt_close(b->ckpt);
	arena_free(b->arena);
}

static inline void
build_good(Built *b, const char *path)
{
	build(b, path, NULL, DT_BF16);
	if (b->graph == NULL)
		fail_msg("%s: %s", path, b->diag.text);
}

/* Building ends with code 1 and a sentence that has all of words, which end
 * with NULL. */
static inline void
check_refused(const char *path, const char *model, ...)
{
	const char *word;
	va_list args;
	Built b;

	build(&b, path, model, DT_BF16);
	va_start(args, model);
	while ((word = va_arg(args, const char *)) != NULL) {
		if (b.graph != NULL)
			fail_msg("%s was built; wanted '%s'", path, word);
		if (strstr(b.diag.text, word) == NULL)
			fail_msg("no '%s' in: %s", word, b.diag.text);
	}
	va_end(args);
	assert_int_equal(b.diag.exit_code, 1);
	assert_null(strchr(b.diag.text, '\n'));
	release(&b);
}

#define REFUSED(...) check_refused(__VA_ARGS__, NULL)

static inline int
set_up(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

static inline int
tear_down(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof command, "rm -rf %s", folder);
	return system(command);
}

#endif
