/* The command line: words to options, defaults, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "../compiler/options.h"
#include "../compiler/suggest.h"

#include <cmocka.h>

enum { MOST_WORDS = 8 };

/* Splits line at blanks; "''" is an empty word. */
static bool
parse(Command c, const char *line, Options *o, char *why)
{
	static char copy[256];
	static char empty[] = "";
	char *argv[MOST_WORDS], *rest, *word;
	int argc = 0;

	assert_true(strlen(line) < sizeof copy);
	strcpy(copy, line);
	for (word = strtok_r(copy, " ", &rest); word;
	     word = strtok_r(NULL, " ", &rest)) {
		assert_true(argc < MOST_WORDS);
		argv[argc++] = strcmp(word, "''") == 0 ? empty : word;
	}
	return options_parse(c, argc, argv, o, why);
}

static Options
accept(Command c, const char *line)
{
	char why[OPTIONS_WHY] = "";
	Options o;

	if (!parse(c, line, &o, why))
		fail_msg("%s: %s", line, why);
	return o;
}

static void
test_values(void **state)
{
	Options o = accept(CMD_RUN, "m.gguf --ctx 16 -n 5 --temp 0.5 --chat");

	(void)state;
	assert_int_equal(o.operands, 1);
	assert_string_equal(o.operand[0], "m.gguf");
	assert_int_equal(o.ctx, 16);
	assert_int_equal(o.count, 5);
	assert_true(o.temp == 0.5f);
	assert_true(o.chat);
	assert_true(o.given.ctx && o.given.count && o.given.chat);
	assert_false(o.given.seed || o.given.model || o.json);
	options_free(&o);

	o = accept(CMD_RUN, "--seed 18446744073709551615 m --top-k=7 -p ''");
	assert_true(o.seed == UINT64_MAX);
	assert_int_equal(o.top_k, 7);
	assert_string_equal(o.prompt, "");
	assert_string_equal(o.operand[0], "m");
	options_free(&o);
}

static void
test_defaults(void **state)
{
	Options o = accept(CMD_RUN, "m");

	(void)state;
	assert_int_equal(o.count, 256);
	assert_int_equal(o.ctx, 0);
	assert_int_equal(o.tokens.count, 0);
	assert_true(o.temp == 0 && o.top_p == 0 && o.seed == 0);
	assert_null(o.device);
	options_free(&o);
}

static void
test_lists(void **state)
{
	Options o = accept(CMD_LOGITS, "m --tokens 1,2 --tokens=3 -o x");

	(void)state;
	assert_int_equal(o.tokens.count, 2);
	assert_string_equal(o.tokens.at[0], "1,2");
	assert_string_equal(o.tokens.at[1], "3");
	options_free(&o);
	assert_int_equal(o.tokens.count, 0);
}

static void
test_bytes(void **state)
{
	static const struct {
		const char *line;
		uint64_t bytes; /* 0: refused */
	} cases[] = {{"m --vram 1", 1}, {"m --vram 3K", 3 << 10},
	    {"m --vram=5M", 5 << 20}, {"m --vram 24G", 24ull << 30},
	    {"m --vram 8388607T", 8388607ull << 40},
	    {"m --vram 9223372036854775807", INT64_MAX},
	    {"m --vram 8388608T", 0}, {"m --vram 9223372036854775808", 0},
	    {"m --vram 0", 0}, {"m --vram 0G", 0}, {"m --vram G", 0},
	    {"m --vram 24GB", 0}, {"m --vram 2.5G", 0}, {"m --vram 24g", 0},
	    {"m --vram -1", 0}, {"m --vram ''", 0},
	    {"m --vram 0000000000000000000000001K", 0}};
	char why[OPTIONS_WHY];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		Options o;
		bool ok = parse(CMD_CHECK, cases[i].line, &o, why);

		assert_int_equal(ok, cases[i].bytes > 0);
		if (ok)
			assert_true(o.vram == cases[i].bytes);
		else
			assert_non_null(strstr(why, "such as 24G"));
		options_free(&o);
	}
}

static void
test_words_that_look_odd(void **state)
{
	Options o = accept(CMD_TOKENIZE, "m -- --help");

	(void)state;
	assert_false(o.help);
	assert_string_equal(o.operand[1], "--help");
	options_free(&o);
	o = accept(CMD_TOKENIZE, "m -"); /* a plain dash is a text */
	assert_string_equal(o.operand[1], "-");
	options_free(&o);
	o = accept(CMD_RUN, "m -p --chat"); /* a value is taken as it is */
	assert_string_equal(o.prompt, "--chat");
	assert_false(o.chat);
	options_free(&o);
	o = accept(CMD_RUN, "m -n=3 -p="); /* as --name=value */
	assert_int_equal(o.count, 3);
	assert_string_equal(o.prompt, "");
	options_free(&o);
	o = accept(CMD_RUN, "--help"); /* operands may be missing then */
	assert_true(o.help);
	options_free(&o);
}

