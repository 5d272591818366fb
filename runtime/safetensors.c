/* Reader of safetensors files: model.safetensors of a folder, or the shards
 * that model.safetensors.index.json lists. A file is a u64 header length, the
 * header (a JSON object: tensor name to dtype, shape and data_offsets from
 * the end of the header) and the data. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint_impl.h"

#define SINGLE_FILE "model.safetensors"
#define INDEX_FILE "model.safetensors.index.json"
#define SUFFIX ".safetensors"

enum {
	LENGTH_BYTES = 8,
	MAX_HEADER = 100 * 1000 * 1000, /* the format's own limit */
	MAX_SHARDS = 4096
};

/* Element types of the format; dtypes below one byte count in bits. */
static const struct {
	const char *name;
	DType type;
	unsigned bits;
} formats[] = {
    {"F32", DT_F32, 32},
    {"F16", DT_F16, 16},
    {"BF16", DT_BF16, 16},
    {"I32", DT_I32, 32},
    {"BOOL", DT_COUNT, 8},
    {"U8", DT_COUNT, 8},
    {"I8", DT_COUNT, 8},
    {"F8_E4M3", DT_COUNT, 8},
    {"F8_E5M2", DT_COUNT, 8},
    {"F8_E8M0", DT_COUNT, 8},
    {"F6_E2M3", DT_COUNT, 6},
    {"F6_E3M2", DT_COUNT, 6},
    {"F4", DT_COUNT, 4},
    {"I16", DT_COUNT, 16},
    {"U16", DT_COUNT, 16},
    {"U32", DT_COUNT, 32},
    {"I64", DT_COUNT, 64},
    {"U64", DT_COUNT, 64},
    {"F64", DT_COUNT, 64},
    {"C64", DT_COUNT, 64},
};

/* ---- one file ---- */

/* The number in v, which must be an integer from 0; false otherwise. */
static bool
get_size(const Value *v, uint64_t *out)
{
	if (!v || v->kind != VAL_INT || v->u.integer < 0)
		return false;
	*out = (uint64_t)v->u.integer;
	return true;
}

/* The sizes of the array v into out; false when v is something else or has
 * more than most. */
static bool
get_sizes(const Value *v, uint64_t *out, size_t most, size_t *count)
{
	size_t i;

	if (!v || v->kind != VAL_ARRAY || v->u.list.count > most)
		return false;
	*count = v->u.list.count;
	for (i = 0; i < *count; i++)
		if (!get_size(&v->u.list.items[i], &out[i]))
			return false;
	return true;
}

/* Sets type and type_name of t. *bits is 0 for a type not known. */
static ingot_status
set_type(const char *file, CkptTensor *t, const char *dtype, unsigned *bits,
    Error *err)
{
	Quote q;
	size_t i;

	if (!dtype)
		return ckpt_fail(err, INGOT_BAD_FILE, file,
		    "tensor '%s' has no dtype",
		    quote(&q, t->name, strlen(t->name)));
	t->type = DT_COUNT;
	t->type_name = dtype;
	*bits = 0;
	for (i = 0; i < sizeof formats / sizeof *formats; i++)
		if (strcmp(formats[i].name, dtype) == 0) {
			t->type = formats[i].type;
			*bits = formats[i].bits;
		}
	return ckpt_check_name(file, "dtype", dtype, strlen(dtype), err);
}

/* Sets bytes of t and the span, counted from the start of the file. */
static ingot_status
set_span(const char *file, CkptTensor *t, unsigned bits, const Value *offsets,
    uint64_t origin, Span *span, Error *err)
{
	Quote q;
	const char *name = quote(&q, t->name, strlen(t->name));
	uint64_t at[2], n = ckpt_elements(t);
	size_t count;

	if (!get_sizes(offsets, at, 2, &count) || count != 2 || at[0] > at[1])
		return ckpt_fail(err, INGOT_BAD_FILE, file,
		    "tensor '%s' has no data_offsets [begin, end]", name);
	if (bits && n > INT64_MAX / bits)
		return ckpt_fail(err, INGOT_BAD_FILE, file,
		    "tensor '%s' has %" PRIu64 " elements, more than any file "
		    "holds",
		    name, n);
	t->bytes = at[1] - at[0];
	if (bits && (n * bits % 8 != 0 || t->bytes != n * bits / 8))
		return ckpt_fail(err, INGOT_BAD_FILE, file,
		    "tensor '%s' has %" PRIu64 " bytes by its data_offsets "
		    "and %" PRIu64 " by its shape and dtype %s",
		    name, t->bytes, n * bits / 8, t->type_name);
	/* Both are below 2^63: no overflow. */
	*span = (Span){t->name, origin + at[0], origin + at[1]};
	return INGOT_OK;
}

