/* The checkpoint reader on folders with safetensors files: what it gives for
 * good ones and the sentence with which it refuses each kind of bad one. */
#include "checkpoint_files.h"

#define REFUSED_FOLDER(status, ...)                                            \
	check_refused(path_of("hf"), status, __VA_ARGS__, NULL)

static const char good_header[] =
    "{\"__metadata__\":{\"format\":\"pt\"},"
    "\"a\":{\"dtype\":\"BF16\",\"shape\":[2,4],\"data_offsets\":[8,24]},"
    "\"b\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]},"
    "\"c\":{\"dtype\":\"F8_E4M3\",\"shape\":[1,1,1,1,2],"
    "\"data_offsets\":[4,6]}}  ";

/* A folder hf with an empty config.json and nothing else. */
static void
make_folder(void)
{
	static const char *const names[] = {"hf/model.safetensors",
	    "hf/model.safetensors.index.json", "hf/tokenizer.json",
	    "hf/1.safetensors", "hf/2.safetensors", "hf/config.json"};
	size_t i;

	mkdir(path_of("hf"), 0777);
	for (i = 0; i < sizeof names / sizeof *names; i++)
		unlink(path_of(names[i]));
	write_text("hf/config.json", "{}");
}

static void
folder_single(void **state)
{
	Checkpoint *c;
	const CkptTensor *t;

	(void)state;
	make_folder();
	write_text("hf/config.json",
	    "{\"model_type\":\"qwen3\",\"eps\":1e-6,\"n\":null,\"t\":true,"
	    "\"text_config\":{\"layers\":[1,2.5]}}");
	write_tensors("hf/model.safetensors", good_header, 24);
	c = open_good(path_of("hf"), false);
	assert_int_equal(ckpt_kind(c), CKPT_FOLDER);
	assert_int_equal(ckpt_count(c), 3);
	t = ckpt_tensor(c, 0);
	assert_string_equal(t->name, "a");
	assert_int_equal(t->type, DT_BF16);
	assert_string_equal(t->type_name, "BF16");
	assert_true(t->n_dims == 2 && t->dims[0] == 2 && t->dims[1] == 4);
	assert_int_equal(t->bytes, 16);
	assert_int_equal(((const unsigned char *)t->data)[15], 23);
	t = ckpt_find(c, "b");
	assert_true(t->n_dims == 1 && t->dims[0] == 1 && t->bytes == 4);
	t = ckpt_find(c, "c");
	assert_int_equal(t->type, DT_COUNT);
	assert_string_equal(t->type_name, "F8_E4M3");
	assert_true(t->n_dims == 5 && t->dims[4] == 2 && t->bytes == 2);
	ckpt_close(c);
}

static void
folder_json(void **state)
{
	Checkpoint *c;
	const Value *o, *v, *again;

	(void)state;
	make_folder();
	write_text("hf/config.json",
	    "{\"model_type\":\"qwen3\",\"eps\":1e-6,\"n\":null,\"t\":true,"
	    "\"text_config\":{\"layers\":[1,2.5,\"a\\u0000b\"]}}");
	write_text("hf/tokenizer.json",
	    "{\"max\":1e3,\"big\":1" /* 10^30 */
	    "000000000000000000000000000000,\"n\":-7}");
	write_tensors("hf/model.safetensors", good_header, 24);
	c = open_good(path_of("hf"), false);
	o = ckpt_config(c);
	assert_string_equal(value_string(value_get(o, "model_type")), "qwen3");
	assert_true(number_of(o, "eps") == 1e-6);
	assert_int_equal(value_get(o, "n")->kind, VAL_NULL);
	assert_true(value_get(o, "t")->u.boolean);
	v = value_get(value_get(o, "text_config"), "layers");
	assert_int_equal(v->u.list.count, 3);
	assert_int_equal(v->u.list.items[0].u.integer, 1);
	assert_true(v->u.list.items[1].u.number == 2.5);
	assert_int_equal(v->u.list.items[2].u.string.length, 3);
	assert_memory_equal(v->u.list.items[2].u.string.text, "a\0b", 4);
	assert_int_equal(ckpt_json(c, "tokenizer.json", &v, NULL), INGOT_OK);
	assert_true(number_of(v, "big") == 1e30);
	assert_int_equal(integer_of(v, "n"), -7);
	assert_int_equal(
	    ckpt_json(c, "tokenizer.json", &again, NULL), INGOT_OK);
	assert_ptr_equal(v, again);
	assert_int_equal(
	    ckpt_json(c, "generation_config.json", &v, NULL), INGOT_OK);
	assert_null(v);
	ckpt_close(c);
}

