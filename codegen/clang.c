#include "clang.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const programs[] = {"clang-19", "clang", NULL};

/* The first lines of a file, for a sentence. */
static void
read_head(const char *path, char *out, size_t size)
{
	FILE *f = fopen(path, "r");
	size_t n = f ? fread(out, 1, size - 1, f) : 0;

	out[n] = '\0';
	if (f)
		fclose(f);
}

static unsigned char *
read_all(Arena *a, const char *path, size_t *length)
{
	struct stat st;
	FILE *f = fopen(path, "rb");
	unsigned char *bytes = NULL;

	if (!f)
		return NULL;
	if (fstat(fileno(f), &st) == 0 && st.st_size > 0) {
		*length = (size_t)st.st_size;
		bytes = arena_alloc(a, *length);
		if (fread(bytes, 1, *length, f) != *length)
			bytes = NULL;
	}
	fclose(f);
	return bytes;
}

static bool
write_all(const char *path, const char *text, size_t length)
{
	FILE *f = fopen(path, "wb");
	bool ok;

	if (!f)
		return false;
	ok = fwrite(text, 1, length, f) == length;
	return fclose(f) == 0 && ok;
}

/* Becomes the program; output and messages go to files. */
static void
become(char *const *argv, const char *out, const char *messages)
{
	int o = open(out, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	int e = open(messages, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	if (o < 0 || e < 0 || dup2(o, 1) < 0 || dup2(e, 2) < 0)
		_exit(126);
	execvp(argv[0], argv);
	_exit(errno == ENOENT ? 127 : 126);
}

/* Exit status of argv, 127 when there is no such program. */
static int
run(char *const *argv, const char *out, const char *messages)
{
	pid_t child = fork();
	int status;

	if (child == 0)
		become(argv, out, messages);
	if (child < 0)
		return 126;
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return 126;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 126;
}

/* Places of one compilation. */
typedef struct Job {
	char dir[512];
	char source[560], object[560], out[560], messages[560];
} Job;

static bool
job_open(Job *j, const char *tmp, char *why)
{
	snprintf(j->dir, sizeof j->dir, "%s/ingot-XXXXXX", tmp);
	if (!mkdtemp(j->dir)) {
		snprintf(why, TOOL_WHY, "cannot make a folder in %s: %s", tmp,
		    strerror(errno));
		return false;
	}
	snprintf(j->source, sizeof j->source, "%s/kernels.c", j->dir);
	snprintf(j->object, sizeof j->object, "%s/kernels.so", j->dir);
	snprintf(j->out, sizeof j->out, "%s/out", j->dir);
	snprintf(j->messages, sizeof j->messages, "%s/messages", j->dir);
	return true;
}

static void
job_close(Job *j)
{
	remove(j->source);
	remove(j->object);
	remove(j->out);
	remove(j->messages);
	rmdir(j->dir);
}

/* "clang 19.1.7" of the first program that is there, and its name. */
static const char *
find_program(Arena *a, Job *j, const char **version)
{
	for (int i = 0; programs[i]; i++) {
		char *argv[] = {(char *)programs[i], "-dumpversion", NULL};
		char text[64];

		if (run(argv, j->out, j->messages) != 0)
			continue;
		read_head(j->out, text, sizeof text);
		text[strcspn(text, "\n")] = '\0';
		*version = arena_printf(a, "clang %s", text);
		return programs[i];
	}
	return NULL;
}

static bool
compile(Arena *a, Job *j, const char *program, const char *isa, Object *out,
    char *why)
{
	char *march = arena_printf(a, "-march=%s", isa);
	char *argv[] = {(char *)program, "-std=c11", "-O2", march,
	    "-ffp-contract=off", "-ffreestanding", "-fPIC",
	    "-fvisibility=hidden", "-fno-stack-protector", "-shared",
	    "-nostdlib", "-fuse-ld=lld", "-Wl,--no-undefined",
	    "-Wl,--build-id=none", "-Wl,-s", "-o", j->object, j->source, NULL};
	char messages[TOOL_WHY / 2];

	if (run(argv, j->out, j->messages) != 0) {
		read_head(j->messages, messages, sizeof messages);
		snprintf(why, TOOL_WHY, "%s refused the emitted kernels: %s",
		    program, messages);
		return false;
	}
	out->bytes = read_all(a, j->object, &out->length);
	if (!out->bytes)
		snprintf(why, TOOL_WHY, "%s left no object", program);
	return out->bytes != NULL;
}

bool
clang_compile(Arena *a, const char *text, size_t length, const char *isa,
    const char *tmp, Object *out, char *why)
{
	const char *program;
	bool ok = false;
	Job j;

	if (!job_open(&j, tmp, why))
		return false;
	program = find_program(a, &j, &out->toolchain);
	if (!program)
		snprintf(why, TOOL_WHY,
		    "neither clang-19 nor clang is on the "
		    "PATH; install clang and lld to compile for %s",
		    isa);
	else if (!write_all(j.source, text, length))
		snprintf(why, TOOL_WHY, "cannot write %s: %s", j.source,
		    strerror(errno));
	else
		ok = compile(a, &j, program, isa, out, why);
	job_close(&j);
	return ok;
}
