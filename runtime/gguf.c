/* Reader of GGUF files, version 3, little endian. The reader walks the header
 * once, never behind the end of the file, and stops at the first fault. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint_impl.h"

enum {
	GGUF_DIMS = 4,
	MAX_KEYS = 1 << 16,
	MAX_ITEMS = 1 << 24, /* elements of all arrays together */
	MAX_TEXT = 1 << 27,  /* bytes of all strings outside arrays */
	MAX_NESTING = 4,     /* arrays in arrays */
	MIN_ALIGNMENT = 8,
	MAX_ALIGNMENT = 1 << 24,
	/* Least bytes of a key with its value and of a tensor's entry, whose
	 * names have a byte at least. */
	KEY_BYTES = 8 + 1 + 4 + 1,
	TENSOR_BYTES = 8 + 1 + 4 + 4 + 8
};

typedef enum GgufKind {
	GGUF_U8,
	GGUF_I8,
	GGUF_U16,
	GGUF_I16,
	GGUF_U32,
	GGUF_I32,
	GGUF_F32,
	GGUF_BOOL,
	GGUF_STRING,
	GGUF_ARRAY,
	GGUF_U64,
	GGUF_I64,
	GGUF_F64,
	GGUF_KINDS
} GgufKind;

/* Least bytes of one value of each kind. */
static const unsigned char kind_bytes[GGUF_KINDS] = {
    1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8};

/* Tensor types of ggml that Ingot can name and measure but not compute. */
static const struct {
	uint32_t number;
	const char *name;
	uint32_t block, bytes;
} foreign_types[] = {
    {9, "q8_1", 32, 36},
    {15, "q8_k", 256, 292},
    {16, "iq2_xxs", 256, 66},
    {17, "iq2_xs", 256, 74},
    {18, "iq3_xxs", 256, 98},
    {19, "iq1_s", 256, 50},
    {21, "iq3_s", 256, 110},
    {22, "iq2_s", 256, 82},
    {24, "i8", 1, 1},
    {25, "i16", 1, 2},
    {27, "i64", 1, 8},
    {28, "f64", 1, 8},
    {29, "iq1_m", 256, 56},
    {34, "tq1_0", 256, 54},
    {35, "tq2_0", 256, 66},
    {39, "mxfp4", 32, 17},
    {40, "nvfp4", 64, 36},
    {41, "q1_0", 128, 18},
    {42, "q2_0", 64, 18},
};

typedef struct Gguf {
	Checkpoint *c;
	CkptFile *f;
	const unsigned char *data;
	uint64_t size, at;
	uint64_t items;   /* array elements so far */
	uint64_t text;    /* bytes of copied strings so far */
	const char *what; /* "key" or "tensor" being read, or "header" */
	const char *name; /* its name, or "" */
	ingot_status status;
	Error *err;
} Gguf;

/* Records the first fault; later ones are its consequences. */
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
static void
bad(Gguf *g, ingot_status status, const char *fmt, ...)
{
	char sentence[INGOT_ERROR_TEXT];
	Quote q;
	va_list args;

	if (g->status)
		return;
	va_start(args, fmt);
	vsnprintf(sentence, sizeof sentence, fmt, args);
	va_end(args);
	if (*g->name)
		g->status = ckpt_fail(g->err, status, g->f->path, "%s '%s' %s",
		    g->what, quote(&q, g->name, strlen(g->name)), sentence);
	else
		g->status =
		    ckpt_fail(g->err, status, g->f->path, "%s", sentence);
}

static void
bad_memory(Gguf *g)
{
	if (!g->status)
		g->status = ckpt_no_memory(g->f->path, g->err);
}

static uint64_t
left(const Gguf *g)
{
	return g->size - g->at;
}

/* ---- numbers and strings ---- */

/* The next n bytes as an unsigned number; 0 after a fault. */
static uint64_t
get(Gguf *g, unsigned n)
{
	uint64_t v = 0;
	unsigned i;

	if (!g->status && left(g) < n)
		bad(g, INGOT_BAD_FILE,
		    "ends inside the header: %u bytes are needed at byte "
		    "%" PRIu64 " of %" PRIu64 "; fetch the file again",
		    n, g->at, g->size);
	if (g->status)
		return 0;
	for (i = 0; i < n; i++)
		v |= (uint64_t)g->data[g->at + i] << (8 * i);
	g->at += n;
	return v;
}

