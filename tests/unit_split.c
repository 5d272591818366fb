/* Split GGUF files: which files make a set, in which order, and what is
 * refused. */
#include "checkpoint_files.h"

#define ARCH "general.architecture"

/* One part: what its keys say, and the tensor in it. */
typedef struct Part {
	int no, count, total;
	const char *tensor; /* f32 [1, 8] of fill; NULL: none */
	int fill;
	const char *arch; /* NULL: no key */
} Part;

static void
write_part(const char *name, const Part *p)
{
	Bytes b;
	int i;

	put_head(&b, 3, p->tensor != NULL, p->arch ? 4 : 3);
	if (p->arch)
		put_key_string(&b, ARCH, p->arch);
	put_key(&b, "split.no", 2), put(&b, (uint64_t)p->no, 2);
	put_key(&b, "split.count", 2), put(&b, (uint64_t)p->count, 2);
	put_key(&b, "split.tensors.count", 5), put(&b, (uint64_t)p->total, 4);
	if (p->tensor)
		put_tensor(&b, p->tensor, 8, 1, 0, 0);
	put_padding(&b, 32);
	for (i = 0; i < 32 && p->tensor; i++)
		put(&b, (uint64_t)p->fill, 1);
	write_file(name, b.at, b.n);
}

static const Part good[] = {{0, 3, 3, "a", 1, "qwen3"}, {1, 3, 3, "b", 2, NULL},
    {2, 3, 3, "c", 3, NULL}};

static const char *
part_name(const char *prefix, int number, int count)
{
	static char name[2][64];
	static int turn;

	turn = !turn;
	snprintf(name[turn], sizeof name[turn], "%s-%05d-of-%05d.gguf", prefix,
	    number, count);
	return name[turn];
}

static void
write_set(const char *prefix)
{
	int i;

	for (i = 0; i < 3; i++)
		write_part(part_name(prefix, i + 1, 3), &good[i]);
}

/* Opens the file, which must give the good set in its order. */
static void
check_whole(const char *name)
{
	static const char *const names[] = {"a", "b", "c"};
	Checkpoint *c = open_good(path_of(name), false);
	size_t i;

	assert_int_equal(ckpt_count(c), 3);
	for (i = 0; i < 3; i++) {
		const CkptTensor *t = ckpt_tensor(c, i);

		assert_string_equal(t->name, names[i]);
		assert_ptr_equal(ckpt_find(c, names[i]), t);
		assert_int_equal(*(const char *)t->data, i + 1);
	}
	assert_string_equal(
	    value_string(value_get(ckpt_config(c), ARCH)), "qwen3");
	ckpt_close(c);
}

static void
any_part(void **state)
{
	int i;

	(void)state;
	write_set("set");
	for (i = 1; i <= 3; i++)
		check_whole(part_name("set", i, 3));
	/* The rest of the name is free. */
	write_set("Q4_K_M-00001-of-00003.gguf");
	check_whole("Q4_K_M-00001-of-00003.gguf-00002-of-00003.gguf");
}

/* split.no orders the parts, not their names. */
static void
swapped_names(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < 3; i++)
		write_part(part_name("turned", i + 1, 3), &good[2 - i]);
	for (i = 1; i <= 3; i++)
		check_whole(part_name("turned", i, 3));
}

static void
links(void **state)
{
	(void)state;
	write_set("set");
	assert_int_equal(mkdir(path_of("links"), 0700), 0);
	assert_int_equal(
	    symlink("../set-00002-of-00003.gguf", path_of("links/model.gguf")),
	    0);
	check_whole("links/model.gguf");
	assert_int_equal(symlink("links/model.gguf", path_of("again.gguf")), 0);
	check_whole("again.gguf");
	assert_int_equal(symlink(path_of("set-00003-of-00003.gguf"),
			     path_of("absolute.gguf")),
	    0);
	check_whole("absolute.gguf");
	/* A link with the name of a part stays in its own folder. */
	assert_int_equal(symlink("../set-00001-of-00003.gguf",
			     path_of("links/x-00001-of-00003.gguf")),
	    0);
	check_refused(path_of("links/x-00001-of-00003.gguf"), INGOT_IO,
	    "links/x-00002-of-00003.gguf", "missing", NULL);
	assert_int_equal(symlink("../set-00002-of-00003.gguf",
			     path_of("links/x-00002-of-00003.gguf")),
	    0);
	assert_int_equal(symlink("../set-00003-of-00003.gguf",
			     path_of("links/x-00003-of-00003.gguf")),
	    0);
	check_whole("links/x-00002-of-00003.gguf");
}

/* A file that was merged of parts, and a set of one. */
static void
whole_files(void **state)
{
	Part merged = {0, 0, 3, "a", 1, "qwen3"};
	Part one = {0, 1, 1, "a", 1, "qwen3"};
	Checkpoint *c;

	(void)state;
	write_part("merged.gguf", &merged);
	c = open_good(path_of("merged.gguf"), false);
	assert_int_equal(ckpt_count(c), 1);
	ckpt_close(c);
	write_part("one.gguf", &one);
	ckpt_close(open_good(path_of("one.gguf"), false));
}

static void
first_without_tensors(void **state)
{
	Part head = {0, 2, 1, NULL, 0, "qwen3"};
	Part body = {1, 2, 1, "x", 5, "qwen3"};
	Checkpoint *c;

	(void)state;
	write_part("h-00001-of-00002.gguf", &head);
	write_part("h-00002-of-00002.gguf", &body);
	c = open_good(path_of("h-00002-of-00002.gguf"), false);
	assert_int_equal(ckpt_count(c), 1);
	assert_false(ckpt_header_only(c));
	ckpt_close(c);
}

