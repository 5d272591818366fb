#include "npy.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../codegen/output.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "files are so");

static const char magic[6] = "\x93NUMPY";

/* ---- writing ---- */

static void
forget(Npy *f)
{
	free(f->path);
	free(f->temporary);
	*f = (Npy){0};
}

void
npy_abandon(Npy *f)
{
	if (f->out) {
		fclose(f->out);
		unlink(f->temporary);
	}
	forget(f);
}

static bool
refused(Npy *f, char *why)
{
	snprintf(
	    why, NPY_WHY, "cannot write %.300s: %s", f->path, strerror(errno));
	npy_abandon(f);
	return false;
}

/* Version 1.0: the header is filled up with spaces to 128 bytes. */
static bool
write_header(FILE *out, uint64_t rows, uint64_t columns)
{
	char text[118 + 1];
	int n = snprintf(text, sizeof text,
	    "{'descr': '<f4', 'fortran_order': False, "
	    "'shape': (%" PRIu64 ", %" PRIu64 "), }",
	    rows, columns);

	return fwrite(magic, 1, sizeof magic, out) == sizeof magic &&
	       fwrite("\x01\x00\x76\x00", 1, 4, out) == 4 &&
	       fprintf(out, "%s%*s\n", text, 117 - n, "") == 118;
}

bool
npy_create(Npy *f, const char *path, uint64_t rows, uint64_t columns, char *why)
{
	size_t room = strlen(path) + 32;

	*f = (Npy){0};
	if (!output_allowed(path, why, NPY_WHY))
		return false;
	*f = (Npy){.path = strdup(path),
	    .temporary = malloc(room),
	    .columns = columns};
	if (!f->path || !f->temporary) {
		snprintf(why, NPY_WHY, "no memory to write %.300s", path);
		npy_abandon(f);
		return false;
	}
	snprintf(f->temporary, room, "%s.tmp%ld", path, (long)getpid());
	f->out = fopen(f->temporary, "wbx");
	if (!f->out || !write_header(f->out, rows, columns))
		return refused(f, why);
	return true;
}

bool
npy_rows(Npy *f, const float *data, uint64_t rows, char *why)
{
	size_t n = (size_t)(rows * f->columns);

	if (fwrite(data, sizeof *data, n, f->out) != n)
		return refused(f, why);
	return true;
}

bool
npy_commit(Npy *f, char *why)
{
	bool ok = fflush(f->out) == 0 && fsync(fileno(f->out)) == 0 &&
		  rename(f->temporary, f->path) == 0;

	if (!ok)
		return refused(f, why);
	fclose(f->out);
	forget(f);
	return true;
}

/* ---- reading ---- */

typedef struct Form {
	char kind;   /* 'i' or 'u' */
	size_t size; /* bytes of an element */
	uint64_t count;
} Form;

bool
npy_is(const char *bytes, size_t length)
{
	return length >= sizeof magic &&
	       memcmp(bytes, magic, sizeof magic) == 0;
}

static bool
bad(char *why, const char *what)
{
	snprintf(why, NPY_WHY, "%s", what);
	return false;
}

/* The text behind "'key':" in a header. */
static const char *
field(const char *header, const char *key)
{
	const char *at = strstr(header, key);

	if (!at)
		return "";
	at += strlen(key);
	return at + strspn(at, ": ");
}

/* header is the dictionary, terminated. */
static bool
read_form(const char *header, Form *f, char *why)
{
	const char *descr = field(header, "'descr'");
	const char *shape = field(header, "'shape'");
	char *end;

	if (strncmp(descr, "'<i4'", 5) != 0 &&
	    strncmp(descr, "'<i8'", 5) != 0 && strncmp(descr, "'<u4'", 5) != 0)
		return bad(why, "ids are int32, int64 or uint32");
	f->kind = descr[2];
	f->size = (size_t)(descr[3] - '0');
	if (shape[0] != '(' || shape[1] < '0' || shape[1] > '9')
		return bad(why, "ids have one axis");
	errno = 0;
	f->count = strtoull(shape + 1, &end, 10);
	if (errno != 0 || strncmp(end, ",)", 2) != 0)
		return bad(why, "ids have one axis");
	return true;
}

/* Finds the header; *data is where the elements start. */
static bool
read_header(const char *bytes, size_t length, Form *f, size_t *data, char *why)
{
	const unsigned char *u = (const unsigned char *)bytes;
	size_t start = 10, n;
	char *header;
	bool ok;

	if (length < 12 || u[6] < 1 || u[6] > 3)
		return bad(why, "its header is damaged");
	n = u[8] | (size_t)u[9] << 8;
	if (u[6] > 1) {
		start = 12;
		n |= (size_t)u[10] << 16 | (size_t)u[11] << 24;
	}
	if (n > length - start)
		return bad(why, "its header is damaged");
	header = strndup(bytes + start, n);
	if (!header)
		return bad(why, "no memory to read it");
	ok = read_form(header, f, why);
	free(header);
	*data = start + n;
	return ok;
}

static bool
read_id(const char *at, const Form *f, uint32_t *id)
{
	int64_t wide;
	uint32_t narrow;

	if (f->size == 8) {
		memcpy(&wide, at, sizeof wide);
		*id = (uint32_t)wide;
		return wide >= 0 && wide <= UINT32_MAX;
	}
	memcpy(&narrow, at, sizeof narrow);
	*id = narrow;
	return f->kind == 'u' || narrow <= INT32_MAX;
}

bool
npy_ids(
    const char *bytes, size_t length, uint32_t **ids, size_t *count, char *why)
{
	Form f;
	size_t data;
	uint64_t i;

	if (!read_header(bytes, length, &f, &data, why))
		return false;
	if ((length - data) % f.size != 0 ||
	    (length - data) / f.size != f.count)
		return bad(why, "it is cut, or longer than its header says");
	*ids = malloc(f.count ? (size_t)f.count * sizeof **ids : 1);
	if (!*ids)
		return bad(why, "no memory to read it");
	for (i = 0; i < f.count; i++)
		if (!read_id(bytes + data + i * f.size, &f, *ids + i)) {
			free(*ids);
			snprintf(why, NPY_WHY,
			    "element %" PRIu64 " is negative or too large", i);
			return false;
		}
	*count = (size_t)f.count;
	return true;
}
