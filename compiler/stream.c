#include "stream.h"

#include <stdlib.h>
#include <string.h>

/* Writes the first n bytes held, and drops them. */
static void
release(TextStream *s, size_t n)
{
	if (n == 0)
		return;
	fwrite(s->held, 1, n, s->out);
	fflush(s->out);
	s->length -= n;
	memmove(s->held, s->held + n, s->length);
}

/* Where stop first appears in what is held; length when it does not. */
static size_t
find(const TextStream *s, const char *stop)
{
	size_t n = strlen(stop), i;

	for (i = 0; i + n <= s->length; i++)
		if (memcmp(s->held + i, stop, n) == 0)
			return i;
	return s->length;
}

/* The longest end of what is held that stop starts with. */
static size_t
overlap(const TextStream *s, const char *stop)
{
	size_t n = strlen(stop);

	if (n > s->length)
		n = s->length;
	while (n > 0 && memcmp(s->held + s->length - n, stop, n) != 0)
		n--;
	return n;
}

/* Of the stop strings that are there, the one that was complete first counts,
 * so that it does not matter how the text came in pieces. */
static StreamState
pass_on(TextStream *s)
{
	size_t i, first = s->length, end = SIZE_MAX, keep = 0;

	for (i = 0; i < s->stops->count; i++) {
		size_t at = find(s, s->stops->at[i]);
		size_t to = at + strlen(s->stops->at[i]);
		size_t n = overlap(s, s->stops->at[i]);

		if (at < s->length && (to < end || (to == end && at < first))) {
			first = at;
			end = to;
		}
		keep = n > keep ? n : keep;
	}
	if (first < s->length) {
		release(s, first);
		s->stopped = true;
		return STREAM_STOPPED;
	}
	release(s, s->length - keep);
	return STREAM_OPEN;
}

/* Room for n bytes more. */
static bool
reserve(TextStream *s, size_t n)
{
	size_t capacity = 2 * (s->length + n);
	char *more;

	if (s->length + n <= s->capacity)
		return true;
	more = realloc(s->held, capacity);
	if (!more)
		return false;
	s->held = more;
	s->capacity = capacity;
	return true;
}

StreamState
stream_push(TextStream *s, const char *bytes, size_t length)
{
	if (!reserve(s, 3 * (length + 4)))
		return STREAM_NO_MEMORY;
	s->length += utf8_push(&s->chars, bytes, length, s->held + s->length);
	return pass_on(s);
}

StreamState
stream_finish(TextStream *s)
{
	StreamState state;

	if (s->stopped)
		return STREAM_STOPPED;
	if (!reserve(s, 12))
		return STREAM_NO_MEMORY;
	s->length += utf8_finish(&s->chars, s->held + s->length);
	state = pass_on(s);
	if (state == STREAM_OPEN)
		release(s, s->length);
	return state;
}

void
stream_free(TextStream *s)
{
	free(s->held);
	s->held = NULL;
}
