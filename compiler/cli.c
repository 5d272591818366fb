#include "cli.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t interrupt;
static int bar; /* columns of the progress line on the terminal */

static void
clear_bar(void)
{
	if (bar > 0)
		fprintf(stderr, "\r%*s\r", bar, "");
	bar = 0;
}

static void
print_sentence(const char *fmt, va_list args)
{
	clear_bar();
	fputs("ingot: ", stderr);
	vfprintf(stderr, fmt, args);
	putc('\n', stderr);
}

void
note(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	print_sentence(fmt, args);
	va_end(args);
}

int
user_error(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	print_sentence(fmt, args);
	va_end(args);
	return EXIT_USER;
}

int
usage_error(const Options *o, const char *why)
{
	note("%s; see 'ingot %s --help'", why, command_name(o->command));
	return EXIT_USAGE;
}

int
library_error(const Error *e)
{
	note("%s", e->text);
	return e->status == INGOT_INTERNAL ? EXIT_OURS : EXIT_USER;
}

static void
on_interrupt(int signal)
{
	(void)signal;
	interrupt = 1;
}

void
catch_interrupts(void)
{
	struct sigaction a = {0};

	a.sa_handler = on_interrupt;
	a.sa_flags = SA_RESETHAND | SA_RESTART;
	sigemptyset(&a.sa_mask);
	sigaction(SIGINT, &a, NULL);
}

bool
interrupted(void)
{
	return interrupt != 0;
}

double
seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void
show_progress(void *user, uint64_t done, uint64_t total)
{
	const char *label = user;

	if (!isatty(STDERR_FILENO) || total == 0)
		return;
	clear_bar();
	if (done < total)
		bar = fprintf(stderr, "%s %3.0f %%", label,
		    100.0 * (double)done / (double)total);
	fflush(stderr);
}

/* Doubles *bytes, keeping room for a NUL. */
static bool
grow(char **bytes, size_t *capacity)
{
	char *more = *capacity < SIZE_MAX / 2
			 ? realloc(*bytes, *capacity * 2 + 1)
			 : NULL;

	if (!more)
		return false;
	*bytes = more;
	*capacity *= 2;
	return true;
}

static bool
read_stream(FILE *in, char **bytes, size_t *length)
{
	size_t capacity = 1 << 15;

	*length = 0;
	*bytes = NULL;
	do {
		if (!grow(bytes, &capacity)) {
			errno = ENOMEM;
			return false;
		}
		*length += fread(*bytes + *length, 1, capacity - *length, in);
	} while (*length == capacity);
	(*bytes)[*length] = '\0';
	return !ferror(in);
}

bool
read_file(const char *path, char **bytes, size_t *length)
{
	bool piped = strcmp(path, "-") == 0;
	FILE *in = piped ? stdin : fopen(path, "rb");
	bool ok = in && read_stream(in, bytes, length);

	if (!ok)
		note("cannot read %s: %s", path, strerror(errno));
	if (in && !ok)
		free(*bytes);
	if (in && !piped)
		fclose(in);
	return ok;
}
