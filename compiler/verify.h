/* A plan's launches against the oracle. In each step the oracle runs first and
 * its values are kept; then, behind each launch of the device, what the launch
 * made is compared with them. What differs is overwritten with the oracle's, so
 * that every launch is judged on the oracle's inputs and not on the faults of
 * those before it.
 *
 * Compared are the values that leave a launch: its buffers, its logits, and the
 * keys and values that it adds to the cache. Recurrent state is seen in what
 * the same launch makes of it in the next steps, and a write to the cache where
 * there was something already in what the attention makes of that. */
#ifndef COMPILER_VERIFY_H
#define COMPILER_VERIFY_H

#include "difference.h"
#include "oracle.h"

/* The bound of launches whose order of sums is free. */
#define FAST_NMSE 5e-4

typedef enum Verdict {
	VERDICT_STATE,  /* it made nothing that could be compared */
	VERDICT_EQUAL,  /* the same bits */
	VERDICT_WITHIN, /* other bits, but its order is free and they are near
			 */
	VERDICT_DIFFERS
} Verdict;

/* What is known of a launch after some steps. */
typedef struct Judgement {
	Verdict verdict;
	const Difference *worst; /* the part with the largest NMSE, or NULL */
	const Node *node; /* whose value that part is (keys and values: what
			   * was appended) */
} Judgement;

typedef struct Verify Verify;

/* For target of a plan, which outlives it. What the plan says about its buffers
 * is checked against its graph. */
ingot_status verify_new(
    const Plan *plan, uint32_t target, Verify **out, Error *err);
void verify_free(Verify *v);
/* For the model that runs the oracle, whose step comes first, and for the one
 * that runs the launches. Both take the same steps, of the same sequences. */
NodeWatch *verify_oracle_watch(Verify *v);
const LaunchWatch *verify_launch_watch(Verify *v);

Judgement verify_judge(const Verify *v, uint32_t launch);

#endif
