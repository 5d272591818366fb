#include "quote.h"

#include <string.h>
#include <utf8proc.h>

/* Bytes of the visible character at text, or 0. */
static size_t
visible(const char *text, size_t length)
{
	utf8proc_int32_t c;
	utf8proc_ssize_t n = utf8proc_iterate((const utf8proc_uint8_t *)text,
	    length > 4 ? 4 : (utf8proc_ssize_t)length, &c);

	if (n <= 0)
		return 0;
	switch (utf8proc_category(c)) {
	case UTF8PROC_CATEGORY_CC:
	case UTF8PROC_CATEGORY_CF:
	case UTF8PROC_CATEGORY_ZL:
	case UTF8PROC_CATEGORY_ZP:
		return 0;
	default:
		return (size_t)n;
	}
}

/* Never writes more bytes than it reads. */
static char *
clean(char *out, const char *text, size_t length)
{
	size_t i, n;

	for (i = 0; i < length; i += n) {
		n = visible(text + i, length - i);
		if (n)
			memcpy(out, text + i, n);
		else
			*out = '?';
		out += n ? n : 1;
		n = n ? n : 1;
	}
	return out;
}

const char *
quote(Quote *q, const char *text, size_t length)
{
	const size_t half = (QUOTE_TEXT - sizeof "...") / 2;
	char *end;

	if (length < QUOTE_TEXT) {
		end = clean(q->text, text, length);
	} else {
		end = clean(q->text, text, half);
		memcpy(end, "...", 3);
		end = clean(end + 3, text + length - half, half);
	}
	*end = '\0';
	return q->text;
}

bool
is_printable(const char *text, size_t length)
{
	size_t i, n;

	for (i = 0; i < length; i += n) {
		n = visible(text + i, length - i);
		if (!n)
			return false;
	}
	return true;
}
