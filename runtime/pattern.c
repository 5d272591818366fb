#include "pattern.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "quote.h"

/* The characters of White_Space, as the inside of a class. */
#define SPACES                                                                 \
	"\\x09-\\x0d\\x20\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}"           \
	"\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}"

enum {
	MAX_PATTERN = 4096,
	/* The longest text that one byte of a pattern can become. */
	MAX_GROWTH = sizeof "[^" SPACES "]"
};

typedef struct Translation {
	const char *in;
	size_t length, at;
	char *out;
	size_t n;
	bool in_class;
} Translation;

/* Byte i places ahead, or NUL behind the end. */
static char
peek(const Translation *t, size_t i)
{
	return t->at + i < t->length ? t->in[t->at + i] : '\0';
}

static void
emit(Translation *t, const char *text, size_t length)
{
	memcpy(t->out + t->n, text, length);
	t->n += length;
}

static void
emit_text(Translation *t, const char *text)
{
	emit(t, text, strlen(text));
}

/* Copies count bytes. */
static void
copy(Translation *t, size_t count)
{
	emit(t, t->in + t->at, count);
	t->at += count;
}

static ingot_status
refuse(const Translation *t, size_t count, Error *err)
{
	Quote part, whole;

	if (count > t->length - t->at)
		count = t->length - t->at;
	return fail(err, INGOT_UNSUPPORTED,
	    "the pre-tokenizer pattern '%s' uses '%s' at byte %zu, which is "
	    "not covered",
	    quote(&whole, t->in, t->length), quote(&part, t->in + t->at, count),
	    t->at);
}

static void
space(Translation *t, bool negated)
{
	if (t->in_class) {
		emit_text(t, negated ? "\\S\\x{180E}" : SPACES);
	} else {
		emit_text(t, negated ? "[^" SPACES "]" : "[" SPACES "]");
	}
	t->at += 2;
}

/* \p{L}, \P{Lu}: general categories only; scripts and other properties are
 * not the same sets in both. */
static ingot_status
property(Translation *t, Error *err)
{
	size_t n;

	for (n = 3; isalpha((unsigned char)peek(t, n)) && n < 6; n++)
		;
	if (peek(t, 2) != '{' || peek(t, n) != '}' || n < 4 || n > 5)
		return refuse(t, n + 1, err);
	copy(t, n + 1);
	return INGOT_OK;
}

static ingot_status
escape(Translation *t, Error *err)
{
	char c = peek(t, 1);

	if (c == 's' || c == 'S') {
		space(t, c == 'S');
		return INGOT_OK;
	}
	if (c == 'p' || c == 'P')
		return property(t, err);
	if (c == 'x' && peek(t, 2) != '{')
		return refuse(t, 2, err);
	if (!c || (!strchr("rntfdDx", c) && !ispunct((unsigned char)c)))
		return refuse(t, 2, err);
	copy(t, 2);
	return INGOT_OK;
}

/* "(": a plain group, or one of the kinds that mean the same. */
static ingot_status
group(Translation *t, Error *err)
{
	static const char *const known[] = {
	    "(?:", "(?i:", "(?=", "(?!", "(?>", "(?<=", "(?<!"};
	size_t i, n;

	if (peek(t, 1) == '*')
		return refuse(t, 2, err);
	if (peek(t, 1) != '?') {
		copy(t, 1);
		return INGOT_OK;
	}
	for (i = 0; i < sizeof known / sizeof *known; i++) {
		n = strlen(known[i]);
		if (n <= t->length - t->at &&
		    memcmp(t->in + t->at, known[i], n) == 0) {
			copy(t, n);
			return INGOT_OK;
		}
	}
	return refuse(t, 3, err);
}

static ingot_status
class_open(Translation *t, Error *err)
{
	size_t n = peek(t, 1) == '^' ? 2 : 1;

	if (peek(t, n) == ']')
		return refuse(t, n + 1, err);
	t->in_class = true;
	copy(t, n);
	return INGOT_OK;
}

/* One element inside [ ]. */
static ingot_status
class_element(Translation *t, Error *err)
{
	char c = peek(t, 0);

	if (c == '\\')
		return escape(t, err);
	if (c == '[' || (c == '&' && peek(t, 1) == '&'))
		return refuse(t, 2, err);
	t->in_class = c != ']';
	copy(t, 1);
	return INGOT_OK;
}

static ingot_status
element(Translation *t, Error *err)
{
	char c = peek(t, 0);

	if (t->in_class)
		return class_element(t, err);
	switch (c) {
	case '\\':
		return escape(t, err);
	case '(':
		return group(t, err);
	case '[':
		return class_open(t, err);
	case '^':
	case '$':
		return refuse(t, 1, err);
	case '{':
		if (!isdigit((unsigned char)peek(t, 1)))
			return refuse(t, 2, err);
		break;
	case '}':
		if (peek(t, 1) == '+')
			return refuse(t, 2, err);
		break;
	default:
		break;
	}
	copy(t, 1);
	return INGOT_OK;
}

ingot_status
pattern_translate(const char *pattern, size_t length, char **out,
    size_t *out_length, Error *err)
{
	Translation t = {.in = pattern, .length = length};
	ingot_status s = INGOT_OK;

	if (length > MAX_PATTERN)
		return fail(err, INGOT_UNSUPPORTED,
		    "the pre-tokenizer pattern has %zu bytes, more than %d",
		    length, MAX_PATTERN);
	t.out = malloc(length * MAX_GROWTH + 1);
	if (!t.out)
		return fail(err, INGOT_NO_MEMORY,
		    "no memory for the pre-tokenizer pattern");
	while (s == INGOT_OK && t.at < length)
		s = element(&t, err);
	if (s != INGOT_OK) {
		free(t.out);
		return s;
	}
	t.out[t.n] = '\0';
	*out = t.out;
	*out_length = t.n;
	return INGOT_OK;
}
