/* What the evaluator's files share. */
#ifndef IR_EVAL_IMPL_H
#define IR_EVAL_IMPL_H

#include "eval.h"

/* Cosines and sines of one (theta, rot), for positions below ctx. */
typedef struct EvalRope {
	double theta;
	uint32_t rot, ctx;
	float *table;
} EvalRope;

struct Eval {
	const Graph *graph;
	EvalOptions o;
	const EvalStep *step;
	float *logits;
	void **value;   /* by node id; owned unless the node is a weight */
	uint32_t *last; /* by node id: its last reader */
	void **state; /* [node id * max_seqs + slot] of a state leaf, or NULL */
	uint32_t *keys; /* like state: keys that fit, where its axis is C */
	EvalRope *ropes;
	uint32_t n_ropes;
};

/* eval_NAME computes the value of n, whose memory is there already, and says
 * whether what it checks is finite. */
#define OP(NAME, name, inputs, KIND, flags)                                    \
	bool eval_##NAME(Eval *e, const Node *n);
#include "ops.def"
#undef OP

/* Zeroed memory; ends the program when there is none, as an arena does. */
void *eval_alloc(uint64_t count, uint64_t size);

/* Rows of a value: what its first axis comes to. */
uint64_t eval_rows(const Eval *e, const Type *t);
/* The value of input i of n. */
const void *eval_in(const Eval *e, const Node *n, int i);

/* State of slot under the state leaf s, [B,..] without its B, fresh at first
 * use. */
float *eval_recurrent(Eval *e, const Node *s, uint32_t slot);
/* Keys 0 .. count-1 of slot, [count,h,D]; those never written are 0. */
void *eval_keys(Eval *e, const Node *s, uint32_t slot, uint32_t count);
/* cos and sin of a position, rot/2 pairs. */
const float *eval_angles(Eval *e, const Attrs *a, uint32_t position);

#endif
