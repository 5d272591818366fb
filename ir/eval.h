/* The oracle: the slow, obvious evaluator that defines every op.
 *
 * It obeys docs/numerics.md to the bit and knows nothing of regions, layouts,
 * pages or threads. */
#ifndef IR_EVAL_H
#define IR_EVAL_H

#include "ir.h"

/* The tokens of one sequence in a step: rows first .. first+count-1, at
 * positions start .. start+count-1. slot names its state. */
typedef struct EvalSeq {
	uint32_t slot, first, count, start;
} EvalSeq;

typedef struct EvalStep {
	uint32_t n_tokens;
	const uint32_t *tokens; /* [n_tokens] */
	uint32_t n_seqs;
	const EvalSeq *seqs; /* [n_seqs], covering the rows in order */
	uint32_t n_rows;
	const uint32_t *rows; /* [n_rows] rows whose logits are wanted */
} EvalStep;

typedef struct EvalOptions {
	uint32_t ctx, max_seqs;
	/* The data of a weight, row major in its type; outlives the Eval. */
	const void *(*weight)(void *user, const Weight *w);
	/* Called after each node but states and appends with its value, when
	 * not NULL; rows is what its symbolic axis came to (the product of all
	 * axes for others). */
	void (*watch)(
	    void *user, const Node *n, const void *value, uint64_t rows);
	void *user;
} EvalOptions;

typedef struct Eval Eval;

/* g must be verified, legalised, and outlive the Eval. */
Eval *eval_new(const Graph *g, const EvalOptions *o);
void eval_free(Eval *e);
/* One forward pass; a sequence that starts at position 0 finds its slot fresh.
 * logits gets [n_rows, vocab]. Returns NULL, or the node whose value was first
 * found not finite (a norm's sum of squares, a quantised row, the logits); the
 * state of the step's sequences is undefined then. */
const Node *eval_step(Eval *e, const EvalStep *s, float *logits);
/* State of slot to becomes that of slot from; clearing makes it fresh. */
void eval_copy(Eval *e, uint32_t from, uint32_t to, uint32_t length);
void eval_clear(Eval *e, uint32_t slot);

#endif
