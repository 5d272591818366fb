/* The checkpoint reader on GGUF files: what it gives for good ones and the
 * sentence with which it refuses each kind of bad one. */
#include "checkpoint_files.h"

#define REFUSED(b, status, ...)                                                \
	(write_file("bad.gguf", (b)->at, (b)->n),                              \
	    check_refused(                                                     \
		path_of("bad.gguf"), status, "bad.gguf", __VA_ARGS__, NULL))

/* ---- GGUF: what is accepted ---- */

static void
put_good_keys(Bytes *b)
{
	put_head(b, 3, 2, 14);
	put_key_string(b, "general.architecture", "qwen3");
	put_key(b, "u8", 0), put(b, 200, 1);
	put_key(b, "i8", 1), put(b, 0x80, 1);
	put_key(b, "u16", 2), put(b, 65535, 2);
	put_key(b, "i16", 3), put(b, 0xfffe, 2);
	put_key(b, "u32", 4), put(b, 0xffffffff, 4);
	put_key(b, "i32", 5), put(b, 0xffffffff, 4);
	put_key(b, "f32", 6), put(b, 0x3fc00000, 4);
	put_key(b, "bool", 7), put(b, 1, 1);
	put_key(b, "u64", 10), put(b, UINT64_MAX, 8);
	put_key(b, "i64", 11), put(b, UINT64_C(1) << 63, 8);
	put_key(b, "f64", 12), put(b, UINT64_C(0xc004000000000000), 8);
	put_key(b, "tokens", 9), put(b, 8, 4), put(b, 2, 8);
	put_string(b, "ab"), put_string(b, "");
	put_key(b, "nested", 9), put(b, 9, 4), put(b, 1, 8);
	put(b, 4, 4), put(b, 2, 8), put(b, 7, 4), put(b, 9, 4);
}

/* Tensors: f32 [2, 4] and q8_0 [1, 32]. Returns the start of the data. */
static size_t
put_good(Bytes *b)
{
	size_t start;

	put_good_keys(b);
	put_tensor(b, "a.weight", 4, 2, 0, 0);
	put_tensor(b, "b.weight", 32, 1, 8, 32);
	put_padding(b, 32);
	start = b->n;
	put_data(b, 32 + 34);
	return start;
}

static void
gguf_values(void **state)
{
	Bytes b;
	Checkpoint *c;
	const Value *o, *v;

	(void)state;
	put_good(&b);
	write_file("good.gguf", b.at, b.n);
	c = open_good(path_of("good.gguf"), false);
	o = ckpt_config(c);
	assert_string_equal(
	    value_string(value_get(o, "general.architecture")), "qwen3");
	assert_int_equal(integer_of(o, "u8"), 200);
	assert_int_equal(integer_of(o, "i8"), -128);
	assert_int_equal(integer_of(o, "u16"), 65535);
	assert_int_equal(integer_of(o, "i16"), -2);
	assert_int_equal(integer_of(o, "u32"), 4294967295);
	assert_int_equal(integer_of(o, "i32"), -1);
	assert_int_equal(integer_of(o, "i64"), INT64_MIN);
	assert_true(number_of(o, "u64") == 0x1p64);
	assert_true(number_of(o, "f32") == 1.5);
	assert_true(number_of(o, "f64") == -2.5);
	v = value_get(o, "bool");
	assert_true(v->kind == VAL_BOOL && v->u.boolean);
	v = value_get(o, "tokens");
	assert_true(v->kind == VAL_ARRAY && v->u.list.count == 2);
	assert_int_equal(v->u.list.items[0].u.string.length, 2);
	assert_memory_equal(v->u.list.items[0].u.string.text, "ab", 2);
	assert_int_equal(v->u.list.items[1].u.string.length, 0);
	v = &value_get(o, "nested")->u.list.items[0];
	assert_true(v->kind == VAL_ARRAY && v->u.list.count == 2);
	assert_int_equal(v->u.list.items[1].u.integer, 9);
	assert_null(value_get(o, "none"));
	assert_null(value_get(NULL, "none"));
	assert_null(value_get(v, "none"));
	assert_null(value_string(v));
	ckpt_close(c);
}

