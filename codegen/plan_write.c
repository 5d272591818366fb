#include "plan_write.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "output.h"

static const size_t sizes[] = {
#define SECTION(NAME, element) sizeof(element),
    PLAN_SECTIONS(SECTION)
#undef SECTION
};

typedef struct Bytes {
	unsigned char *data;
	size_t count, capacity;
} Bytes;

struct PlanWriter {
	Bytes section[SEC_COUNT];
	/* Open addressing by hash; 0 is an empty place. */
	uint32_t *table;
	size_t n_strings, table_size; /* a power of two */
	Bytes file;
};

static void
no_memory(void)
{
	fputs("ingot: memory ran out while writing a plan\n", stderr);
	exit(70);
}

/* n zeroed bytes at the end of b. */
static unsigned char *
grow(Bytes *b, size_t n)
{
	size_t need = b->count + n, capacity = b->capacity ? b->capacity : 4096;

	if (need < n)
		no_memory();
	while (capacity < need) {
		if (capacity > SIZE_MAX / 2)
			no_memory();
		capacity *= 2;
	}
	if (capacity != b->capacity) {
		b->data = realloc(b->data, capacity);
		if (!b->data)
			no_memory();
		b->capacity = capacity;
	}
	if (n > 0)
		memset(b->data + b->count, 0, n);
	b->count = need;
	return b->data + need - n;
}

static void
grow_to(Bytes *b, size_t align)
{
	grow(b, (align - b->count % align) % align);
}

static uint32_t *
new_table(size_t n)
{
	uint32_t *table = calloc(n, sizeof *table);

	if (!table)
		no_memory();
	return table;
}

PlanWriter *
plan_writer_new(void)
{
	PlanWriter *pw = calloc(1, sizeof *pw);

	if (!pw)
		no_memory();
	pw->table_size = 1024;
	pw->table = new_table(pw->table_size);
	grow(&pw->section[SEC_STRINGS], 1);
	return pw;
}

void
plan_writer_free(PlanWriter *pw)
{
	if (!pw)
		return;
	for (int i = 0; i < SEC_COUNT; i++)
		free(pw->section[i].data);
	free(pw->table);
	free(pw->file.data);
	free(pw);
}

/* The place of the string in the table: its own, or the empty one where it
 * belongs. */
static uint32_t *
find(PlanWriter *pw, const char *s, size_t length)
{
	const char *base = (const char *)pw->section[SEC_STRINGS].data;
	size_t i = (size_t)XXH64(s, length, 0);

	for (;; i++) {
		uint32_t *at = &pw->table[i & (pw->table_size - 1)];

		if (*at == 0 || (strncmp(base + *at, s, length) == 0 &&
				    base[*at + length] == '\0'))
			return at;
	}
}

static void
rehash(PlanWriter *pw)
{
	uint32_t *old = pw->table;
	size_t n = pw->table_size;
	const char *base = (const char *)pw->section[SEC_STRINGS].data;

	pw->table_size = 2 * n;
	pw->table = new_table(pw->table_size);
	for (size_t i = 0; i < n; i++)
		if (old[i] != 0)
			*find(pw, base + old[i], strlen(base + old[i])) =
			    old[i];
	free(old);
}

uint32_t
pw_text(PlanWriter *pw, const char *s, size_t length)
{
	Bytes *b = &pw->section[SEC_STRINGS];
	uint32_t *at;

	if (length == 0)
		return 0;
	at = find(pw, s, length);
	if (*at != 0)
		return *at;
	if (length > UINT32_MAX || b->count > UINT32_MAX - length - 1)
		no_memory();
	*at = (uint32_t)b->count;
	memcpy(grow(b, length + 1), s, length);
	if (++pw->n_strings > pw->table_size / 2)
		rehash(pw);
	return (uint32_t)(b->count - length - 1);
}

uint32_t
pw_string(PlanWriter *pw, const char *s)
{
	return pw_text(pw, s, strlen(s));
}

void *
pw_add(PlanWriter *pw, PlanSectionKind kind, size_t n)
{
	if (n > UINT32_MAX / sizes[kind])
		no_memory();
	return grow(&pw->section[kind], n * sizes[kind]);
}

uint32_t
pw_count(const PlanWriter *pw, PlanSectionKind kind)
{
	return (uint32_t)(pw->section[kind].count / sizes[kind]);
}

void *
pw_at(PlanWriter *pw, PlanSectionKind kind, uint32_t i)
{
	return pw->section[kind].data + i * sizes[kind];
}

