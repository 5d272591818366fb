/* JSON arrays of objects as tables for people: what a command can print as JSON
 * is built once, and both forms come from it. */
#ifndef COMPILER_TABLE_H
#define COMPILER_TABLE_H

#include <jansson.h>
#include <stdio.h>

typedef struct Column {
	const char *key; /* of each object; arrays are joined with commas */
	const char *title;
} Column;

/* Prints rows with a line of titles; columns of numbers lean right. */
void table_print(
    FILE *out, const json_t *rows, const Column *columns, size_t n);

#endif
