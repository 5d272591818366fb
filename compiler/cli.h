/* What the commands share: exit statuses, sentences, progress, interrupts.
 *
 * The result of a command is all that goes to stdout. Sentences go to stderr,
 * one line each, after "ingot: ". */
#ifndef COMPILER_CLI_H
#define COMPILER_CLI_H

#include "../runtime/error.h"
#include "options.h"

enum {
	EXIT_DONE = 0,
	EXIT_USER = 1, /* something given or found is wrong */
	EXIT_USAGE = 2,
	EXIT_NO_KERNEL = 3, /* an op has none on the target */
	EXIT_NO_ROOM = 4,   /* check found that it does not fit */
	EXIT_DIFFERS = 5,   /* verify found a difference */
	EXIT_OURS = 70,     /* a fault of Ingot itself */
	EXIT_INTERRUPTED = 130
};

#if defined(__GNUC__)
#define CLI_PRINTF __attribute__((format(printf, 1, 2)))
#else
#define CLI_PRINTF
#endif

/* Prints a sentence. */
void note(const char *fmt, ...) CLI_PRINTF;
/* The same; returns EXIT_USER. */
int user_error(const char *fmt, ...) CLI_PRINTF;
/* The same with a hint at the help of o's command; returns EXIT_USAGE. */
int usage_error(const Options *o, const char *why);
/* Prints what a function of the library said; returns the exit status. */
int library_error(const Error *e);

/* From here on the first SIGINT is remembered, the second ends the program. */
void catch_interrupts(void);
bool interrupted(void);

/* Seconds from some fixed moment. */
double seconds(void);

/* A progress line on a terminal: "label  42 %". done == total ends it. Silent
 * where stderr is no terminal. user is the label; fits ingot_model_options. */
void show_progress(void *user, uint64_t done, uint64_t total);

/* All of a file, or of stdin for "-", with a NUL behind it: *bytes is from
 * malloc. False after printing the sentence. */
bool read_file(const char *path, char **bytes, size_t *length);

/* Each returns an exit status. */
#define COMMAND(NAME, name, least, most, operands, summary, details)           \
	int cmd_##name(const Options *o);
#include "options.def"
#undef COMMAND

#endif