static void
gguf_tensors(void **state)
{
	Bytes b;
	Checkpoint *c;
	const CkptTensor *t;
	const Value *v;
	size_t start;

	(void)state;
	start = put_good(&b);
	write_file("good.gguf", b.at, b.n);
	c = open_good(path_of("good.gguf"), true);
	assert_int_equal(ckpt_kind(c), CKPT_GGUF);
	assert_string_equal(ckpt_path(c), path_of("good.gguf"));
	assert_false(ckpt_header_only(c));
	assert_int_equal(ckpt_count(c), 2);
	t = ckpt_tensor(c, 0);
	assert_string_equal(t->name, "a.weight");
	assert_int_equal(t->type, DT_F32);
	assert_true(t->n_dims == 2 && t->dims[0] == 2 && t->dims[1] == 4);
	assert_int_equal(t->bytes, 32);
	assert_memory_equal(t->data, b.at + start, 32);
	t = ckpt_find(c, "b.weight");
	assert_ptr_equal(t, ckpt_tensor(c, 1));
	assert_string_equal(t->type_name, "q8_0");
	assert_int_equal(t->bytes, 34);
	assert_memory_equal(t->data, b.at + start + 32, 34);
	assert_null(ckpt_find(c, "c.weight"));
	assert_null(ckpt_tensor(c, 2));
	assert_int_equal(ckpt_json(c, "tokenizer.json", &v, NULL), INGOT_OK);
	assert_null(v);
	ckpt_close(c);
}

static void
gguf_header_only(void **state)
{
	Bytes b;
	Checkpoint *c;
	size_t start;

	(void)state;
	start = put_good(&b);
	write_file("head.gguf", b.at, start);
	c = open_good(path_of("head.gguf"), true);
	assert_true(ckpt_header_only(c));
	assert_int_equal(ckpt_find(c, "b.weight")->bytes, 34);
	assert_null(ckpt_find(c, "b.weight")->data);
	ckpt_close(c);
	check_refused(path_of("head.gguf"), INGOT_BAD_FILE, "a.weight",
	    "cut short", NULL);
	write_file("head.gguf", b.at, start + 1);
	assert_int_equal(
	    ckpt_open(path_of("head.gguf"), true, &c, NULL), INGOT_BAD_FILE);
	assert_null(c);
}

static void
gguf_foreign_types(void **state)
{
	Bytes b;
	Checkpoint *c;

	(void)state;
	put_head(&b, 3, 2, 0);
	put_tensor(&b, "x", 256, 2, 16, 0);
	put_tensor(&b, "y", 7, 3, 99, 160);
	put_padding(&b, 32);
	put_data(&b, 160);
	write_file("foreign.gguf", b.at, b.n);
	c = open_good(path_of("foreign.gguf"), false);
	assert_int_equal(ckpt_find(c, "x")->type, DT_COUNT);
	assert_string_equal(ckpt_find(c, "x")->type_name, "iq2_xxs");
	assert_int_equal(ckpt_find(c, "x")->bytes, 132);
	assert_int_equal(ckpt_find(c, "y")->type, DT_COUNT);
	assert_string_equal(ckpt_find(c, "y")->type_name, "type 99");
	assert_int_equal(ckpt_find(c, "y")->bytes, 0);
	ckpt_close(c);
}

static void
gguf_alignment(void **state)
{
	Bytes b;
	Checkpoint *c;
	size_t start;

	(void)state;
	put_head(&b, 3, 1, 1);
	put_key(&b, "general.alignment", 4), put(&b, 256, 4);
	put_tensor(&b, "x", 4, 1, 0, 256);
	put_padding(&b, 256);
	start = b.n + 256;
	put_data(&b, 256 + 16);
	write_file("aligned.gguf", b.at, b.n);
	c = open_good(path_of("aligned.gguf"), false);
	assert_memory_equal(ckpt_find(c, "x")->data, b.at + start, 16);
	ckpt_close(c);
}