/* The next string, as it lies in the file: no NUL after it. */
static const char *
get_string(Gguf *g, size_t *length)
{
	uint64_t n = get(g, 8);
	const char *text = (const char *)g->data + g->at;

	*length = 0;
	if (!g->status && n > left(g))
		bad(g, INGOT_BAD_FILE,
		    "has a string of %" PRIu64 " bytes at byte %" PRIu64
		    ", but only %" PRIu64 " are left",
		    n, g->at, left(g));
	if (g->status)
		return NULL;
	g->at += n;
	*length = (size_t)n;
	return text;
}

/* The next string as the name of a key or tensor, copied. Sets g->name. */
static const char *
get_name(Gguf *g, const char *what)
{
	size_t n;
	const char *text, *copy = NULL;

	g->what = what;
	g->name = "";
	text = get_string(g, &n);
	if (!g->status)
		g->status = ckpt_check_name(g->f->path, what, text, n, g->err);
	if (!g->status && !(copy = pool_text(&g->c->pool, text, n)))
		bad_memory(g);
	if (copy)
		g->name = copy;
	return copy;
}

static double
get_f32(Gguf *g)
{
	uint32_t bits = (uint32_t)get(g, 4);
	float f;

	memcpy(&f, &bits, sizeof f);
	return f;
}

static double
get_f64(Gguf *g)
{
	uint64_t bits = get(g, 8);
	double d;

	memcpy(&d, &bits, sizeof d);
	return d;
}

/* The low n bytes of bits as a two's complement number. */
static int64_t
sign_extend(uint64_t bits, unsigned n)
{
	uint64_t sign = UINT64_C(1) << (8 * n - 1);

	return bits < sign ? (int64_t)bits
			   : -(int64_t)(2 * sign - 1 - bits) - 1;
}

/* ---- values ---- */

static void
get_bool(Gguf *g, Value *v)
{
	uint64_t b = get(g, 1);

	if (b > 1)
		bad(g, INGOT_BAD_FILE,
		    "holds %" PRIu64 " where 0 or 1 must stand for a bool", b);
	v->kind = VAL_BOOL;
	v->u.boolean = b == 1;
}

static void
get_integer(Gguf *g, GgufKind kind, Value *v)
{
	bool has_sign = kind == GGUF_I8 || kind == GGUF_I16 ||
			kind == GGUF_I32 || kind == GGUF_I64;
	unsigned n = kind_bytes[kind];
	uint64_t bits = get(g, n);

	if (!has_sign && bits > INT64_MAX) {
		v->kind = VAL_FLOAT;
		v->u.number = (double)bits;
		return;
	}
	v->kind = VAL_INT;
	v->u.integer = has_sign ? sign_extend(bits, n) : (int64_t)bits;
}

/* Fills all of *v but the key. depth: arrays around it. */
static void get_value(Gguf *g, uint32_t kind, int depth, Value *v);

/* The number of elements of an array of kind, or 0 after a fault. */
static uint64_t
get_count(Gguf *g, uint32_t kind)
{
	uint64_t n = get(g, 8);

	if (kind >= GGUF_KINDS) {
		bad(g, INGOT_BAD_FILE, "is an array of the unknown type %u",
		    (unsigned)kind);
		return 0;
	}
	if (n > left(g) / kind_bytes[kind])
		bad(g, INGOT_BAD_FILE,
		    "is an array of %" PRIu64 " elements, which do not fit "
		    "the %" PRIu64 " bytes left",
		    n, left(g));
	else if (n > MAX_ITEMS - g->items)
		bad(g, INGOT_UNSUPPORTED,
		    "is an array of %" PRIu64 " elements; all arrays "
		    "together can have %d",
		    n, MAX_ITEMS);
	if (g->status)
		return 0;
	g->items += n;
	return n;
}

