/* An opened plan: every table as a typed array, verified. What plan.c has let
 * through holds all that docs/plan-format.md demands, so readers index without
 * further checks. */
#ifndef RUNTIME_PLAN_OPEN_H
#define RUNTIME_PLAN_OPEN_H

#include "error.h"
#include "mapping.h"
#include "plan.h"

typedef struct ingot_plan {
	Mapping map; /* of a plan opened from a file */
	void *copy;  /* of one read from memory */
	const char *strings;
	const PlanMeta *meta; /* one */
	const PlanTensor *tensors;
	const PlanWeight *weights;
	const PlanPiece *pieces;
	const PlanState *states;
	const PlanTable *tables;
	const char *graph; /* text, n_graph bytes, not terminated */
	const PlanTarget *targets;
	const PlanPack *packs;
	const PlanBuffer *buffers;
	const PlanKernel *kernels;
	const PlanLaunch *launches;
	const PlanArg *args;
	const PlanRegion *regions;
	const char *sources;
	const char *objects;
	uint64_t n_strings, n_meta, n_tensors, n_weights, n_pieces, n_states,
	    n_tables, n_graph, n_targets, n_packs, n_buffers, n_kernels,
	    n_launches, n_args, n_regions, n_sources, n_objects;
} Plan;

static inline const char *
plan_string(const Plan *p, uint32_t offset)
{
	return p->strings + offset;
}

/* Workgroups of l in a step of these counts; verified to fit 32 bits. */
static inline uint32_t
workgroups(const PlanLaunch *l, const StepArgs *s)
{
	const uint32_t value[SYM_COUNT] = {[SYM_ONE] = 1,
	    [SYM_T] = s->tokens,
	    [SYM_R] = s->rows,
	    [SYM_B] = s->seqs};
	uint64_t n = (uint64_t)value[l->sym] * l->mul;

	return (uint32_t)(n / l->div + (n % l->div != 0) + l->add);
}

/* Index of the target called name, or -1. */
int64_t plan_target(const Plan *p, const char *name);

#endif