/* Parts that end where their data starts. */
static void
headers_alone(void **state)
{
	Checkpoint *c;
	struct stat st;
	const char *path;
	int i;

	(void)state;
	write_set("cut");
	for (i = 1; i <= 3; i++) {
		path = path_of(part_name("cut", i, 3));
		assert_int_equal(stat(path, &st), 0);
		assert_int_equal(truncate(path, st.st_size - 32), 0);
	}
	path = path_of("cut-00001-of-00003.gguf");
	c = open_good(path, true);
	assert_true(ckpt_header_only(c));
	assert_null(ckpt_find(c, "b")->data);
	ckpt_close(c);
	check_refused(path, INGOT_BAD_FILE,
	    "cut-00001-of-00003.gguf: ", "cut short", NULL);
}

/* ---- what is refused ---- */

/* The good set with part number replaced by bad is refused with a sentence
 * that has word and other, whichever part is opened. */
static void
check_bad(int number, Part bad, const char *word, const char *other)
{
	int i;

	write_set("bad");
	write_part(part_name("bad", number, 3), &bad);
	for (i = 1; i <= 3; i++)
		check_refused(path_of(part_name("bad", i, 3)), INGOT_BAD_FILE,
		    word, other, NULL);
}

static void
bad_sets(void **state)
{
	(void)state;
	check_bad(3, good[1], "split.no is 1", "bad-00002-of-00003.gguf");
	check_bad(1, good[2], "split.no is 2", "bad-00003-of-00003.gguf");
	check_bad(3, (Part){3, 3, 3, "c", 3, NULL}, "'split.no'",
	    "bad-00003-of-00003.gguf: ");
	check_bad(2, (Part){1, 3, 4, "b", 2, NULL}, "split.tensors.count",
	    "bad-00002-of-00003.gguf: ");
	check_bad(1, (Part){0, 3, 4, "a", 2, "qwen3"}, "split.tensors.count",
	    "is 3, but 4 in");
	check_bad(2, (Part){1, 3, 3, "a", 2, NULL}, "'a' is there twice",
	    "bad-00001-of-00003.gguf");
	check_bad(2, (Part){1, 3, 3, NULL, 2, NULL}, "split.tensors.count is 3",
	    "2 tensors");
	check_bad(2, (Part){1, 3, 3, "b", 2, "llama"}, "'llama'", "'qwen3'");
}

static void
part_of_another_set(void **state)
{
	Part other = {1, 4, 4, "b", 2, NULL};

	(void)state;
	write_set("mix");
	write_part("mix-00002-of-00003.gguf", &other);
	check_refused(path_of("mix-00001-of-00003.gguf"), INGOT_BAD_FILE,
	    "mix-00002-of-00003.gguf: ", "split.count is 4", NULL);
	check_refused(path_of("mix-00002-of-00003.gguf"), INGOT_BAD_FILE,
	    "one of 4 parts by its split.count", "of 3 by its name", NULL);
}

static void
missing_part(void **state)
{
	(void)state;
	write_set("gone");
	assert_int_equal(unlink(path_of("gone-00002-of-00003.gguf")), 0);
	check_refused(path_of("gone-00003-of-00003.gguf"), INGOT_IO,
	    "gone-00002-of-00003.gguf: ", "missing", "part 2 of the 3", NULL);
}

/* Names that say nothing: another name, a joined file, a loop of links. */
static void
bad_names(void **state)
{
	Bytes b = {.n = 0};

	(void)state;
	write_part("plain.gguf", &good[0]);
	check_refused(path_of("plain.gguf"), INGOT_BAD_FILE, "one of 3 parts",
	    "split.count", NULL);
	write_part("x-00004-of-00003.gguf", &good[0]);
	check_refused(path_of("x-00004-of-00003.gguf"), INGOT_BAD_FILE,
	    "split.count", NULL);
	write_part("x-00000-of-00003.gguf", &good[0]);
	check_refused(path_of("x-00000-of-00003.gguf"), INGOT_BAD_FILE,
	    "split.count", NULL);
	write_part("x-0001-of-0003.gguf", &good[0]);
	check_refused(path_of("x-0001-of-0003.gguf"), INGOT_BAD_FILE,
	    "split.count", NULL);
	assert_int_equal(symlink("loop.gguf", path_of("loop.gguf")), 0);
	check_refused(path_of("loop.gguf"), INGOT_IO, "loop.gguf", NULL);
	put_head(&b, 3, 0, 1);
	put_key_string(&b, "split.count", "3");
	write_file("text-00001-of-00003.gguf", b.at, b.n);
	check_refused(path_of("text-00001-of-00003.gguf"), INGOT_BAD_FILE,
	    "'split.count' is not an integer", NULL);
	/* Five digits are all that a name has. */
	put_head(&b, 3, 0, 1);
	put_key(&b, "split.count", 4), put(&b, UINT32_MAX, 4);
	write_file("many.gguf", b.at, b.n);
	check_refused(path_of("many.gguf"), INGOT_BAD_FILE, "'split.count'",
	    "99999", NULL);
	/* A whole model under the name of a part. */
	write_set("odd");
	put_head(&b, 3, 0, 0);
	write_file("odd-00003-of-00003.gguf", b.at, b.n);
	check_refused(path_of("odd-00001-of-00003.gguf"), INGOT_BAD_FILE,
	    "odd-00003-of-00003.gguf: ", "no key split.count", NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(any_part),
	    cmocka_unit_test(swapped_names),
	    cmocka_unit_test(links),
	    cmocka_unit_test(whole_files),
	    cmocka_unit_test(first_without_tensors),
	    cmocka_unit_test(headers_alone),
	    cmocka_unit_test(bad_sets),
	    cmocka_unit_test(part_of_another_set),
	    cmocka_unit_test(missing_part),
	    cmocka_unit_test(bad_names),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