static void
get_array(Gguf *g, int depth, Value *v)
{
	uint32_t kind = (uint32_t)get(g, 4);
	uint64_t i, n = get_count(g, kind);
	Value *items;

	if (depth > MAX_NESTING)
		bad(g, INGOT_BAD_FILE,
		    "has arrays nested deeper than %d levels", MAX_NESTING);
	if (g->status)
		return;
	items = pool_alloc(&g->c->pool, (size_t)n, sizeof *items);
	if (!items) {
		bad_memory(g);
		return;
	}
	for (i = 0; i < n && !g->status; i++)
		get_value(g, kind, depth, &items[i]);
	v->kind = VAL_ARRAY;
	v->u.list.items = items;
	v->u.list.count = (size_t)n;
}

static const char *
copy_text(Gguf *g, const char *text, size_t n)
{
	const char *copy = NULL;

	if (n > MAX_TEXT - g->text)
		bad(g, INGOT_UNSUPPORTED,
		    "has a string of %zu bytes; all strings outside arrays "
		    "together can have %d",
		    n, MAX_TEXT);
	else if (!(copy = pool_text(&g->c->pool, text, n)))
		bad_memory(g);
	g->text += copy ? n : 0;
	return copy;
}

/* Strings of arrays (hundreds of thousands of tokens) stay in the file. */
static void
get_text(Gguf *g, int depth, Value *v)
{
	size_t n;
	const char *text = get_string(g, &n);

	if (!g->status && depth == 0)
		text = copy_text(g, text, n);
	v->kind = VAL_STRING;
	v->u.string.text = text;
	v->u.string.length = n;
}

static void
get_value(Gguf *g, uint32_t kind, int depth, Value *v)
{
	switch (kind) {
	case GGUF_F32:
		v->kind = VAL_FLOAT;
		v->u.number = get_f32(g);
		break;
	case GGUF_F64:
		v->kind = VAL_FLOAT;
		v->u.number = get_f64(g);
		break;
	case GGUF_BOOL:
		get_bool(g, v);
		break;
	case GGUF_STRING:
		get_text(g, depth, v);
		break;
	case GGUF_ARRAY:
		get_array(g, depth + 1, v);
		break;
	default:
		if (kind < GGUF_KINDS)
			get_integer(g, (GgufKind)kind, v);
		else
			bad(g, INGOT_BAD_FILE,
			    "has a value of the unknown type %u",
			    (unsigned)kind);
	}
}

/* ---- metadata ---- */

static int
compare_keys(const void *a, const void *b)
{
	const Value *const *x = a, *const *y = b;

	return strcmp((*x)->key, (*y)->key);
}

static void
refuse_duplicate_keys(Gguf *g, const Value *items, size_t n)
{
	const Value **sorted = pool_alloc(&g->c->pool, n, sizeof *sorted);
	size_t i;

	if (!sorted) {
		bad_memory(g);
		return;
	}
	for (i = 0; i < n; i++)
		sorted[i] = &items[i];
	if (n)
		qsort(sorted, n, sizeof *sorted, compare_keys);
	for (i = 1; i < n; i++)
		if (compare_keys(&sorted[i - 1], &sorted[i]) == 0) {
			g->what = "key";
			g->name = sorted[i]->key;
			bad(g, INGOT_BAD_FILE, "is there twice");
		}
}

static void
read_keys(Gguf *g, uint64_t n)
{
	Value *root = pool_alloc(&g->c->pool, 1, sizeof *root);
	Value *items = pool_alloc(&g->c->pool, (size_t)n, sizeof *items);
	uint64_t i;

	if (!root || !items) {
		bad_memory(g);
		return;
	}
	for (i = 0; i < n && !g->status; i++) {
		items[i].key = get_name(g, "key");
		get_value(g, (uint32_t)get(g, 4), 0, &items[i]);
	}
	if (g->status)
		return;
	refuse_duplicate_keys(g, items, (size_t)n);
	root->kind = VAL_OBJECT;
	root->u.list.items = items;
	root->u.list.count = (size_t)n;
	g->f->keys = root;
}

/* general.alignment, or its default. */
static uint64_t
get_alignment(Gguf *g)
{
	const Value *v = value_get(g->f->keys, "general.alignment");
	int64_t a = 32;

	if (!v)
		return 32;
	if (v->kind != VAL_INT)
		bad(g, INGOT_BAD_FILE, "general.alignment is not an integer");
	else
		a = v->u.integer;
	if (a < MIN_ALIGNMENT || a > MAX_ALIGNMENT || (a & (a - 1)) != 0)
		bad(g, INGOT_BAD_FILE,
		    "general.alignment is %" PRId64 ", but must be a power of "
		    "two from %d to %d",
		    a, MIN_ALIGNMENT, MAX_ALIGNMENT);
	return g->status ? 32 : (uint64_t)a;
}

