/* .npy files: matrices out, ids in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../compiler/npy.h"

#include <cmocka.h>

/* ---- reading ---- */

/* A file with this header and data in out; its length. */
static size_t
make(char *out, const char *header, const void *data, size_t n)
{
	size_t h = strlen(header);

	memcpy(out, "\x93NUMPY\x01\x00", 8);
	out[8] = (char)h;
	out[9] = 0;
	memcpy(out + 10, header, h);
	if (n)
		memcpy(out + 10 + h, data, n);
	return 10 + h + n;
}

#define HEADER(descr, shape)                                                   \
	"{'descr': '" descr "', 'fortran_order': False, 'shape': " shape ", "  \
	"}\n"

static void
assert_ids(const char *header, const void *data, size_t bytes,
    const uint32_t *want, size_t n)
{
	char file[512], why[NPY_WHY] = "";
	size_t length = make(file, header, data, bytes), count;
	uint32_t *ids;

	assert_true(npy_is(file, length));
	if (!npy_ids(file, length, &ids, &count, why))
		fail_msg("%s: %s", header, why);
	assert_int_equal(count, n);
	if (n)
		assert_memory_equal(ids, want, n * sizeof *ids);
	free(ids);
}

static void
test_ids(void **state)
{
	static const uint32_t want[] = {1, 2147483647, 0};
	static const uint32_t high[] = {4294967295u};
	static const int64_t wide[] = {1, 2147483647, 0};
	static const int64_t wide_high[] = {4294967295};

	(void)state;
	assert_ids(HEADER("<i4", "(3,)"), want, sizeof want, want, 3);
	assert_ids(HEADER("<u4", "(3,)"), want, sizeof want, want, 3);
	assert_ids(HEADER("<i8", "(3,)"), wide, sizeof wide, want, 3);
	assert_ids(HEADER("<u4", "(1,)"), high, sizeof high, high, 1);
	assert_ids(HEADER("<i8", "(1,)"), wide_high, 8, high, 1);
	assert_ids(HEADER("<i4", "(0,)"), want, 0, want, 0);
}

static void
assert_refused(const char *file, size_t length, const char *part)
{
	char why[NPY_WHY] = "";
	uint32_t *ids;
	size_t count;

	assert_false(npy_ids(file, length, &ids, &count, why));
	if (!strstr(why, part))
		fail_msg("wanted '%s', got: %s", part, why);
}

static void
test_refused(void **state)
{
	static const int32_t data[] = {5, -1};
	static const int64_t wide[] = {5, 4294967296};
	char file[512];
	size_t n, i;

	(void)state;
	n = make(file, HEADER("<f4", "(2,)"), data, 8);
	assert_refused(file, n, "int32, int64 or uint32");
	n = make(file, HEADER(">i4", "(2,)"), data, 8);
	assert_refused(file, n, "int32, int64 or uint32");
	n = make(file, HEADER("<i4", "(1, 2)"), data, 8);
	assert_refused(file, n, "one axis");
	n = make(file, HEADER("<i4", "()"), data, 4);
	assert_refused(file, n, "one axis");
	n = make(file, HEADER("<i4", "(99999999999999999999999,)"), data, 8);
	assert_refused(file, n, "one axis");
	n = make(file, HEADER("<i4", "(4611686018427387905,)"), data, 4);
	assert_refused(file, n, "it is cut");
	n = make(file, HEADER("<i4", "(2,)"), data, 8);
	assert_refused(file, n, "element 1");
	n = make(file, HEADER("<i8", "(2,)"), wide, 16);
	assert_refused(file, n, "element 1");
	/* Cut anywhere behind its magic. */
	n = make(file, HEADER("<u4", "(2,)"), data, 8);
	for (i = 6; i < n; i++) {
		char *cut = malloc(i);

		memcpy(cut, file, i);
		assert_refused(
		    cut, i, i < n - 8 ? "header is damaged" : "it is cut");
		free(cut);
	}
	assert_false(npy_is(file, 5));
	assert_false(npy_is("1,2,3,4", 7));
}

/* ---- writing ---- */

static void
test_write(void **state)
{
	static const float rows[] = {1, 2, 3, 4, 5, 6};
	char path[] = "/tmp/unit_npyXXXXXX", why[NPY_WHY], text[512];
	int fd = mkstemp(path);
	FILE *in;
	Npy f;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "old", 3), 3);
	close(fd);
	assert_true(npy_create(&f, path, 3, 2, why));
	assert_true(npy_rows(&f, rows, 1, why));
	assert_true(npy_rows(&f, rows + 2, 2, why));
	in = fopen(path, "rb");
	assert_int_equal(fread(text, 1, sizeof text, in), 3); /* untouched */
	fclose(in);
	assert_true(npy_commit(&f, why));
	in = fopen(path, "rb");
	assert_int_equal(fread(text, 1, sizeof text, in), 128 + sizeof rows);
	fclose(in);
	assert_memory_equal(
	    text, "\x93NUMPY\x01\x00\x76\x00{'descr': '<f4'", 25);
	text[127] = text[127] == '\n' ? '\0' : 'x';
	assert_non_null(strstr(text + 10, "'shape': (3, 2), }  "));
	assert_int_equal(strlen(text + 10), 117);
	assert_memory_equal(text + 128, rows, sizeof rows);
	unlink(path);
}

static void
test_abandon(void **state)
{
	char path[] = "/tmp/unit_npyXXXXXX", why[NPY_WHY], temporary[64];
	Npy f;

	(void)state;
	assert_non_null(mkdtemp(path));
	assert_false(npy_create(&f, path, 1, 1, why) && npy_commit(&f, why));
	assert_non_null(strstr(why, path)); /* a folder is in the way */
	snprintf(temporary, sizeof temporary, "%s/x", path);
	assert_int_equal(symlink("nothing", temporary), 0);
	assert_false(npy_create(&f, temporary, 1, 1, why));
	assert_non_null(strstr(why, "/x: it is a link"));
	assert_int_equal(unlink(temporary), 0); /* still there */
	assert_true(npy_create(&f, temporary, 1, 1, why));
	npy_abandon(&f);
	npy_abandon(&f);
	assert_int_equal(rmdir(path), 0); /* nothing was left in it */
	assert_false(npy_create(&f, "/nowhere/x", 1, 1, why));
	assert_non_null(strstr(why, "/nowhere/x"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_ids),
	    cmocka_unit_test(test_refused),
	    cmocka_unit_test(test_write),
	    cmocka_unit_test(test_abandon),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