static void
test_refused(void **state)
{
	static const struct {
		Command command;
		const char *line, *part;
	} cases[] = {
	    {CMD_RUN, "", "run needs PLAN|CHECKPOINT"},
	    {CMD_RUN, "a b", "'b' is one operand too many"},
	    {CMD_OPS, "a", "'a' is one operand too many"},
	    {CMD_RUN, "a --toknes 1", "did you mean '--tokens'"},
	    {CMD_RUN, "a --toknes=1", "option '--toknes' (did you mean"},
	    {CMD_RUN, "a -n5", "unknown option '-n5'"},
	    {CMD_RUN, "a -o x", "-o is no option of run"},
	    {CMD_RUN, "a --vram 1G", "--vram is no option of run"},
	    {CMD_COMPILE, "a --chunk=3", "--chunk is no option of compile"},
	    {CMD_RUN, "a --chat=1", "--chat takes no value"},
	    {CMD_RUN, "a -n", "-n needs N"},
	    {CMD_RUN, "a --ctx 0", "a whole number from 1 on"},
	    {CMD_RUN, "a --ctx 4294967296", "a whole number from 1 on"},
	    {CMD_RUN, "a --ctx -1", "--ctx '-1'"},
	    {CMD_RUN, "a --ctx 1x", "--ctx '1x'"},
	    {CMD_RUN, "a --ctx=", "--ctx ''"},
	    {CMD_RUN, "a --seed 18446744073709551616", "below 2^64"},
	    {CMD_RUN, "a --max-chunk 65537", "whole number from 1 to 65536"},
	    {CMD_RUN, "a --top-p 1.5", "a number from 0 to 1 is expected"},
	    {CMD_RUN, "a --temp nan", "--temp 'nan'"},
	    {CMD_RUN, "a --temp inf", "--temp 'inf'"},
	    {CMD_RUN, "a --temp -1", "--temp '-1'"},
	    {CMD_RUN, "a --kv f16", "one of bf16|f32 is expected"},
	    {CMD_RUN, "a --kv bf", "one of bf16|f32 is expected"},
	    {CMD_RUN, "a --kv ''", "one of bf16|f32 is expected"},
	};
	char why[OPTIONS_WHY];
	Options o;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		if (parse(cases[i].command, cases[i].line, &o, why))
			fail_msg("%s: accepted", cases[i].line);
		if (!strstr(why, cases[i].part))
			fail_msg("%s: %s", cases[i].line, why);
		options_free(&o);
	}
}

static void
test_of_compile(void **state)
{
	Options o = accept(CMD_RUN, "m --ctx 5 --temp 1");

	(void)state;
	assert_null(options_of_compile(&o));
	options_free(&o);
	o = accept(CMD_RUN, "m --kv f32");
	assert_string_equal(options_of_compile(&o), "--kv");
	options_free(&o);
	o = accept(CMD_INSPECT, "m --no-fusion");
	assert_string_equal(options_of_compile(&o), "--no-fusion");
	options_free(&o);
	o = accept(CMD_CHECK, "m --vram 24G --max-chunk 7");
	assert_string_equal(options_of_compile(&o), "--max-chunk");
	options_free(&o);
	o = accept(CMD_INSPECT, "m --target cpu"); /* chooses what to show */
	assert_null(options_of_compile(&o));
	options_free(&o);
}

static void
test_commands(void **state)
{
	char text[SUGGEST_TEXT];
	int c;

	(void)state;
	for (c = 0; c < CMD_COUNT; c++)
		assert_int_equal(command_by_name(command_name((Command)c)), c);
	assert_int_equal(command_by_name("verifi"), CMD_COUNT);
	assert_string_equal(
	    command_suggestion("rnu", text), " (did you mean 'run'?)");
	assert_string_equal(command_suggestion("bewilderment", text), "");
}

/* All help of a command, from malloc. */
static char *
help_text(Command c)
{
	char *text;
	size_t n;
	FILE *out = open_memstream(&text, &n);

	assert_non_null(out);
	help_command(c, out);
	fclose(out);
	return text;
}

static void
test_help(void **state)
{
	char *text = help_text(CMD_RUN), *line, *rest;
	int c;

	(void)state;
	assert_non_null(strstr(text, "\n  --top-k N  "));
	assert_non_null(strstr(text, "\n  --kv bf16|f32  "));
	assert_null(strstr(text, "--chunk"));
	free(text);
	for (c = 0; c < CMD_COUNT; c++) {
		text = help_text((Command)c);
		assert_non_null(strstr(text, "\n  --threads N  "));
		for (line = strtok_r(text, "\n", &rest); line;
		     line = strtok_r(NULL, "\n", &rest))
			if (strlen(line) > 79)
				fail_msg("too long: %s", line);
		free(text);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_values),
	    cmocka_unit_test(test_defaults),
	    cmocka_unit_test(test_lists),
	    cmocka_unit_test(test_bytes),
	    cmocka_unit_test(test_words_that_look_odd),
	    cmocka_unit_test(test_refused),
	    cmocka_unit_test(test_of_compile),
	    cmocka_unit_test(test_commands),
	    cmocka_unit_test(test_help),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
