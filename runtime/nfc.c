#include "nfc.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "utf8.h"

/* No canonical decomposition has more characters (U+1F82 has 4). */
enum { MAX_DECOMPOSED = 4 };

static const utf8proc_option_t form_c =
    (utf8proc_option_t)(UTF8PROC_STABLE | UTF8PROC_COMPOSE);

bool
nfc_trivial(const char *text, size_t length)
{
	size_t i;

	/* 0xCC leads U+0300 to U+033F. */
	for (i = 0; i < length; i++)
		if ((unsigned char)text[i] >= 0xCC)
			return false;
	return true;
}

static size_t
count_chars(const char *text, size_t length)
{
	size_t i, n = 0;

	for (i = 0; i < length; i++)
		n += ((unsigned char)text[i] & 0xC0) != 0x80;
	return n;
}

static unsigned
combining_class(utf8proc_int32_t c)
{
	return (unsigned)utf8proc_get_property(c)->combining_class;
}

/* Sorts a run of combining characters by class, stably, by counting. The
 * library's own ordering swaps neighbours: a long run would take quadratic
 * time. */
static void
sort_run(utf8proc_int32_t *run, size_t length, utf8proc_int32_t *scratch)
{
	size_t start[257] = {0}, i;

	for (i = 0; i < length; i++)
		start[combining_class(run[i]) + 1]++;
	for (i = 1; i < 257; i++)
		start[i] += start[i - 1];
	for (i = 0; i < length; i++)
		scratch[start[combining_class(run[i])]++] = run[i];
	memcpy(run, scratch, length * sizeof *run);
}

/* Puts s into canonical order. scratch has the same size. */
static void
order(utf8proc_int32_t *s, size_t length, utf8proc_int32_t *scratch)
{
	size_t i = 0, first;
	unsigned class, last;
	bool sorted;

	while (i < length) {
		last = 0;
		sorted = true;
		for (first = i; i < length; i++) {
			class = combining_class(s[i]);
			if (class == 0)
				break;
			sorted = sorted && last <= class;
			last = class;
		}
		if (!sorted)
			sort_run(s + first, i - first, scratch);
		i++;
	}
}

/* Writes the decomposition of text, at most capacity characters, and returns
 * its length, or capacity + 1 when the library asks for more. */
static size_t
decompose(
    const char *text, size_t length, utf8proc_int32_t *out, size_t capacity)
{
	size_t i, n = 0, bytes;
	utf8proc_ssize_t made;
	int bound = 0;

	for (i = 0; i < length; i += bytes) {
		made = utf8proc_decompose_char(
		    (utf8proc_int32_t)utf8_char(text + i, &bytes), out + n,
		    (utf8proc_ssize_t)(capacity - n), form_c, &bound);
		if (made < 0 || (size_t)made > capacity - n)
			return capacity + 1;
		n += (size_t)made;
	}
	return n;
}

ingot_status
nfc_text(
    const char *text, size_t length, char **out, size_t *out_length, Error *err)
{
	size_t capacity = count_chars(text, length) * MAX_DECOMPOSED, n;
	utf8proc_int32_t *s = NULL, *scratch = NULL;
	utf8proc_ssize_t made = -1;

	if (capacity < SIZE_MAX / sizeof *s)
		s = malloc((capacity + 1) * sizeof *s);
	if (!s)
		return fail(err, INGOT_NO_MEMORY,
		    "no memory to normalise a text of %zu bytes", length);
	n = decompose(text, length, s, capacity);
	scratch = malloc((n + 1) * sizeof *scratch);
	if (scratch && n <= capacity) {
		order(s, n, scratch);
		made = utf8proc_reencode(s, (utf8proc_ssize_t)n, form_c);
	}
	free(scratch);
	if (made < 0) {
		free(s);
		return fail(err, INGOT_NO_MEMORY,
		    "no memory to normalise a text of %zu bytes", length);
	}
	*out = (char *)s;
	*out_length = (size_t)made;
	return INGOT_OK;
}