uint64_t
pw_blob(PlanWriter *pw, PlanSectionKind kind, const void *bytes, size_t n,
    size_t align)
{
	Bytes *b = &pw->section[kind];

	grow_to(b, align);
	if (n > 0)
		memcpy(grow(b, n), bytes, n);
	return b->count - n;
}

/* Appends a section to the file and describes it. */
static PlanSection
place(PlanWriter *pw, PlanSectionKind kind)
{
	const Bytes *b = &pw->section[kind];
	PlanSection s = {.kind = kind, .bytes = b->count};

	s.offset = pw->file.count;
	s.check = XXH64(b->data, b->count, 0);
	memcpy(grow(&pw->file, b->count), b->data, b->count);
	grow_to(&pw->file, PLAN_ALIGN);
	return s;
}

const unsigned char *
pw_bytes(PlanWriter *pw, size_t *n)
{
	PlanHeader h = {.major = PLAN_MAJOR, .minor = PLAN_MINOR};
	PlanSection table[SEC_COUNT];
	size_t bytes;

	memcpy(h.magic, PLAN_MAGIC, sizeof h.magic);
	for (int i = 0; i < SEC_COUNT; i++)
		h.n_sections += pw->section[i].count > 0;
	bytes = h.n_sections * sizeof *table;
	pw->file.count = 0;
	grow(&pw->file, sizeof h + bytes);
	grow_to(&pw->file, PLAN_ALIGN);
	for (int i = 0, k = 0; i < SEC_COUNT; i++)
		if (pw->section[i].count > 0)
			table[k++] = place(pw, (PlanSectionKind)i);
	h.file_bytes = pw->file.count;
	h.check =
	    XXH64(table, bytes, XXH64(&h, offsetof(PlanHeader, check), 0));
	memcpy(pw->file.data, &h, sizeof h);
	memcpy(pw->file.data + sizeof h, table, bytes);
	*n = pw->file.count;
	return pw->file.data;
}

/* ---- to a file ---- */

static bool
refused(char *why, const char *path, const char *what)
{
	const char *reason = strerror(errno);

	snprintf(
	    why, PLAN_WHY, "%.300s: cannot %s: %.100s", path, what, reason);
	return false;
}

static bool
write_all(int fd, const unsigned char *p, size_t n)
{
	while (n > 0) {
		ssize_t k = write(fd, p, n);

		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			return false;
		p += k;
		n -= (size_t)k;
	}
	return true;
}

/* Makes the rename last; a file system that cannot is no error. */
static void
sync_folder(const char *path)
{
	const char *slash = strrchr(path, '/');
	size_t n = slash ? (size_t)(slash - path) + 1 : 1;
	char *folder = malloc(n + 1);
	int fd;

	if (!folder)
		no_memory();
	memcpy(folder, slash ? path : ".", n);
	folder[n] = '\0';
	fd = open(folder, O_RDONLY | O_CLOEXEC);
	free(folder);
	if (fd < 0)
		return;
	fsync(fd);
	close(fd);
}

/* Fills the temporary file fd and gives it its name. */
static bool
commit(PlanWriter *pw, int fd, const char *temp, const char *path, char *why)
{
	size_t n;
	const unsigned char *bytes = pw_bytes(pw, &n);
	bool ok = (write_all(fd, bytes, n) && fsync(fd) == 0) ||
		  refused(why, path, "write the plan");

	if (close(fd) != 0 && ok)
		ok = refused(why, path, "write the plan");
	if (ok && rename(temp, path) != 0)
		ok = refused(why, path, "put the plan in its place");
	if (ok)
		sync_folder(path);
	else
		unlink(temp);
	return ok;
}

/* A new file beside path: its descriptor, or -1; the name is in temp. */
static int
open_beside(const char *path, char *temp, size_t size)
{
	int fd = -1;

	for (int i = 0; i < 100; i++) {
		snprintf(temp, size, "%s.%ld-%d", path, (long)getpid(), i);
		fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		if (fd >= 0 || errno != EEXIST)
			break;
	}
	return fd;
}

bool
pw_write(PlanWriter *pw, const char *path, char *why)
{
	size_t size = strlen(path) + 32;
	char *temp;
	int fd;
	bool ok;

	if (!output_allowed(path, why, PLAN_WHY))
		return false;
	temp = malloc(size);
	if (!temp)
		no_memory();
	fd = open_beside(path, temp, size);
	ok = fd >= 0 ? commit(pw, fd, temp, path, why)
		     : refused(why, path, "make a file beside it");
	free(temp);
	return ok;
}