/* ---- tensors ---- */

/* Sets type and type_name of t; *block and *bytes are 0 when the type is not
 * known at all. */
static void
set_type(
    Gguf *g, CkptTensor *t, uint32_t number, uint32_t *block, uint32_t *bytes)
{
	char text[24];
	size_t i;

	*block = *bytes = 0;
	t->type = dtype_by_gguf((int32_t)number);
	if (t->type != DT_COUNT) {
		t->type_name = dtypes[t->type].name;
		*block = dtypes[t->type].block;
		*bytes = dtypes[t->type].bytes;
		return;
	}
	for (i = 0; i < sizeof foreign_types / sizeof *foreign_types; i++)
		if (foreign_types[i].number == number) {
			t->type_name = foreign_types[i].name;
			*block = foreign_types[i].block;
			*bytes = foreign_types[i].bytes;
			return;
		}
	snprintf(text, sizeof text, "type %u", (unsigned)number);
	t->type_name = pool_text(&g->c->pool, text, strlen(text));
	if (!t->type_name)
		bad_memory(g);
}

static void
set_bytes(Gguf *g, CkptTensor *t, uint32_t block, uint32_t bytes)
{
	uint64_t row = t->dims[t->n_dims - 1];
	uint64_t blocks;

	if (block == 0)
		return;
	if (row % block != 0) {
		bad(g, INGOT_BAD_FILE,
		    "has rows of %" PRIu64 " elements, no multiple of the "
		    "block of %u of %s",
		    row, (unsigned)block, t->type_name);
		return;
	}
	blocks = ckpt_elements(t) / block;
	if (blocks > INT64_MAX / bytes)
		bad(g, INGOT_BAD_FILE,
		    "has %" PRIu64 " blocks of %u bytes, more than any file "
		    "holds",
		    blocks, (unsigned)bytes);
	else
		t->bytes = blocks * bytes;
}

/* The file has the fastest axis first; CkptTensor has it last. */
static void
get_dims(Gguf *g, CkptTensor *t)
{
	uint64_t dims[GGUF_DIMS];
	uint64_t n = get(g, 4), i;

	if (n > GGUF_DIMS)
		bad(g, INGOT_BAD_FILE,
		    "has %" PRIu64 " dimensions, more than %d", n, GGUF_DIMS);
	for (i = 0; i < n && !g->status; i++)
		dims[n - 1 - i] = get(g, 8);
	if (!g->status)
		g->status =
		    ckpt_set_dims(g->f->path, t, dims, (size_t)n, g->err);
}

/* Reads one tensor's entry; *offset is from the start of the data. */
static void
get_tensor(Gguf *g, CkptTensor *t, uint64_t alignment, uint64_t *offset)
{
	uint32_t block, bytes;

	t->name = get_name(g, "tensor");
	if (g->status)
		return;
	get_dims(g, t);
	set_type(g, t, (uint32_t)get(g, 4), &block, &bytes);
	*offset = get(g, 8);
	if (g->status)
		return;
	set_bytes(g, t, block, bytes);
	if (*offset > INT64_MAX - t->bytes)
		bad(g, INGOT_BAD_FILE,
		    "lies at offset %" PRIu64 ", beyond any file", *offset);
	else if (*offset % alignment != 0)
		bad(g, INGOT_BAD_FILE,
		    "lies at offset %" PRIu64 ", no multiple of the alignment "
		    "of %" PRIu64,
		    *offset, alignment);
}

/* Turns offsets into places in the file, checks them and sets the pointers. */
static void
place_tensors(Gguf *g, Span *spans, uint64_t start, bool header_only)
{
	const CkptFile *f = g->f;
	size_t i, n = f->end - f->first;

	g->what = "tensor";
	for (i = 0; i < n; i++) {
		CkptTensor *t = &g->c->tensors[f->first + i];
		uint64_t begin = spans[i].begin;

		if (begin > INT64_MAX - start - t->bytes) {
			g->name = t->name;
			bad(g, INGOT_BAD_FILE,
			    "lies at offset %" PRIu64 ", beyond any file",
			    begin);
			return;
		}
		spans[i].name = t->name;
		spans[i].begin += start;
		spans[i].end = spans[i].begin + t->bytes;
		if (!header_only && spans[i].begin <= g->size)
			t->data = g->data + spans[i].begin;
	}
	g->status = ckpt_check_spans(
	    f->path, spans, n, header_only ? 0 : g->size, g->err);
}