/* A file of the vocabulary alone has no tensors and is whole. */
static void
gguf_without_tensors(void **state)
{
	Bytes b;
	Checkpoint *c;

	(void)state;
	put_head(&b, 3, 0, 1);
	put_key_string(&b, "general.architecture", "qwen3");
	write_file("vocab.gguf", b.at, b.n);
	c = open_good(path_of("vocab.gguf"), true);
	assert_int_equal(ckpt_count(c), 0);
	assert_false(ckpt_header_only(c));
	assert_null(ckpt_find(c, "x"));
	ckpt_close(c);
}

/* ---- GGUF: what is refused ---- */

static void
gguf_every_cut(void **state)
{
	Bytes b;
	Checkpoint *c;
	Error e;
	size_t n, start;

	(void)state;
	start = put_good(&b);
	for (n = 0; n < b.n; n++) {
		write_file("cut.gguf", b.at, n);
		e.text[0] = '\0';
		assert_int_equal(ckpt_open(path_of("cut.gguf"), false, &c, &e),
		    INGOT_BAD_FILE);
		assert_non_null(strstr(e.text, "cut.gguf: "));
		if (n >= start)
			assert_non_null(strstr(e.text, "cut short"));
	}
}

static void
gguf_not_ours(void **state)
{
	Bytes b;

	(void)state;
	put_head(&b, 1, 0, 0);
	REFUSED(&b, INGOT_UNSUPPORTED, "version 1 ");
	put_head(&b, 2, 0, 0);
	REFUSED(&b, INGOT_UNSUPPORTED, "version 2 ", "convert");
	put_head(&b, 4, 0, 0);
	REFUSED(&b, INGOT_UNSUPPORTED, "version 4 ");
	put_head(&b, 0x03000000, 0, 0);
	REFUSED(&b, INGOT_UNSUPPORTED, "big-endian");
	b.n = 0;
	REFUSED(&b, INGOT_BAD_FILE, "empty");
	put_bytes(&b, "GGU", 3);
	REFUSED(&b, INGOT_BAD_FILE, "not a GGUF file");
	put_head(&b, 3, 0, 1);
	put_key_string(&b, "general.type", "adapter");
	REFUSED(&b, INGOT_UNSUPPORTED, "adapter");
	put_head(&b, 3, 0, 1);
	put_key_string(&b, "general.type", "mmproj");
	REFUSED(&b, INGOT_UNSUPPORTED, "projector", "mmproj");
	put_head(&b, 3, 0, 1);
	put_key_string(&b, "general.architecture", "clip");
	REFUSED(&b, INGOT_UNSUPPORTED, "projector", "clip");
	put_head(&b, 3, 0, 1);
	put_key_string(&b, "general.type", "im\x1b\xff");
	REFUSED(&b, INGOT_UNSUPPORTED, "'im\?\?'");
	put_head(&b, 3, 0, 1);
	put_key(&b, "split.count", 2), put(&b, 3, 2);
	REFUSED(&b, INGOT_BAD_FILE, "one of 3 parts", "split.count");
}

static void
gguf_bad_counts(void **state)
{
	Bytes b;

	(void)state;
	put_head(&b, 3, UINT64_C(1) << 63, 0);
	REFUSED(&b, INGOT_BAD_FILE, "9223372036854775808 tensors");
	put_head(&b, 3, 0, UINT64_MAX);
	REFUSED(&b, INGOT_BAD_FILE, "18446744073709551615 keys");
	put_head(&b, 3, 0, 1);
	put(&b, UINT64_C(1) << 63, 8);
	put_data(&b, 16);
	REFUSED(&b, INGOT_BAD_FILE, "string of 9223372036854775808 bytes");
	put_head(&b, 3, 0, 1);
	put_key(&b, "k", 8), put(&b, 100, 8);
	REFUSED(&b, INGOT_BAD_FILE, "key 'k'", "string of 100 bytes");
	put_head(&b, 3, 0, 1);
	put_key(&b, "k", 9), put(&b, 4, 4), put(&b, UINT64_C(1) << 62, 8);
	REFUSED(&b, INGOT_BAD_FILE, "key 'k'", "4611686018427387904 elements");
	put_head(&b, 3, 0, 1);
	put_key(&b, "k", 9), put(&b, 10, 4), put(&b, 10, 8);
	put_data(&b, 79);
	REFUSED(&b, INGOT_BAD_FILE, "key 'k'", "10 elements", "79 bytes left");
	put_head(&b, 3, 0, 1);
	put_key(&b, "k", 9), put(&b, 13, 4), put(&b, 1, 8);
	REFUSED(&b, INGOT_BAD_FILE, "key 'k'", "unknown type 13");
	put_head(&b, 3, 0, 1);
	put_key(&b, "k", 77), put(&b, 0, 8);
	REFUSED(&b, INGOT_BAD_FILE, "key 'k'", "unknown type 77");
}

