/* Reading msgpack, the form of the notes in AMD's code objects. */
#ifndef CODEGEN_MSGPACK_H
#define CODEGEN_MSGPACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What is left to read. bad is set by the first thing that is cut off or not
 * what was asked for, and stays; every read gives 0 from then on. */
typedef struct Msg {
	const unsigned char *at, *end;
	bool bad;
} Msg;

/* Values that follow: of an array, or pairs of a map. Not more than bytes are
 * left, so a loop over them ends. */
uint32_t msg_array(Msg *m);
uint32_t msg_map(Msg *m);
/* A number that is not negative. */
uint64_t msg_uint(Msg *m);
/* Text of *length bytes in place, without a 0; "" when bad. */
const char *msg_text(Msg *m, size_t *length);
/* Passes over a value, whatever it is. */
void msg_skip(Msg *m);

#endif
