/* For tests of the checkpoint reader: a folder of its own, a little writer of
 * files in it, and checks of what opening them gives. */
#ifndef TESTS_CHECKPOINT_FILES_H
#define TESTS_CHECKPOINT_FILES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../runtime/checkpoint.h"

/* Last: it defines a macro fail. */
#include <cmocka.h>

static char folder[] = "/tmp/unit_checkpoint.XXXXXX";

typedef struct Bytes {
	unsigned char at[8192];
	size_t n;
} Bytes;

static inline void
put(Bytes *b, uint64_t v, int n)
{
	assert_true(b->n + (size_t)n <= sizeof b->at);
	for (; n > 0; n--, v >>= 8)
		b->at[b->n++] = (unsigned char)v;
}

static inline void
put_bytes(Bytes *b, const char *s, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		put(b, (unsigned char)s[i], 1);
}

static inline void
put_string(Bytes *b, const char *s)
{
	put(b, strlen(s), 8);
	put_bytes(b, s, strlen(s));
}

static inline void
put_head(Bytes *b, uint32_t version, uint64_t tensors, uint64_t keys)
{
	b->n = 0;
	put_bytes(b, "GGUF", 4);
	put(b, version, 4);
	put(b, tensors, 8);
	put(b, keys, 8);
}

static inline void
put_key(Bytes *b, const char *key, uint32_t kind)
{
	put_string(b, key);
	put(b, kind, 4);
}

static inline void
put_key_string(Bytes *b, const char *key, const char *value)
{
	put_key(b, key, 8);
	put_string(b, value);
}

/* A tensor of ne0 x ne1. */
static inline void
put_tensor(Bytes *b, const char *name, uint64_t ne0, uint64_t ne1,
    uint32_t type, uint64_t offset)
{
	put_string(b, name);
	put(b, 2, 4);
	put(b, ne0, 8);
	put(b, ne1, 8);
	put(b, type, 4);
	put(b, offset, 8);
}

static inline void
put_padding(Bytes *b, size_t alignment)
{
	while (b->n % alignment)
		put(b, 0, 1);
}

static inline void
put_data(Bytes *b, int n)
{
	int i;

	for (i = 0; i < n; i++)
		put(b, (uint64_t)i, 1);
}

static inline const char *
path_of(const char *name)
{
	static char path[4][256];
	static int turn;

	turn = (turn + 1) % 4;
	snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
	return path[turn];
}

static inline void
write_file(const char *name, const void *bytes, size_t n)
{
	FILE *f = fopen(path_of(name), "wb");

	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
}

static inline void
write_text(const char *name, const char *text)
{
	write_file(name, text, strlen(text));
}

/* A safetensors file with header and n bytes of data. */
static inline void
write_tensors(const char *name, const char *header, int n)
{
	Bytes b = {.n = 0};

	put_string(&b, header);
	put_data(&b, n);
	write_file(name, b.at, b.n);
}

static inline Checkpoint *
open_good(const char *path, bool header_only)
{
	Checkpoint *c = NULL;
	Error e = {0};

	if (ckpt_open(path, header_only, &c, &e))
		fail_msg("%s", e.text);
	assert_non_null(c);
	return c;
}

/* Opening path fails with status and a sentence that has all of words, which
 * end with NULL. */
static inline void
check_refused(const char *path, ingot_status status, ...)
{
	Checkpoint *c = (Checkpoint *)folder;
	Error e = {0};
	const char *word;
	va_list args;

	assert_int_equal(ckpt_open(path, false, &c, &e), status);
	assert_null(c);
	assert_int_equal(e.status, status);
	va_start(args, status);
	while ((word = va_arg(args, const char *)))
		if (!strstr(e.text, word))
			fail_msg("no '%s' in: %s", word, e.text);
	va_end(args);
}

static inline int64_t
integer_of(const Value *o, const char *key)
{
	const Value *v = value_get(o, key);

	assert_non_null(v);
	assert_int_equal(v->kind, VAL_INT);
	return v->u.integer;
}

static inline double
number_of(const Value *o, const char *key)
{
	const Value *v = value_get(o, key);

	assert_non_null(v);
	assert_int_equal(v->kind, VAL_FLOAT);
	return v->u.number;
}

static inline int
set_up(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

static inline int
tear_down(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof command, "rm -rf %s", folder);
	return system(command);
}

#endif
