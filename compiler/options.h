/* The options of the command line, expanded from options.def. */
#ifndef COMPILER_OPTIONS_H
#define COMPILER_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef enum Command {
#define COMMAND(NAME, name, least, most, operands, summary, details) CMD_##NAME,
#include "options.def"
#undef COMMAND
	CMD_COUNT
} Command;

/* Texts of the command line, in order; they are not copied. */
typedef struct TextList {
	const char **at;
	size_t count;
} TextList;

typedef bool opt_FLAG;
typedef const char *opt_TEXT, *opt_CHOICE; /* NULL when absent */
typedef uint32_t opt_COUNT;
typedef uint64_t opt_SEED, opt_BYTES;
typedef float opt_REAL;
typedef TextList opt_LIST;

enum { MAX_OPERANDS = 2 };

typedef struct Options {
	Command command;
	const char *operand[MAX_OPERANDS];
	int operands;
#define OPTION(field, spelling, TYPE, argument, low, high, commands, help)     \
	opt_##TYPE field;
#include "options.def"
#undef OPTION
	/* Whether the command line had it. */
	struct {
#define OPTION(field, spelling, TYPE, argument, low, high, commands, help)     \
	bool field;
#include "options.def"
#undef OPTION
	} given;
} Options;

/* The command called name; CMD_COUNT when there is none. */
Command command_by_name(const char *name);
const char *command_name(Command c);
/* "", or " (did you mean 'x'?)" for a name that is no command. text holds
 * SUGGEST_TEXT bytes (suggest.h). Returns text. */
const char *command_suggestion(const char *name, char *text);

enum { OPTIONS_WHY = 512 };

/* Parses the argc words behind the name of command c into *o, defaults filled
 * in. False and a sentence in why (OPTIONS_WHY bytes) when they are wrong. *o
 * is to be freed in both cases. --help and --version are accepted whatever
 * else is missing. */
bool options_parse(
    Command c, int argc, char *const *argv, Options *o, char *why);
void options_free(Options *o);

/* The first option on the command line that only compiling reads, or NULL. */
const char *options_of_compile(const Options *o);

void help_all(FILE *out);
void help_command(Command c, FILE *out);

#endif
