#include "utf8.h"

#include <string.h>

#include "tokenizer.h"

/* Length of the character that starts with b, or 0 when none does. */
static unsigned
lead_length(unsigned char b)
{
	if (b < 0x80)
		return 1;
	if (b < 0xC2)
		return 0;
	if (b < 0xE0)
		return 2;
	if (b < 0xF0)
		return 3;
	return b < 0xF5 ? 4 : 0;
}

/* Whether b may stand at position at >= 1 of a character that starts with
 * lead (Unicode, table 3-7: no overlong forms, surrogates, or > U+10FFFF). */
static bool
continues(unsigned char lead, unsigned at, unsigned char b)
{
	unsigned low = 0x80, high = 0xBF;

	if (at == 1) {
		if (lead == 0xE0)
			low = 0xA0;
		else if (lead == 0xED)
			high = 0x9F;
		else if (lead == 0xF0)
			low = 0x90;
		else if (lead == 0xF4)
			high = 0x8F;
	}
	return b >= low && b <= high;
}

size_t
utf8_valid(const char *text, size_t length)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t i = 0;
	unsigned n, at;

	while (i < length) {
		n = lead_length(s[i]);
		if (n == 0 || n > length - i)
			return i;
		for (at = 1; at < n; at++)
			if (!continues(s[i], at, s[i + at]))
				return i;
		i += n;
	}
	return length;
}

uint32_t
utf8_char(const char *text, size_t *bytes)
{
	const unsigned char *s = (const unsigned char *)text;
	unsigned n = lead_length(s[0]), at;
	uint32_t c;

	*bytes = n;
	if (n == 1)
		return s[0];
	c = s[0] & (0x7FU >> n);
	for (at = 1; at < n; at++)
		c = c << 6 | (s[at] & 0x3FU);
	return c;
}

bool
utf8_is_space(uint32_t c)
{
	return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 ||
	       c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) ||
	       c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
	       c == 0x3000;
}

/* ---- streaming ---- */

static size_t
put_replacement(char *out)
{
	memcpy(out, "\xEF\xBF\xBD", 3);
	return 3;
}

/* Takes a byte that starts a character, or that can start none. */
static size_t
push_first(Utf8Stream *s, unsigned char b, char *out)
{
	unsigned n = lead_length(b);

	if (n == 0)
		return put_replacement(out);
	if (n == 1) {
		*out = (char)b;
		return 1;
	}
	s->held[0] = b;
	s->count = 1;
	return 0;
}

static size_t
push_byte(Utf8Stream *s, unsigned char b, char *out)
{
	unsigned n;

	if (s->count == 0)
		return push_first(s, b, out);
	if (!continues(s->held[0], s->count, b)) {
		s->count = 0;
		return put_replacement(out) + push_first(s, b, out + 3);
	}
	s->held[s->count++] = b;
	n = s->count;
	if (n < lead_length(s->held[0]))
		return 0;
	memcpy(out, s->held, n);
	s->count = 0;
	return n;
}

size_t
utf8_push(Utf8Stream *s, const char *bytes, size_t length, char *out)
{
	size_t i, n = 0;

	for (i = 0; i < length; i++)
		n += push_byte(s, (unsigned char)bytes[i], out + n);
	return n;
}

size_t
utf8_finish(Utf8Stream *s, char *out)
{
	if (s->count == 0)
		return 0;
	s->count = 0;
	return put_replacement(out);
}
