/* Fuzzer of the checkpoint reader. The first byte of the input picks what the
 * rest is: 'g' a GGUF file, 'h' the same with header_only allowed, 'p' two
 * parts of a split one, behind the size of the first in two bytes, 's' a
 * model.safetensors, 'i' an index of shards, 'c' a config.json. The functions
 * of mapping.h are replaced (link without mapping.c): files are exact copies
 * on the heap, so that a byte read behind the end is seen.
 *
 * With clang -fsanitize=fuzzer,address,undefined it is a fuzzer; compiled with
 * -DFUZZ_MAIN it replays the files on its command line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../runtime/checkpoint.h"
#include "../runtime/mapping.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

/* ---- a folder in memory ---- */

static const char shard_header[] =
    "{\"x\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}";

static struct {
	char kind;
	const unsigned char *data;
	size_t size;
} input;

static Mapping
copy_of(const void *data, size_t size)
{
	unsigned char *copy = NULL;

	if (size) {
		copy = malloc(size);
		if (!copy)
			abort();
		memcpy(copy, data, size);
	}
	return (Mapping){copy, size};
}

static Mapping
small_shard(void)
{
	unsigned char bytes[8 + sizeof shard_header - 1 + 4] = {0};

	bytes[0] = sizeof shard_header - 1;
	memcpy(bytes + 8, shard_header, sizeof shard_header - 1);
	return copy_of(bytes, sizeof bytes);
}

/* The part of a split file whose name is path. */
static Mapping
part_of(const char *path)
{
	size_t first = input.size < 2 ? 0 : input.data[0] | input.data[1] << 8;
	size_t size = input.size < 2 ? 0 : input.size - 2;
	const unsigned char *data = input.data + (input.size - size);

	first = first < size ? first : size;
	return strcmp(path, "f-00001-of-00002.gguf") == 0
		   ? copy_of(data, first)
		   : copy_of(data + first, size - first);
}

/* Whether path is the file that the input stands for. */
static int
is_input(const char *path)
{
	switch (input.kind) {
	case 'g':
	case 'h':
		return 1;
	case 'p':
		return strcmp(path, "f-00001-of-00002.gguf") == 0 ||
		       strcmp(path, "f-00002-of-00002.gguf") == 0;
	case 's':
		return strcmp(path, "f/model.safetensors") == 0;
	case 'i':
		return strcmp(path, "f/model.safetensors.index.json") == 0;
	default:
		return strcmp(path, "f/config.json") == 0;
	}
}

FileKind
file_kind(const char *path)
{
	if (is_input(path))
		return FILE_REGULAR;
	if (strcmp(path, "f") == 0)
		return FILE_FOLDER;
	if (strcmp(path, "f/config.json") == 0)
		return FILE_REGULAR;
	return input.kind == 'c' && strcmp(path, "f/model.safetensors") == 0
		   ? FILE_REGULAR
		   : FILE_MISSING;
}

/* Names without the end of a part are links to a part. */
bool
link_target(const char *path, char *out, size_t size)
{
	if (strcmp(path, "f.gguf") != 0)
		return false;
	snprintf(out, size, "f-00002-of-00002.gguf");
	return true;
}

ingot_status
map_file(const char *path, Mapping *out, Error *err)
{
	/* A path that leaves the folder would be a fault of the reader. */
	if (strncmp(path, "f", 1) != 0 || strstr(path, "/../") ||
	    (strlen(path) > 2 && strchr(path + 2, '/')))
		abort();
	if (input.kind == 'p' && is_input(path))
		*out = part_of(path);
	else if (is_input(path))
		*out = copy_of(input.data, input.size);
	else if (strcmp(path, "f/config.json") == 0)
		*out = copy_of("{}", 2);
	else if (strstr(path, "none"))
		return fail(err, INGOT_IO, "%s: is not there", path);
	else
		*out = small_shard();
	return INGOT_OK;
}

void
unmap_file(Mapping *m)
{
	free((void *)m->data);
	*m = (Mapping){0};
}

/* ---- using what was opened ---- */

static volatile unsigned sink;

static void
touch(const char *bytes, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		sink += (unsigned char)bytes[i];
}

static void
touch_value(const Value *v)
{
	size_t i;

	if (v->key)
		touch(v->key, strlen(v->key) + 1);
	if (v->kind == VAL_STRING)
		touch(v->u.string.text, v->u.string.length);
	if (v->kind == VAL_ARRAY || v->kind == VAL_OBJECT)
		for (i = 0; i < v->u.list.count; i++)
			touch_value(&v->u.list.items[i]);
}

static void
touch_tensor(const Checkpoint *c, const CkptTensor *t)
{
	uint64_t n = 1;
	int i;

	if (ckpt_find(c, t->name) != t || t->n_dims < 1 ||
	    t->n_dims > CKPT_MAX_DIMS)
		abort();
	for (i = 0; i < t->n_dims; i++)
		if (t->dims[i] == 0 || t->dims[i] > INT64_MAX / n)
			abort();
		else
			n *= t->dims[i];
	if (t->type != DT_COUNT && t->bytes != dtype_bytes(t->type, n))
		abort();
	touch(t->type_name, strlen(t->type_name));
	if (t->data)
		touch(t->data, t->bytes);
	else if (!ckpt_header_only(c))
		abort();
}

int
LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	static const char *const path_of[] = {
	    "f", "f.gguf", "f-00001-of-00002.gguf"};
	Checkpoint *c;
	Error e = {0};
	size_t i;
	bool gguf;

	if (size == 0 || !strchr("ghpsic", data[0]) || data[0] == '\0')
		return 0;
	input.kind = (char)data[0];
	input.data = data + 1;
	input.size = size - 1;
	gguf = strchr("ghp", input.kind) != NULL;
	if (ckpt_open(path_of[gguf + (input.kind == 'p')], input.kind == 'h',
		&c, &e)) {
		if (c || e.status == INGOT_OK || e.text[0] != 'f')
			abort();
		return 0;
	}
	touch_value(ckpt_config(c));
	for (i = 0; i < ckpt_count(c); i++)
		touch_tensor(c, ckpt_tensor(c, i));
	ckpt_close(c);
	return 0;
}

#ifdef FUZZ_MAIN
static int
replay(const char *path)
{
	static unsigned char bytes[1 << 20];
	FILE *f = fopen(path, "rb");
	size_t n;

	if (!f) {
		perror(path);
		return 1;
	}
	n = fread(bytes, 1, sizeof bytes, f);
	fclose(f);
	return LLVMFuzzerTestOneInput(bytes, n);
}

int
main(int argc, char **argv)
{
	int i, failed = 0;

	for (i = 1; i < argc; i++)
		failed |= replay(argv[i]);
	return failed;
}
#endif