/* The file bad.gguf of bytes b and then a hole up to size. */
static void
write_hole(const Bytes *b, off_t size)
{
	write_file("bad.gguf", b->at, b->n);
	assert_int_equal(truncate(path_of("bad.gguf"), size), 0);
}

static void
gguf_too_much(void **state)
{
	const off_t size = (off_t)1 << 36;
	Bytes b;

	(void)state;
	put_head(&b, 3, 0, 1);
	put_key(&b, "k", 8), put(&b, UINT64_C(1) << 35, 8);
	write_hole(&b, size);
	check_refused(path_of("bad.gguf"), INGOT_UNSUPPORTED, "key 'k'",
	    "34359738368 bytes", NULL);
	put_head(&b, 3, 0, 1);
	put_key(&b, "k", 9), put(&b, 0, 4), put(&b, UINT64_C(1) << 35, 8);
	write_hole(&b, size);
	check_refused(path_of("bad.gguf"), INGOT_UNSUPPORTED, "key 'k'",
	    "34359738368 elements", NULL);
	put_head(&b, 3, UINT64_C(1) << 30, 0);
	write_hole(&b, size);
	check_refused(
	    path_of("bad.gguf"), INGOT_UNSUPPORTED, "1073741824 tensors", NULL);
	put_head(&b, 3, 0, UINT64_C(1) << 30);
	write_hole(&b, size);
	check_refused(
	    path_of("bad.gguf"), INGOT_UNSUPPORTED, "1073741824 keys", NULL);
}

static void
gguf_bad_nesting(void **state)
{
	Bytes b;
	int i;

	(void)state;
	put_head(&b, 3, 0, 1);
	put_key(&b, "k", 9);
	for (i = 0; i < 100; i++)
		put(&b, 9, 4), put(&b, 1, 8);
	REFUSED(&b, INGOT_BAD_FILE, "key 'k'", "nested");
}

static void
gguf_bad_keys(void **state)
{
	Bytes b;
	int i;

	(void)state;
	put_head(&b, 3, 0, 2);
	put_key(&b, "twin", 0), put(&b, 0, 1);
	put_key(&b, "twin", 0), put(&b, 0, 1);
	REFUSED(&b, INGOT_BAD_FILE, "key 'twin' is there twice");
	put_head(&b, 3, 0, 1);
	put_key(&b, "k", 7), put(&b, 2, 1);
	REFUSED(&b, INGOT_BAD_FILE, "key 'k'", "bool");
	put_head(&b, 3, 0, 1);
	put_key(&b, "k\xc3(", 0), put(&b, 2, 1);
	REFUSED(&b, INGOT_BAD_FILE, "key 'k?('", "UTF-8");
	put_head(&b, 3, 0, 1);
	put_key(&b, "", 0), put(&b, 2, 2);
	REFUSED(&b, INGOT_BAD_FILE, "key", "empty name");
	put_head(&b, 3, 0, 1);
	put(&b, 256, 8);
	for (i = 0; i < 256; i++)
		put(&b, 'k', 1);
	put(&b, 0, 5);
	REFUSED(&b, INGOT_BAD_FILE, "256 bytes, more than 255");
}

static void
check_alignment(uint64_t kind, uint64_t value, int bytes, const char *words)
{
	Bytes b;

	put_head(&b, 3, 0, 1);
	put_key(&b, "general.alignment", (uint32_t)kind);
	put(&b, value, bytes);
	REFUSED(&b, INGOT_BAD_FILE, "general.alignment", words);
}

