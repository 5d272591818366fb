#include "scratch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

bool
scratch_open(Scratch *s, Arena *a, const char *tmp, char *why)
{
	s->arena = a;
	snprintf(s->dir, sizeof s->dir, "%s/ingot-XXXXXX", tmp);
	if (mkdtemp(s->dir))
		return true;
	snprintf(why, TOOL_WHY, "cannot make a folder in %s: %s", tmp,
	    strerror(errno));
	return false;
}

static const char *
path_of(Scratch *s, const char *name)
{
	return arena_printf(s->arena, "%s/%s", s->dir, name);
}

void
scratch_close(Scratch *s)
{
	DIR *d = opendir(s->dir);
	const struct dirent *e;

	while (d && (e = readdir(d)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			remove(path_of(s, e->d_name));
	if (d)
		closedir(d);
	rmdir(s->dir);
}

bool
scratch_write(Scratch *s, const char *name, const void *bytes, size_t length)
{
	FILE *f = fopen(path_of(s, name), "wb");
	bool ok;

	if (!f)
		return false;
	ok = fwrite(bytes, 1, length, f) == length;
	return fclose(f) == 0 && ok;
}

char *
scratch_read(Scratch *s, const char *name, size_t *length)
{
	FILE *f = fopen(path_of(s, name), "rb");
	struct stat st;
	char *bytes = NULL;

	if (!f)
		return NULL;
	if (fstat(fileno(f), &st) == 0 && st.st_size > 0) {
		*length = (size_t)st.st_size;
		bytes = arena_alloc(s->arena, *length + 1);
		if (fread(bytes, 1, *length, f) != *length)
			bytes = NULL;
	}
	fclose(f);
	return bytes;
}

const char *
scratch_messages(Scratch *s)
{
	enum { SHOWN = TOOL_WHY / 2 };
	size_t length;
	char *text = scratch_read(s, "messages", &length);

	if (!text)
		return "it gave no reason";
	if (length > SHOWN)
		text[SHOWN] = '\0';
	return text;
}

/* In a new process: into the folder, output and messages to files. */
static void
settle(const Scratch *s)
{
	const int flags = O_WRONLY | O_CREAT | O_TRUNC;
	int out, messages;

	if (chdir(s->dir) != 0)
		_exit(126);
	out = open("out", flags, 0600);
	messages = open("messages", flags, 0600);
	if (out < 0 || messages < 0 || dup2(out, 1) < 0 ||
	    dup2(messages, 2) < 0)
		_exit(126);
}

static int
wait_for(pid_t child)
{
	int status;

	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return 126;
	return WIFEXITED(status) ? WEXITSTATUS(status)
				 : RUN_SIGNAL + WTERMSIG(status);
}

int
scratch_run(Scratch *s, const char *const *argv)
{
	pid_t child = fork();

	if (child < 0)
		return 126;
	if (child == 0) {
		settle(s);
		/* execvp does not write to its arguments. */
		execvp(argv[0], (char *const *)argv);
		_exit(errno == ENOENT ? RUN_NOT_FOUND : 126);
	}
	return wait_for(child);
}

int
scratch_child(Scratch *s, int (*body)(void *), void *user)
{
	pid_t child = fork();

	if (child < 0)
		return 126;
	if (child == 0) {
		settle(s);
		_exit(body(user));
	}
	return wait_for(child);
}