static void
read_tensors(Gguf *g, bool allow_header_only)
{
	Checkpoint *c = g->c;
	CkptFile *f = g->f;
	uint64_t alignment = get_alignment(g);
	uint64_t i, start;
	Span *spans = pool_alloc(&c->pool, (size_t)f->n_entries, sizeof *spans);
	bool header_only;

	if (!spans)
		bad_memory(g);
	for (i = 0; i < f->n_entries && !g->status; i++) {
		CkptTensor *t = ckpt_add_tensor(c);

		if (t)
			get_tensor(g, t, alignment, &spans[i].begin);
		else
			bad_memory(g);
	}
	if (g->status)
		return;
	f->end = c->count;
	start = (g->at + alignment - 1) / alignment * alignment;
	header_only = allow_header_only && i > 0 && g->size == start;
	c->header_only |= header_only;
	place_tensors(g, spans, start, header_only);
}

/* ---- header ---- */

/* Refuses what is no GGUF file of version 3 and our byte order. */
static void
read_version(Gguf *g)
{
	uint32_t version;

	if (g->size == 0)
		bad(g, INGOT_BAD_FILE, "the file is empty");
	else if (g->size < 4 || memcmp(g->data, "GGUF", 4) != 0)
		bad(g, INGOT_BAD_FILE,
		    "the file is not a GGUF file; name one, or the folder "
		    "that holds config.json and the safetensors files");
	g->at = 4;
	version = (uint32_t)get(g, 4);
	if (g->status || version == 3)
		return;
	if (version != 0 && (version & 0xffff) == 0)
		bad(g, INGOT_UNSUPPORTED,
		    "the file is a big-endian GGUF file; convert it to "
		    "little endian");
	else
		bad(g, INGOT_UNSUPPORTED,
		    "the file has version %" PRIu32 " of GGUF, and only 3 is "
		    "covered; convert the model again",
		    version);
}

static uint64_t
get_total(Gguf *g, const char *what, uint64_t least, uint64_t most)
{
	uint64_t n = get(g, 8);

	if (n > left(g) / least)
		bad(g, INGOT_BAD_FILE,
		    "the header announces %" PRIu64 " %s, which do not fit "
		    "the %" PRIu64 " bytes left",
		    n, what, left(g));
	else if (n > most)
		bad(g, INGOT_UNSUPPORTED,
		    "the header announces %" PRIu64 " %s, more than %" PRIu64,
		    n, what, most);
	return n;
}

static Gguf
start_at(Checkpoint *c, CkptFile *f, uint64_t at, Error *err)
{
	return (Gguf){.c = c,
	    .f = f,
	    .data = f->map.data,
	    .size = f->map.size,
	    .at = at,
	    .what = "header",
	    .name = "",
	    .err = err};
}

ingot_status
gguf_read_keys(Checkpoint *c, CkptFile *f, Error *err)
{
	Gguf g = start_at(c, f, 0, err);
	uint64_t n_keys;

	read_version(&g);
	f->n_entries = get_total(&g, "tensors", TENSOR_BYTES, CKPT_MAX_TENSORS);
	n_keys = get_total(&g, "keys", KEY_BYTES, MAX_KEYS);
	if (!g.status)
		read_keys(&g, n_keys);
	f->entries = g.at;
	return g.status;
}

ingot_status
gguf_read_tensors(
    Checkpoint *c, CkptFile *f, bool allow_header_only, Error *err)
{
	Gguf g = start_at(c, f, f->entries, err);

	f->first = f->end = c->count;
	if (f->n_entries > CKPT_MAX_TENSORS - c->count)
		return ckpt_fail(err, INGOT_UNSUPPORTED, f->path,
		    "the checkpoint has more than %d tensors",
		    CKPT_MAX_TENSORS);
	read_tensors(&g, allow_header_only);
	return g.status;
}
