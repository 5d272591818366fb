/* For tests of the tokenizer: checkpoints made of JSON text, so that no files
 * are written. */
#ifndef TESTS_MADE_CHECKPOINT_H
#define TESTS_MADE_CHECKPOINT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../runtime/checkpoint_impl.h"
#include "../runtime/tokenizer.h"

/* Last: it defines a macro fail. */
#include <cmocka.h>

/* A checkpoint, and what opening its tokenizer gave. */
typedef struct Made {
	Checkpoint c;
	CkptJson files[3];
	Tokenizer *t;
	Error err;
} Made;

static inline const Value *
parse(Pool *pool, const char *text, size_t length)
{
	const Value *v = NULL;
	Error err = {0};

	if (json_read(pool, "test.json", text, length, &v, &err))
		fail_msg("%s: %.80s", err.text, text);
	return v;
}

static inline char *
read_file(const char *path, size_t *length)
{
	FILE *f = fopen(path, "rb");
	char *text;

	if (!f)
		fail_msg("cannot read %s", path);
	fseek(f, 0, SEEK_END);
	*length = (size_t)ftell(f);
	rewind(f);
	text = malloc(*length + 1);
	assert_non_null(text);
	assert_int_equal(fread(text, 1, *length, f), *length);
	text[*length] = '\0';
	fclose(f);
	return text;
}

static inline const Value *
parse_file(Pool *pool, const char *path)
{
	size_t length;
	char *text = read_file(path, &length);
	const Value *v = parse(pool, text, length);

	free(text);
	return v;
}

static inline void
make_gguf(Made *m, const char *json)
{
	memset(m, 0, sizeof *m);
	m->c.kind = CKPT_GGUF;
	m->c.path = "made.gguf";
	m->c.config = parse(&m->c.pool, json, strlen(json));
}

/* A folder with these files; NULL for one that is not there. */
static inline void
make_folder(Made *m, const Value *tokenizer, const char *config,
    const char *generation, const char *tokenizer_config)
{
	static const char *const names[] = {"tokenizer.json",
	    "generation_config.json", "tokenizer_config.json"};
	const char *const texts[] = {NULL, generation, tokenizer_config};
	size_t i;

	m->c.kind = CKPT_FOLDER;
	m->c.path = "made";
	m->c.config = parse(&m->c.pool, config, strlen(config));
	for (i = 0; i < 3; i++) {
		m->files[i].file = names[i];
		m->files[i].next = i < 2 ? &m->files[i + 1] : NULL;
		if (texts[i])
			m->files[i].value =
			    parse(&m->c.pool, texts[i], strlen(texts[i]));
	}
	m->files[0].value = tokenizer;
	m->c.json = m->files;
}

static inline void
open_made(Made *m)
{
	if (tok_open(&m->c, &m->t, &m->err))
		fail_msg("%s", m->err.text);
	assert_non_null(m->t);
}

static inline void
drop(Made *m)
{
	tok_close(m->t);
	pool_free(&m->c.pool);
}

#endif
