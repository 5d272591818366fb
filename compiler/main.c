/* The command line: finds the command, parses its options, runs it. */
#include <errno.h>
#include <string.h>

#include "cli.h"
#include "suggest.h"
#include "version.h"

static int
run_command(const Options *o)
{
	static int (*const run[CMD_COUNT])(const Options *) = {
#define COMMAND(NAME, name, least, most, operands, summary, details) cmd_##name,
#include "options.def"
#undef COMMAND
	};
	int code;

	catch_interrupts();
	code = run[o->command](o);
	return interrupted() ? EXIT_INTERRUPTED : code;
}

static int
print_version(void)
{
	puts("ingot " INGOT_VERSION);
	return EXIT_DONE;
}

static int
with_options(Command c, int argc, char *const *argv)
{
	char why[OPTIONS_WHY];
	Options o;
	int code = EXIT_DONE;

	if (!options_parse(c, argc, argv, &o, why))
		code = usage_error(&o, why);
	else if (o.help)
		help_command(c, stdout);
	else if (o.version)
		code = print_version();
	else
		code = run_command(&o);
	options_free(&o);
	return code;
}

static int
dispatch(int argc, char *const *argv)
{
	char text[SUGGEST_TEXT];
	Command c;

	if (argc < 2) {
		help_all(stderr);
		return EXIT_USAGE;
	}
	if (strcmp(argv[1], "--version") == 0)
		return print_version();
	if (strcmp(argv[1], "--help") == 0) {
		help_all(stdout);
		return EXIT_DONE;
	}
	c = command_by_name(argv[1]);
	if (c != CMD_COUNT)
		return with_options(c, argc - 2, argv + 2);
	note("unknown %s '%.100s'%s; see 'ingot --help'",
	    argv[1][0] == '-' ? "option" : "command", argv[1],
	    command_suggestion(argv[1], text));
	return EXIT_USAGE;
}

/* EXIT_DONE when all that was printed is out. */
static int
finish_output(void)
{
	bool failed = ferror(stdout); /* at some time, for some reason */

	if (fflush(stdout) != 0)
		return user_error(
		    "cannot write the result: %s", strerror(errno));
	return failed ? user_error("cannot write the result") : EXIT_DONE;
}

int
main(int argc, char **argv)
{
	int code = dispatch(argc, argv);

	return code == EXIT_DONE ? finish_output() : code;
}
