/* The hash of the tests against the vectors of FIPS 180-4's examples. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "sha256.h"

static const char *const vectors[][2] = {
    {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
    {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
    {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
	"248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmn"
     "hijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
	"cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"}};

static void
test_vectors(void **state)
{
	char text[SHA256_TEXT];

	(void)state;
	for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
		Sha256 s = sha256_start();

		sha256_add(&s, vectors[i][0], strlen(vectors[i][0]));
		sha256_end(&s, text);
		assert_string_equal(text, vectors[i][1]);
	}
}

/* A million letters a, in pieces of every length below 129 in turn. */
static void
test_pieces(void **state)
{
	unsigned char letters[128];
	char text[SHA256_TEXT];
	Sha256 s = sha256_start();
	size_t left = 1000000, n = 0;

	(void)state;
	memset(letters, 'a', sizeof letters);
	for (; left > 0; left -= n) {
		n = (n + 1) % (sizeof letters + 1);
		if (n > left)
			n = left;
		sha256_add(&s, letters, n);
	}
	sha256_end(&s, text);
	assert_string_equal(text,
	    "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_vectors), cmocka_unit_test(test_pieces)};

	return cmocka_run_group_tests_name("sha256", tests, NULL, NULL);
}
