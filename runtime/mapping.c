#include "mapping.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "quote.h"

FileKind
file_kind(const char *path)
{
	struct stat st;

	if (stat(path, &st) != 0)
		return FILE_MISSING;
	if (S_ISREG(st.st_mode))
		return FILE_REGULAR;
	return S_ISDIR(st.st_mode) ? FILE_FOLDER : FILE_OTHER;
}

bool
link_target(const char *path, char *out, size_t size)
{
	ssize_t n = readlink(path, out, size);

	if (n < 0 || (size_t)n == size)
		return false;
	out[n] = '\0';
	return true;
}

static ingot_status
refused(const char *path, const char *what, Error *err)
{
	Quote q;
	const char *why = strerror(errno);

	return fail(err, INGOT_IO, "%s: cannot %s the file: %s",
	    quote(&q, path, strlen(path)), what, why);
}

static ingot_status
map_open(int fd, const char *path, Mapping *out, Error *err)
{
	struct stat st;
	Quote q;
	void *p = NULL;

	if (fstat(fd, &st) != 0)
		return refused(path, "examine", err);
	if (!S_ISREG(st.st_mode))
		return fail(err, INGOT_IO, "%s: is not a regular file",
		    quote(&q, path, strlen(path)));
	if (st.st_size > 0) {
		p = mmap(
		    NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (p == MAP_FAILED)
			return refused(path, "map", err);
	}
	*out = (Mapping){p, (uint64_t)st.st_size};
	return INGOT_OK;
}

ingot_status
map_file(const char *path, Mapping *out, Error *err)
{
	ingot_status status;
	/* O_NONBLOCK: a FIFO is to be refused, not waited for. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return refused(path, "open", err);
	status = map_open(fd, path, out, err);
	close(fd);
	return status;
}

void
unmap_file(Mapping *m)
{
	if (m->data)
		munmap((void *)m->data, (size_t)m->size);
	*m = (Mapping){0};
}
