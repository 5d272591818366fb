/* Text on its way out: whole characters, and stop strings that never show. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "../compiler/stream.h"

#include <cmocka.h>

enum { MOST_PARTS = 12 };

typedef struct Case {
	const char *stops[3]; /* ended by NULL */
	/* What each push adds, and all that is out after it; the last out is
	 * after stream_finish. */
	const char *parts[MOST_PARTS], *out[MOST_PARTS + 1];
	bool stopped; /* by the end */
} Case;

static void
assert_out(FILE *f, char *const *text, const char *want)
{
	fflush(f);
	assert_string_equal(*text, want);
}

static void
check(const Case *c)
{
	const char *at[3];
	TextList stops = {at, 0};
	char *text = NULL;
	size_t n, i;
	FILE *out = open_memstream(&text, &n);
	TextStream s = {.out = out, .stops = &stops};
	StreamState state = STREAM_OPEN;

	for (; stops.count < 3 && c->stops[stops.count]; stops.count++)
		at[stops.count] = c->stops[stops.count];
	for (i = 0; c->parts[i]; i++) {
		assert_int_equal(state, STREAM_OPEN);
		state = stream_push(&s, c->parts[i], strlen(c->parts[i]));
		assert_out(out, &text, c->out[i]);
	}
	assert_int_equal(
	    stream_finish(&s), c->stopped ? STREAM_STOPPED : STREAM_OPEN);
	assert_out(out, &text, c->out[i]);
	stream_free(&s);
	fclose(out);
	free(text);
}

static void
test_characters(void **state)
{
	static const Case cases[] = {
	    {{0}, {"ab", "c"}, {"ab", "abc", "abc"}, false},
	    {{0}, {"x\xF0\x9F", "\x91", "\xA9y"},
		{"x", "x", "x\xF0\x9F\x91\xA9y", "x\xF0\x9F\x91\xA9y"}, false},
	    {{0}, {"\xF0\x9F"}, {"", "\xEF\xBF\xBD"}, false},
	    {{0}, {"\xC3", "("}, {"", "\xEF\xBF\xBD(", "\xEF\xBF\xBD("}, false},
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof cases / sizeof cases[0]; i++)
		check(&cases[i]);
}

static void
test_stops(void **state)
{
	static const Case cases[] = {
	    /* In one piece, and over three. */
	    {{"END"}, {"abENDcd"}, {"ab", "ab"}, true},
	    {{"END"}, {"abE", "N", "D"}, {"ab", "ab", "ab", "ab"}, true},
	    /* What looked like one is let go. */
	    {{"END"}, {"abEN", "d"}, {"ab", "abENd", "abENd"}, false},
	    {{"END"}, {"abEN"}, {"ab", "abEN"}, false},
	    /* A start inside a start. */
	    {{"aab"}, {"aa", "a", "b"}, {"", "a", "a", "a"}, true},
	    /* The first to be complete wins, however it comes. */
	    {{"c", "b"}, {"abc"}, {"a", "a"}, true},
	    {{"b", "abc"}, {"a", "bc"}, {"", "a", "a"}, true},
	    {{"abc", "b"}, {"abc"}, {"a", "a"}, true},
	    {{"bc", "abc"}, {"a", "bc"}, {"", "", ""}, true},
	    /* A character cut by the border of tokens. */
	    {{"\xC3\xA9"}, {"x\xC3", "\xA9"}, {"x", "x", "x"}, true},
	    /* One that the end of the text completes. */
	    {{"\xEF\xBF\xBD"}, {"x\xF0\x9F"}, {"x", "x"}, true},
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof cases / sizeof cases[0]; i++)
		check(&cases[i]);
}

static void
test_long(void **state)
{
	static const char *stop[] = {"bb"};
	TextList stops = {stop, 1};
	char *text, part[1000];
	size_t n, i;
	FILE *out = open_memstream(&text, &n);
	TextStream s = {.out = out, .stops = &stops};

	(void)state;
	memset(part, 'a', sizeof part);
	part[999] = 'b';
	for (i = 0; i < 100; i++)
		assert_int_equal(
		    stream_push(&s, part, sizeof part), STREAM_OPEN);
	fflush(out);
	assert_int_equal(n, 99999);
	assert_int_equal(stream_push(&s, "b", 1), STREAM_STOPPED);
	fclose(out);
	assert_int_equal(n, 99999);
	free(text);
	stream_free(&s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_characters),
	    cmocka_unit_test(test_stops),
	    cmocka_unit_test(test_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