static void
gguf_bad_alignment(void **state)
{
	(void)state;
	check_alignment(4, 0, 4, "is 0,");
	check_alignment(4, 48, 4, "is 48,");
	check_alignment(4, 4, 4, "is 4,");
	check_alignment(4, 0x80000000, 4, "is 2147483648,");
	check_alignment(5, 0xffffffe0, 4, "is -32,");
	check_alignment(11, UINT64_C(1) << 63, 8, "is -9223372036854775808,");
	check_alignment(10, UINT64_C(1) << 63, 8, "not an integer");
	check_alignment(6, 0x42000000, 4, "not an integer");
}

static void
gguf_bad_shapes(void **state)
{
	Bytes b;

	(void)state;
	put_head(&b, 3, 1, 0);
	put_tensor(&b, "x", 4, 0, 0, 0);
	REFUSED(&b, INGOT_BAD_FILE, "tensor 'x'", "dimension of 0");
	put_head(&b, 3, 1, 0);
	put_tensor(&b, "x", UINT64_C(1) << 32, UINT64_C(1) << 32, 0, 0);
	REFUSED(&b, INGOT_BAD_FILE, "tensor 'x'", "63 bits");
	put_head(&b, 3, 1, 0);
	put_tensor(&b, "x", UINT64_MAX, 1, 0, 0);
	REFUSED(&b, INGOT_BAD_FILE, "tensor 'x'", "63 bits");
	put_head(&b, 3, 1, 0);
	put_tensor(&b, "x", UINT64_C(1) << 62, 1, 0, 0);
	REFUSED(&b, INGOT_BAD_FILE, "tensor 'x'", "more than any file");
	put_head(&b, 3, 1, 0);
	put_tensor(&b, "x", 33, 1, 8, 0);
	REFUSED(&b, INGOT_BAD_FILE, "tensor 'x'", "33", "block of 32 of q8_0");
	put_head(&b, 3, 1, 0);
	put_tensor(&b, "x", 128, 2, 12, 0);
	REFUSED(&b, INGOT_BAD_FILE, "tensor 'x'", "block of 256 of q4_k");
	put_head(&b, 3, 1, 0);
	put_string(&b, "x");
	put(&b, 5, 4);
	put_data(&b, 64);
	REFUSED(&b, INGOT_BAD_FILE, "tensor 'x'", "5 dimensions");
	put_head(&b, 3, 1, 0);
	put_string(&b, "x");
	put(&b, 0xffffffff, 4);
	put_data(&b, 64);
	REFUSED(&b, INGOT_BAD_FILE, "tensor 'x'", "4294967295 dimensions");
}

/* Two tensors x, y of f32 [1, 8] at the offsets, then 64 bytes of data. */
static void
put_pair(Bytes *b, const char *x, const char *y, uint64_t at_x, uint64_t at_y)
{
	put_head(b, 3, 2, 0);
	put_tensor(b, x, 8, 1, 0, at_x);
	put_tensor(b, y, 8, 1, 0, at_y);
	put_padding(b, 32);
	put_data(b, 64);
}

static void
gguf_bad_places(void **state)
{
	Bytes b;
	char size[64];

	(void)state;
	put_pair(&b, "x", "y", 0, 31);
	REFUSED(&b, INGOT_BAD_FILE, "tensor 'y'", "offset 31", "alignment");
	put_pair(&b, "x", "y", 32, 32);
	REFUSED(&b, INGOT_BAD_FILE, "'x'", "'y'", "overlap");
	put_pair(&b, "x", "y", 0, 64);
	snprintf(size, sizeof size, "%zu bytes of %zu", b.n, b.n + 32);
	REFUSED(&b, INGOT_BAD_FILE, "'y'", "first", size);
	put_pair(&b, "x", "y", 0, UINT64_C(1) << 63);
	REFUSED(&b, INGOT_BAD_FILE, "tensor 'y'", "beyond any file");
	put_pair(&b, "x", "y", 0, INT64_MAX - 63);
	REFUSED(&b, INGOT_BAD_FILE, "tensor 'y'", "beyond any file");
	put_pair(&b, "x", "x", 0, 32);
	REFUSED(&b, INGOT_BAD_FILE, "tensor 'x'", "twice");
	put_pair(&b, "x", "y\n", 0, 32);
	REFUSED(&b, INGOT_BAD_FILE, "tensor 'y?'", "printable");
	put_pair(&b, "x", "y", 32, 0);
	write_file("swapped.gguf", b.at, b.n);
	ckpt_close(open_good(path_of("swapped.gguf"), false));
}