static ingot_status
add_tensor(Checkpoint *c, const CkptFile *f, const Value *entry,
    uint64_t origin, Span *span, Error *err)
{
	Quote q;
	uint64_t dims[CKPT_MAX_DIMS];
	size_t n;
	unsigned bits = 0;
	CkptTensor *t;
	ingot_status s = ckpt_check_name(
	    f->path, "tensor", entry->key, strlen(entry->key), err);

	if (s)
		return s;
	if (c->count == CKPT_MAX_TENSORS)
		return ckpt_fail(err, INGOT_UNSUPPORTED, f->path,
		    "the checkpoint has more than %d tensors",
		    CKPT_MAX_TENSORS);
	t = ckpt_add_tensor(c);
	if (!t)
		return ckpt_no_memory(f->path, err);
	t->name = entry->key;
	s = set_type(
	    f->path, t, value_string(value_get(entry, "dtype")), &bits, err);
	if (s)
		return s;
	if (!get_sizes(value_get(entry, "shape"), dims, CKPT_MAX_DIMS, &n))
		return ckpt_fail(err, INGOT_BAD_FILE, f->path,
		    "tensor '%s' has no shape of up to %d sizes",
		    quote(&q, t->name, strlen(t->name)), CKPT_MAX_DIMS);
	s = ckpt_set_dims(f->path, t, dims, n, err);
	if (s)
		return s;
	return set_span(f->path, t, bits, value_get(entry, "data_offsets"),
	    origin, span, err);
}

/* The parsed header of f and where the data starts. */
static ingot_status
read_header(Checkpoint *c, const CkptFile *f, const Value **header,
    uint64_t *origin, Error *err)
{
	const Mapping *m = &f->map;
	uint64_t n = 0;
	int i;

	if (m->size < LENGTH_BYTES)
		return ckpt_fail(err, INGOT_BAD_FILE, f->path,
		    "the file has %" PRIu64 " bytes, too few for a "
		    "safetensors file",
		    m->size);
	for (i = LENGTH_BYTES - 1; i >= 0; i--)
		n = n << 8 | m->data[i];
	if (n > m->size - LENGTH_BYTES)
		return ckpt_fail(err, INGOT_BAD_FILE, f->path,
		    "the header should have %" PRIu64 " bytes, but the file "
		    "has only %" PRIu64 "; fetch the file again",
		    n, m->size);
	if (n > MAX_HEADER)
		return ckpt_fail(err, INGOT_BAD_FILE, f->path,
		    "the header should have %" PRIu64 " bytes, more than the "
		    "%d that a safetensors file can have",
		    n, MAX_HEADER);
	*origin = LENGTH_BYTES + n;
	return json_read(&c->pool, f->path,
	    (const char *)m->data + LENGTH_BYTES, (size_t)n, header, err);
}

static ingot_status
read_tensors(Checkpoint *c, CkptFile *f, const Value *header, uint64_t origin,
    Error *err)
{
	size_t i, n = 0;
	Span *spans = pool_alloc(&c->pool, header->u.list.count, sizeof *spans);
	ingot_status s = INGOT_OK;

	if (!spans)
		return ckpt_no_memory(f->path, err);
	for (i = 0; i < header->u.list.count && !s; i++) {
		const Value *entry = &header->u.list.items[i];

		if (strcmp(entry->key, "__metadata__") != 0)
			s = add_tensor(c, f, entry, origin, &spans[n++], err);
	}
	f->end = c->count;
	for (i = 0; i < n && !s; i++)
		if (spans[i].begin <= f->map.size)
			c->tensors[f->first + i].data =
			    f->map.data + spans[i].begin;
	return s ? s : ckpt_check_spans(f->path, spans, n, f->map.size, err);
}

static ingot_status
read_shard(Checkpoint *c, CkptFile *f, const char *name, Error *err)
{
	const Value *header = NULL;
	uint64_t origin = 0;
	ingot_status s;

	f->path = ckpt_join(c, name);
	if (!f->path)
		return ckpt_no_memory(c->path, err);
	f->first = f->end = c->count;
	s = map_file(f->path, &f->map, err);
	if (!s)
		s = read_header(c, f, &header, &origin, err);
	return s ? s : read_tensors(c, f, header, origin, err);
}

