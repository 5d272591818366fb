#include "table.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { CELL = 256 };

/* What stands in the cell of value, which may be NULL. Arrays are of strings
 * and whole numbers. */
static const char *
cell(const json_t *value, char out[CELL])
{
	size_t i, n = 0;

	out[0] = '\0';
	if (json_is_string(value))
		return json_string_value(value);
	if (json_is_integer(value))
		snprintf(out, CELL, "%" JSON_INTEGER_FORMAT,
		    json_integer_value(value));
	if (json_is_real(value))
		snprintf(out, CELL, "%.3g", json_real_value(value));
	for (i = 0; i < json_array_size(value) && n < CELL; i++) {
		const json_t *part = json_array_get(value, i);
		const char *comma = i ? ", " : "";

		n += (size_t)(json_is_integer(part)
				  ? snprintf(out + n, CELL - n,
					"%s%" JSON_INTEGER_FORMAT, comma,
					json_integer_value(part))
				  : snprintf(out + n, CELL - n, "%s%s", comma,
					json_string_value(part)));
	}
	return out;
}

/* Columns of a terminal: continuation bytes take none. */
static int
width(const char *s)
{
	int n = 0;

	for (; *s; s++)
		n += ((unsigned char)*s & 0xC0) != 0x80;
	return n;
}

static int
column_width(const json_t *rows, const Column *c)
{
	char text[CELL];
	int most = width(c->title);
	size_t i;

	for (i = 0; i < json_array_size(rows); i++) {
		const json_t *row = json_array_get(rows, i);
		int n = width(cell(json_object_get(row, c->key), text));

		most = n > most ? n : most;
	}
	return most;
}

/* row NULL: the titles. first tells which columns are numbers. Blanks are owed
 * until something follows, so that no line ends in them. */
static void
print_row(FILE *out, const json_t *row, const json_t *first,
    const Column *columns, const int *room, size_t n)
{
	char text[CELL];
	int owed = 0;
	size_t i;

	for (i = 0; i < n; i++) {
		const char *key = columns[i].key;
		const char *s = row ? cell(json_object_get(row, key), text)
				    : columns[i].title;
		int pad = room[i] - width(s);
		bool right = json_is_number(json_object_get(first, key));

		if (*s)
			fprintf(out, "%*s%s", owed + (right ? pad : 0), "", s);
		owed = *s ? (right ? 0 : pad) : owed + pad;
		owed += 2;
	}
	putc('\n', out);
}

void
table_print(FILE *out, const json_t *rows, const Column *columns, size_t n)
{
	const json_t *first = json_array_get(rows, 0);
	int *room = malloc(n * sizeof *room);
	size_t i;

	if (!room)
		return;
	for (i = 0; i < n; i++)
		room[i] = column_width(rows, &columns[i]);
	print_row(out, NULL, first, columns, room, n);
	for (i = 0; i < json_array_size(rows); i++)
		print_row(
		    out, json_array_get(rows, i), first, columns, room, n);
	free(room);
}
