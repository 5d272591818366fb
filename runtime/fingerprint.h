/* What tells one checkpoint from another. */
#ifndef RUNTIME_FINGERPRINT_H
#define RUNTIME_FINGERPRINT_H

#include "checkpoint.h"

/* XXH64 of everything that a plan depends on beside the data: the
 * configuration (without what only describes it or its tokenizer) and the
 * name, type and shape of every tensor. */
uint64_t fingerprint_layout(const Checkpoint *c);

/* XXH64 of a few bytes of each tensor, never 0; 0 when c has no data. Two
 * checkpoints with the same layout and other weights differ in it. */
uint64_t fingerprint_data(const Checkpoint *c);

#endif
