/* How much a session may be asked for, and how many bytes it then takes. Who
 * opens a session reserves what is said here; who wants to know before, with
 * the plan alone, asks the same functions.
 *
 * A size that does not fit 64 bits is UINT64_MAX. */
#ifndef RUNTIME_FOOTPRINT_H
#define RUNTIME_FOOTPRINT_H

#include "backend.h"

/* Fills in all but the pointers of *l from the options, which are complete
 * (runtime/options.h). INGOT_BAD_ARG for what no session of the plan can be. */
ingot_status session_limits(const PlanMeta *meta,
    const ingot_session_options *o, BackendLimits *l, Error *err);
/* The largest ctx that a session may have. */
uint32_t session_most_ctx(const PlanMeta *meta);

/* Bytes that the target's activations take for one of sym. */
uint64_t arena_row_bytes(const Plan *p, const PlanTarget *t, uint32_t sym);
uint64_t arena_bytes(
    const Plan *p, const PlanTarget *t, uint32_t sym, const BackendLimits *l);
uint64_t state_bytes(const PlanState *s, const BackendLimits *l);
uint64_t table_bytes(const PlanTable *t, const BackendLimits *l);
/* Of input IN_...; 0 for IN_BLOCKS, which is the session's. */
uint64_t input_bytes(int input, const BackendLimits *l);
uint64_t logits_bytes(const PlanMeta *meta, const BackendLimits *l);

typedef struct Footprint {
	uint64_t weights; /* as the target packs them */
	uint64_t kv;      /* the cache, every sequence at full length */
	uint64_t state;   /* what else a sequence carries from step to step */
	uint64_t
	    scratch; /* all else: activations, tables, inputs, logits ... */
	uint64_t total;
} Footprint;

/* A session with these limits, and its model's weights. */
Footprint footprint(const Plan *p, const PlanTarget *t, const BackendLimits *l);

#endif