static void
paths(void **state)
{
	Bytes b = {.n = 0};
	char name[400];

	(void)state;
	check_refused("", INGOT_BAD_ARG, "empty", NULL);
	check_refused(NULL, INGOT_BAD_ARG, "empty", NULL);
	check_refused(
	    path_of("none.gguf"), INGOT_IO, "none.gguf", "No such file", NULL);
	check_refused("/dev/null", INGOT_IO, "not a regular file", NULL);
	memset(name, 'n', sizeof name);
	name[sizeof name - 1] = '\0';
	check_refused(name, INGOT_IO, "nnn...nnn", "too long", NULL);
	write_file("locked.gguf", b.at, b.n);
	assert_int_equal(chmod(path_of("locked.gguf"), 0), 0);
	if (geteuid() != 0)
		check_refused(path_of("locked.gguf"), INGOT_IO, "locked.gguf",
		    "ermission", NULL);
	assert_int_equal(unlink(path_of("locked.gguf")), 0);
}

/* ---- checkpoints kept beside the tests ---- */

/* Opens a checkpoint of a small Qwen model. */
static void
open_whole(const char *path, CkptKind kind)
{
	Checkpoint *c = open_good(path, false);
	const char *name = kind == CKPT_GGUF ? "token_embd.weight"
					     : "model.embed_tokens.weight";
	const char *key =
	    kind == CKPT_GGUF ? "general.architecture" : "model_type";
	const CkptTensor *t = ckpt_find(c, name);

	assert_int_equal(ckpt_kind(c), kind);
	assert_non_null(t);
	assert_int_equal(t->n_dims, 2);
	assert_true(t->dims[0] > t->dims[1]);
	assert_non_null(t->data);
	assert_non_null(
	    strstr(value_string(value_get(ckpt_config(c), key)), "qwen3"));
	ckpt_close(c);
}

/* Opens what is there, by paths from the root of the tree. */
static void
fixtures(void **state)
{
	static const char *const folders[] = {
	    "qwen3-d128", "qwen35-d256", "qwen35moe-mixed", "qwen3moe-renorm"};
	static const char *const files[] = {
	    "qwen3-tiny", "qwen3moe-tiny", "qwen35-tiny", "qwen35moe-tiny"};
	char path[128];
	size_t i, opened = 0;

	(void)state;
	for (i = 0; i < sizeof folders / sizeof *folders; i++) {
		snprintf(path, sizeof path, "tests/fixtures/%s", folders[i]);
		if (access(path, R_OK) == 0)
			open_whole(path, CKPT_FOLDER), opened++;
	}
	for (i = 0; i < sizeof files / sizeof *files; i++) {
		snprintf(path, sizeof path, "tests/fixtures/%s/model-bf16.gguf",
		    files[i]);
		if (access(path, R_OK) == 0)
			open_whole(path, CKPT_GGUF), opened++;
	}
	if (!opened)
		skip();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(gguf_values),
	    cmocka_unit_test(gguf_tensors),
	    cmocka_unit_test(gguf_header_only),
	    cmocka_unit_test(gguf_foreign_types),
	    cmocka_unit_test(gguf_alignment),
	    cmocka_unit_test(gguf_without_tensors),
	    cmocka_unit_test(gguf_every_cut),
	    cmocka_unit_test(gguf_not_ours),
	    cmocka_unit_test(gguf_bad_counts),
	    cmocka_unit_test(gguf_too_much),
	    cmocka_unit_test(gguf_bad_nesting),
	    cmocka_unit_test(gguf_bad_keys),
	    cmocka_unit_test(gguf_bad_alignment),
	    cmocka_unit_test(gguf_bad_shapes),
	    cmocka_unit_test(gguf_bad_places),
	    cmocka_unit_test(paths),
	    cmocka_unit_test(fixtures),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
