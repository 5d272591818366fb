#include "pretok.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "pattern.h"
#include "quote.h"
#include "utf8.h"

enum {
	STACK_START = 32 * 1024, /* bytes of the matcher's own stack */
	STACK_MAX = 8 * 1024 * 1024,
	HEAP_MAX = 256 * 1024,  /* KiB */
	MATCH_STEPS = 10000000, /* backtracking of one match, at least */
	STEPS_PER_BYTE = 32     /* and for each byte of the text */
};

/* L: letters; M: what counts as a letter besides. */
#define QWEN(M)                                                                \
	"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}" M "]+"    \
	"|\\p{N}| ?[^\\s\\p{L}" M "\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+"            \
	"|\\s+(?!\\S)|\\s+"

const char pretok_gpt2[] = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+"
			   "| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

static const struct {
	const char *pre, *pattern;
} named[] = {
    {"qwen2", QWEN("")},
    {"qwen35", QWEN("\\p{M}")},
};

const char *
pretok_named(const char *pre)
{
	size_t i;

	for (i = 0; i < sizeof named / sizeof *named; i++)
		if (strcmp(named[i].pre, pre) == 0)
			return named[i].pattern;
	return NULL;
}

static pcre2_code *
compile(const char *pattern, size_t length, int *error, size_t *at)
{
	pcre2_compile_context *context = pcre2_compile_context_create(NULL);
	pcre2_code *code;

	if (!context) {
		*error = PCRE2_ERROR_NOMEMORY;
		return NULL;
	}
	pcre2_set_newline(context, PCRE2_NEWLINE_LF);
	code = pcre2_compile((PCRE2_SPTR)pattern, length,
	    PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, error, at,
	    context);
	pcre2_compile_context_free(context);
	/* Where the system forbids making code, the interpreter serves. */
	if (code)
		(void)pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
	return code;
}

ingot_status
pretok_add(Pretok *p, const char *pattern, size_t length, Error *err)
{
	char *translated, why[128] = "";
	int error = 0;
	size_t n, at = 0;
	Quote q;
	ingot_status s;

	if (p->count == PRETOK_MAX_STAGES)
		return fail(err, INGOT_UNSUPPORTED,
		    "the pre-tokenizer has more than %d patterns",
		    PRETOK_MAX_STAGES);
	s = pattern_translate(pattern, length, &translated, &n, err);
	if (s != INGOT_OK)
		return s;
	p->stages[p->count] = compile(translated, n, &error, &at);
	free(translated);
	if (p->stages[p->count]) {
		p->count++;
		return INGOT_OK;
	}
	pcre2_get_error_message(error, (PCRE2_UCHAR *)why, sizeof why);
	return fail(err, INGOT_UNSUPPORTED,
	    "the pre-tokenizer pattern '%s' does not compile: %s",
	    quote(&q, pattern, length), why);
}

void
pretok_free(Pretok *p)
{
	while (p->count)
		pcre2_code_free(p->stages[--p->count]);
}

ingot_status
pretok_begin(const Pretok *p, PretokScratch *s, Error *err)
{
	if (p->count == 0)
		return INGOT_OK;
	s->match = pcre2_match_data_create(1, NULL);
	s->context = pcre2_match_context_create(NULL);
	s->stack = pcre2_jit_stack_create(STACK_START, STACK_MAX, NULL);
	if (!s->match || !s->context)
		return fail(err, INGOT_NO_MEMORY, "no memory to cut a text");
	pcre2_set_heap_limit(s->context, HEAP_MAX);
	if (s->stack)
		pcre2_jit_stack_assign(s->context, NULL, s->stack);
	return INGOT_OK;
}

void
pretok_end(PretokScratch *s)
{
	pcre2_match_data_free(s->match);
	pcre2_match_context_free(s->context);
	if (s->stack)
		pcre2_jit_stack_free(s->stack);
}

/* A cut of one text: what every level of the recursion shares. */
typedef struct Cut {
	const Pretok *pretok;
	const PretokScratch *scratch;
	PieceFn *piece;
	void *user;
} Cut;

static void
limit_steps(const PretokScratch *s, size_t length)
{
	const size_t most = (UINT32_MAX - MATCH_STEPS) / STEPS_PER_BYTE;

	pcre2_set_match_limit(s->context,
	    MATCH_STEPS +
		STEPS_PER_BYTE * (uint32_t)(length < most ? length : most));
}

/* The first match from start on. */
static int
match_from(const Cut *c, const pcre2_code *code, const char *text,
    size_t length, size_t start)
{
	int n = pcre2_match(code, (PCRE2_SPTR)text, length, start,
	    PCRE2_NO_UTF_CHECK, c->scratch->match, c->scratch->context);

	if (n == PCRE2_ERROR_JIT_STACKLIMIT)
		n = pcre2_match(code, (PCRE2_SPTR)text, length, start,
		    PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, c->scratch->match,
		    c->scratch->context);
	return n;
}

static ingot_status
match_failed(int error, size_t at, Error *err)
{
	char why[128] = "";

	pcre2_get_error_message(error, (PCRE2_UCHAR *)why, sizeof why);
	return fail(err,
	    error == PCRE2_ERROR_NOMEMORY ? INGOT_NO_MEMORY : INGOT_UNSUPPORTED,
	    "the pre-tokenizer pattern gave up at byte %zu of a piece of "
	    "text: %s",
	    at, why);
}

static ingot_status cut_stage(
    const Cut *c, unsigned stage, const char *text, size_t length, Error *err);

/* Hands text[from..to) to the next stage, unless it is empty. */
static ingot_status
cut_next(const Cut *c, unsigned stage, const char *text, size_t from, size_t to,
    Error *err)
{
	if (from == to)
		return INGOT_OK;
	return cut_stage(c, stage + 1, text + from, to - from, err);
}

/* Recursion is as deep as there are stages. */
static ingot_status
cut_stage(
    const Cut *c, unsigned stage, const char *text, size_t length, Error *err)
{
	size_t done = 0, start = 0, from, to, skip;
	const size_t *found = pcre2_get_ovector_pointer(c->scratch->match);
	ingot_status s = INGOT_OK;
	int n;

	if (stage == c->pretok->count)
		return c->piece(c->user, text, length, err);
	while (s == INGOT_OK && start < length) {
		n = match_from(
		    c, c->pretok->stages[stage], text, length, start);
		if (n == PCRE2_ERROR_NOMATCH)
			break;
		if (n < 0)
			return match_failed(n, start, err);
		from = found[0];
		to = found[1];
		skip = 0;
		if (from == to && to < length)
			(void)utf8_char(text + to, &skip);
		s = cut_next(c, stage, text, done, from, err);
		if (s == INGOT_OK)
			s = cut_next(c, stage, text, from, to, err);
		done = to;
		start = from == to && to == length ? length : to + skip;
	}
	if (s == INGOT_OK)
		s = cut_next(c, stage, text, done, length, err);
	return s;
}

ingot_status
pretok_cut(const Pretok *p, const PretokScratch *s, const char *text,
    size_t length, PieceFn *piece, void *user, Error *err)
{
	const Cut c = {p, s, piece, user};

	if (length == 0)
		return INGOT_OK;
	if (p->count == 0)
		return piece(user, text, length, err);
	limit_steps(s, length);
	return cut_stage(&c, 0, text, length, err);
}
