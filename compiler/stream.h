/* Generated text on its way out: whole characters only, and never the start of
 * a stop string that turns out to be one. */
#ifndef COMPILER_STREAM_H
#define COMPILER_STREAM_H

#include "../runtime/tokenizer.h"
#include "options.h"

typedef struct TextStream {
	FILE *out;
	const TextList *stops; /* none of them empty */
	Utf8Stream chars;
	char *held; /* what may be the start of a stop string */
	size_t length, capacity;
	bool stopped;
} TextStream;

typedef enum StreamState {
	STREAM_OPEN,
	STREAM_STOPPED,
	STREAM_NO_MEMORY
} StreamState;

/* Adds the bytes of a token and writes and flushes what is certain. Once it
 * has returned STREAM_STOPPED (a stop string appeared; the text in front of the
 * one that was complete first is out) nothing more is to be added. */
StreamState stream_push(TextStream *s, const char *bytes, size_t length);
/* The end of the text: unless it was stopped, what was held is written; a cut
 * character becomes one U+FFFD. */
StreamState stream_finish(TextStream *s);
void stream_free(TextStream *s);

#endif
