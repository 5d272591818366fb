/* Weights of a plan, read from a checkpoint into the form that a target's
 * kernels expect. */
#ifndef RUNTIME_WEIGHTS_H
#define RUNTIME_WEIGHTS_H

#include <stdbool.h>

#include "checkpoint.h"
#include "plan_open.h"

/* data[i] is weight i of the plan (64-byte aligned, readable for bytes[i]
 * bytes). It may point into the checkpoint's mapping, so the checkpoint must
 * stay open as long as the weights are used. */
typedef struct Weights {
	void **data;
	uint64_t *bytes;
	uint32_t count;
	uint64_t total;  /* sum of bytes */
	bool other_data; /* the plan was made from other weights */
	void *memory;    /* what weights_free gives back; private */
	uint64_t memory_bytes;
} Weights;

typedef struct WeightProgress {
	void (*call)(void *user, uint64_t done, uint64_t total); /* or NULL */
	void *user;
} WeightProgress;

/* Checks every PlanTensor against c by name, dtype and dims (INGOT_MISMATCH
 * names the tensor and both sides; INGOT_BAD_FILE when c holds only a
 * header), then PlanMeta.layout where it is not 0 (INGOT_MISMATCH), and makes
 * each weight:
 *   - its pieces in order, row ranges of their tensors;
 *   - widened from bf16 or f16 where the weight is f32 and the piece is not;
 *   - mapped (PlanWeight.map) with numerics/arith.h;
 *   - packed as PlanPack i of the target says (runtime/pack.h), or left row
 *     major when plain is set, in which case target is not read. The size must
 *     come out as PlanPack.bytes says (INGOT_BAD_FILE when not).
 * Only one copy is made; sizes are checked before anything is allocated. The
 * plan is verified: its indices, dims and row ranges need no check here. The
 * caller has set the floating-point state (runtime/fp.h). On failure *out is
 * left empty and nothing is held. */
ingot_status weights_bind(const Plan *plan, uint32_t target, Checkpoint *c,
    bool plain, WeightProgress progress, Weights *out, Error *err);
/* Leaves *w empty; an empty one is allowed. */
void weights_free(Weights *w);

#endif