/* ---- the index ---- */

/* A shard lies in the folder itself. */
static bool
is_shard_name(const Value *v)
{
	const char *name = value_string(v);
	size_t n = name ? strlen(name) : 0;

	return n > strlen(SUFFIX) && n == v->u.string.length &&
	       n <= CKPT_MAX_NAME && is_printable(name, n) &&
	       !strchr(name, '/') &&
	       strcmp(name + n - strlen(SUFFIX), SUFFIX) == 0;
}

static int
compare_text(const void *a, const void *b)
{
	const char *const *x = a, *const *y = b;

	return strcmp(*x, *y);
}

/* The file names in map, sorted, each once. */
static ingot_status
list_shards(
    Checkpoint *c, const Value *map, const char ***names, size_t *n, Error *err)
{
	Quote q;
	size_t i, unique = 0, all = map->u.list.count;
	const char **list = pool_alloc(&c->pool, all, sizeof *list);

	if (!list)
		return ckpt_no_memory(c->path, err);
	for (i = 0; i < all; i++) {
		const Value *v = &map->u.list.items[i];

		if (!is_shard_name(v))
			return ckpt_fail(err, INGOT_BAD_FILE, c->path,
			    INDEX_FILE " gives tensor '%s' no file of the "
				       "folder that ends in " SUFFIX,
			    quote(&q, v->key, strlen(v->key)));
		list[i] = v->u.string.text;
	}
	if (all)
		qsort(list, all, sizeof *list, compare_text);
	for (i = 0; i < all; i++)
		if (i == 0 || strcmp(list[i], list[unique - 1]) != 0)
			list[unique++] = list[i];
	*names = list;
	*n = unique;
	if (unique == 0 || unique > MAX_SHARDS)
		return ckpt_fail(err, INGOT_BAD_FILE, c->path,
		    INDEX_FILE " names %zu files; from 1 to %d are possible",
		    unique, MAX_SHARDS);
	return INGOT_OK;
}

/* Every tensor of map must be in the shard that map gives for it. (A shard
 * may hold more: fine-tunes often keep an old index.) */
static ingot_status
check_map(
    const Checkpoint *c, const Value *map, const char *const *names, Error *err)
{
	Quote q, r;
	size_t i, f;

	for (i = 0; i < map->u.list.count; i++) {
		const Value *v = &map->u.list.items[i];
		const CkptTensor *t = ckpt_find(c, v->key);
		size_t at = t ? (size_t)(t - c->tensors) : c->count;

		for (f = 0; f < c->n_files && at >= c->files[f].end; f++)
			;
		if (!t || strcmp(names[f], v->u.string.text) != 0)
			return ckpt_fail(err, INGOT_BAD_FILE, c->path,
			    "tensor '%s' is not in %s, where " INDEX_FILE
			    " puts it",
			    quote(&q, v->key, strlen(v->key)),
			    quote(&r, v->u.string.text, v->u.string.length));
	}
	return INGOT_OK;
}

static ingot_status
read_shards(Checkpoint *c, const Value *index, Error *err)
{
	const Value *map = value_get(index, "weight_map");
	const char **names = NULL;
	size_t i, n = 0;
	ingot_status s;

	if (!map || map->kind != VAL_OBJECT)
		return ckpt_fail(err, INGOT_BAD_FILE, c->path,
		    INDEX_FILE " has no object weight_map");
	s = list_shards(c, map, &names, &n, err);
	if (!s)
		s = ckpt_add_files(c, n, err);
	for (i = 0; i < n && !s; i++)
		s = read_shard(c, &c->files[i], names[i], err);
	if (!s)
		s = ckpt_index(c, err);
	return s ? s : check_map(c, map, names, err);
}

ingot_status
safetensors_read(Checkpoint *c, Error *err)
{
	const char *single = ckpt_join(c, SINGLE_FILE);
	const Value *index;
	ingot_status s;

	if (!single)
		return ckpt_no_memory(c->path, err);
	if (file_kind(single) != FILE_MISSING) {
		s = ckpt_add_files(c, 1, err);
		if (!s)
			s = read_shard(c, &c->files[0], SINGLE_FILE, err);
		return s ? s : ckpt_index(c, err);
	}
	s = ckpt_json(c, INDEX_FILE, &index, err);
	if (s)
		return s;
	if (!index)
		return ckpt_fail(err, INGOT_BAD_FILE, c->path,
		    "the folder has neither " SINGLE_FILE " nor " INDEX_FILE);
	return read_shards(c, index, err);
}
