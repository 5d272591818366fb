/* The toy model (tests/toy_plan.h) opened for tests: a checkpoint and weights
 * that are not there, allocations that can be counted and refused, a backend
 * from outside, and what the logits should be. Link with --wrap of malloc,
 * calloc, realloc and mmap, and without runtime/checkpoint.c, weights.c and
 * text.c. */
#ifndef TESTS_TOY_SESSION_H
#define TESTS_TOY_SESSION_H

#include <stdbool.h>

#include "../runtime/ingot.h"
#include "toy_function.h"
#include "toy_plan.h"

enum { MAX_SLOTS = 8 };

/* How a session computes: on this thread, on three, or in the backend from
 * outside. */
enum { CPU, CPU_THREADS, OUTSIDE, KINDS };

typedef struct Toy {
	ingot_plan *plan;
	ingot_model *model;
	ingot_session *s;
} Toy;

/* What a sequence should hold. */
typedef struct Shadow {
	bool exists;
	uint32_t length;
	uint32_t tokens[TOY_CTX];
} Shadow;

extern int ckpt_is_open;     /* checkpoints that are open */
extern unsigned allocations; /* so far */
extern unsigned refuse_from; /* the number of the first refused one, or 0 */

/* Takes the paths of the objects of tests/toy_kernels.c, built with TOY_SHIFT
 * 0 and 1, from the command line. */
void toy_main(int argc, char **argv);
/* The plan with one of the objects. */
ingot_plan *toy_open(int which);
Toy toy_session(int kind, uint32_t max_seqs, uint32_t max_rows);
void toy_close(Toy *t);

uint32_t next_random(uint64_t *seed);
/* Any token but those that fail. */
uint32_t random_token(uint64_t *seed);
/* Row is what a sequence gives that holds n tokens. */
void assert_row(Toy *t, uint32_t row, const uint32_t *history, uint32_t n);
/* A step of one sequence, which must succeed. */
void step_one(
    Toy *t, uint32_t seq, const uint32_t *tokens, uint32_t n, ingot_want want);

#endif