static void
check_config(const char *text, const char *words)
{
	make_folder();
	write_text("hf/config.json", text);
	REFUSED_FOLDER(INGOT_BAD_FILE, "config.json", words);
}

static void
folder_bad_config(void **state)
{
	static char deep[2 * 70 + 16];
	int i, n;

	(void)state;
	make_folder();
	REFUSED_FOLDER(INGOT_BAD_FILE, "neither model.safetensors");
	unlink(path_of("hf/config.json"));
	REFUSED_FOLDER(INGOT_BAD_FILE, "no config.json");
	check_config("", "not valid JSON");
	check_config("[1]", "object");
	check_config("{\"a\":1,\n\"a\":2}", "line 2");
	check_config("{\"k\":\"\xff\"}", "byte 0xff");
	n = snprintf(deep, sizeof deep, "{\"a\":");
	for (i = 0; i < 70; i++)
		deep[n + i] = '[', deep[n + 70 + i] = ']';
	deep[n + 140] = '}';
	check_config(deep, "deeper than 64");
	unlink(path_of("hf/config.json"));
	mkdir(path_of("hf/config.json"), 0777);
	REFUSED_FOLDER(INGOT_IO, "config.json", "not a regular file");
	rmdir(path_of("hf/config.json"));
}

static void
check_header(const char *header, int data, const char *words)
{
	make_folder();
	write_tensors("hf/model.safetensors", header, data);
	REFUSED_FOLDER(INGOT_BAD_FILE, "hf/model.safetensors", words);
}

#define ENTRY(name, dtype, shape, at)                                          \
	"\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape               \
	",\"data_offsets\":" at "}"

static void
folder_bad_tensors(void **state)
{
	(void)state;
	check_header("{", 0, "not valid JSON");
	check_header("[]", 0, "object");
	check_header("{\"x\":1}", 0, "'x' has no dtype");
	check_header("{\"x\":{\"dtype\":\"F32\"}}", 0, "'x' has no shape");
	check_header(
	    "{" ENTRY("x", "F32", "[-1]", "[0,4]") "}", 4, "'x' has no shape");
	check_header("{" ENTRY("x", "F32", "[1,1,1,1,1,1,1,1,1]", "[0,4]") "}",
	    4, "'x' has no shape of up to 8");
	check_header("{" ENTRY("x", "F32", "[0]", "[0,0]") "}", 4,
	    "'x' has a dimension of 0");
	check_header(
	    "{" ENTRY("x", "F32", "[4294967296,4294967296]", "[0,4]") "}", 4,
	    "63 bits");
	check_header(
	    "{" ENTRY("x", "F32", "[4611686018427387904]", "[0,4]") "}", 4,
	    "more than any file");
	check_header("{" ENTRY("x", "F32", "[2]", "[0,4]") "}", 4,
	    "4 bytes by its data_offsets and 8 by its shape");
	check_header("{" ENTRY("x", "F4", "[3]", "[0,1]") "}", 4, "dtype F4");
	check_header("{" ENTRY("x", "F32", "[1]", "[4,0]") "}", 4,
	    "'x' has no data_offsets");
	check_header("{" ENTRY("x", "F32", "[1]", "[0,4,8]") "}", 8,
	    "'x' has no data_offsets");
	check_header("{" ENTRY("x", "F32", "[1]", "[0,4]") "," ENTRY(
			 "y", "F32", "[1]", "[2,6]") "}",
	    6, "overlap");
	check_header("{" ENTRY("x", "F32", "[1]", "[0,4]") "," ENTRY(
			 "x", "F32", "[1]", "[4,8]") "}",
	    8, "x");
	check_header("{" ENTRY("x", "F32", "[1]", "[0,4]") "," ENTRY(
			 "y", "F32", "[1]", "[4,8]") "}",
	    7, "'y' is the first that lies beyond its end");
	check_header("{" ENTRY("x\\n", "F32", "[1]", "[0,4]") "}", 4, "'x?'");
	check_header("{" ENTRY("x", "Q\\t", "[1]", "[0,4]") "}", 4, "'Q?'");
}

static void
folder_bad_length(void **state)
{
	Bytes b = {.n = 0};

	(void)state;
	make_folder();
	write_file("hf/model.safetensors", b.at, 0);
	REFUSED_FOLDER(INGOT_BAD_FILE, "model.safetensors", "0 bytes, too few");
	put(&b, UINT64_C(1) << 63, 8);
	write_file("hf/model.safetensors", b.at, 7);
	REFUSED_FOLDER(INGOT_BAD_FILE, "7 bytes, too few");
	write_file("hf/model.safetensors", b.at, b.n);
	REFUSED_FOLDER(INGOT_BAD_FILE, "9223372036854775808 bytes");
	b.n = 0;
	put(&b, 100, 8);
	put_data(&b, 50);
	write_file("hf/model.safetensors", b.at, b.n);
	REFUSED_FOLDER(INGOT_BAD_FILE, "100 bytes, but the file has only 58");
}

static void
folder_every_cut(void **state)
{
	Bytes b = {.n = 0};
	size_t n;

	(void)state;
	make_folder();
	put_string(&b, good_header);
	put_data(&b, 24);
	for (n = 0; n < b.n; n++) {
		write_file("hf/model.safetensors", b.at, n);
		REFUSED_FOLDER(INGOT_BAD_FILE, "hf/model.safetensors: ");
	}
}

static void
folder_shards(void **state)
{
	Checkpoint *c;

	(void)state;
	make_folder();
	write_text("hf/model.safetensors.index.json",
	    "{\"metadata\":{},\"weight_map\":{\"y\":\"2.safetensors\","
	    "\"x\":\"1.safetensors\",\"z\":\"2.safetensors\"}}");
	write_tensors(
	    "hf/1.safetensors", "{" ENTRY("x", "F32", "[1]", "[0,4]") "}", 4);
	write_tensors("hf/2.safetensors",
	    "{" ENTRY("z", "F16", "[1]", "[0,2]") "," ENTRY(
		"y", "I32", "[1]", "[2,6]") "}",
	    6);
	c = open_good(path_of("hf"), false);
	assert_int_equal(ckpt_count(c), 3);
	assert_string_equal(ckpt_tensor(c, 0)->name, "x");
	assert_string_equal(ckpt_tensor(c, 1)->name, "z");
	assert_int_equal(ckpt_find(c, "y")->type, DT_I32);
	assert_memory_equal(ckpt_find(c, "y")->data, "\2\3\4\5", 4);
	ckpt_close(c);
	write_tensors("hf/2.safetensors",
	    "{" ENTRY("z", "F16", "[1]", "[0,2]") "," ENTRY(
		"x", "I32", "[1]", "[2,6]") "}",
	    6);
	REFUSED_FOLDER(INGOT_BAD_FILE, "tensor 'x'", "twice");
	write_tensors(
	    "hf/2.safetensors", "{" ENTRY("z", "F16", "[1]", "[0,2]") "}", 2);
	REFUSED_FOLDER(INGOT_BAD_FILE, "tensor 'y'", "2.safetensors");
	write_text("hf/model.safetensors.index.json",
	    "{\"weight_map\":{\"x\":\"1.safetensors\","
	    "\"z\":\"1.safetensors\",\"q\":\"2.safetensors\"}}");
	REFUSED_FOLDER(INGOT_BAD_FILE, "tensor 'z' is not in 1.safetensors");
	unlink(path_of("hf/2.safetensors"));
	REFUSED_FOLDER(INGOT_IO, "hf/2.safetensors", "No such file");
}

static void
check_index(const char *text, const char *words)
{
	make_folder();
	write_tensors(
	    "hf/1.safetensors", "{" ENTRY("x", "F32", "[1]", "[0,4]") "}", 4);
	write_text("hf/model.safetensors.index.json", text);
	REFUSED_FOLDER(INGOT_BAD_FILE, "model.safetensors.index.json", words);
}

static void
folder_bad_index(void **state)
{
	(void)state;
	check_index("{}", "no object weight_map");
	check_index("{\"weight_map\":{}}", "names 0 files");
	check_index("{\"weight_map\":{\"x\":7}}", "tensor 'x'");
	check_index("{\"weight_map\":{\"x\":\"../1.safetensors\"}}", "'x'");
	check_index("{\"weight_map\":{\"x\":\"/a/1.safetensors\"}}", "'x'");
	check_index("{\"weight_map\":{\"x\":\"..\"}}", "tensor 'x'");
	check_index("{\"weight_map\":{\"x\":\"\"}}", "tensor 'x'");
	check_index("{\"weight_map\":{\"x\":\"1.safetensors\\u0000\"}}", "'x'");
	check_index("{\"weight_map\":{\"y\":\"1.safetensors\"}}", "tensor 'y'");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(folder_single),
	    cmocka_unit_test(folder_json),
	    cmocka_unit_test(folder_bad_config),
	    cmocka_unit_test(folder_bad_tensors),
	    cmocka_unit_test(folder_bad_length),
	    cmocka_unit_test(folder_every_cut),
	    cmocka_unit_test(folder_shards),
	    cmocka_unit_test(folder_bad_index),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
