/* Launch order: regions sorted so that each comes after those it reads; among
 * the ready ones, the one whose first op comes first in the model. */
#include <assert.h>

#include "lower.h"

static bool
ready(const Lowered *l, const Region *r, const bool *done)
{
	for (uint32_t i = 0; i < r->n_ops; i++)
		for (int k = 0; k < ops[r->ops[i]->op].inputs; k++) {
			uint32_t p =
			    l->region_of[root_of(r->ops[i]->in[k])->id];

			if (p != NO_REGION && &l->regions[p] != r && !done[p])
				return false;
		}
	return true;
}

static uint32_t
next_region(const Lowered *l, const bool *done)
{
	uint32_t best = NO_REGION;

	for (uint32_t r = 0; r < l->n_regions; r++) {
		if (done[r] || !ready(l, &l->regions[r], done))
			continue;
		if (best == NO_REGION ||
		    l->regions[r].ops[0]->id < l->regions[best].ops[0]->id)
			best = r;
	}
	assert(best != NO_REGION);
	return best;
}

void
schedule(Lowered *l)
{
	Arena *a = l->graph->arena;
	bool *done = arena_array(a, l->n_regions, sizeof *done);
	Region *sorted = arena_array(a, l->n_regions, sizeof *sorted);

	for (uint32_t i = 0; i < l->n_regions; i++) {
		uint32_t r = next_region(l, done);

		done[r] = true;
		sorted[i] = l->regions[r];
	}
	l->regions = sorted;
	for (uint32_t r = 0; r < l->n_regions; r++)
		for (uint32_t i = 0; i < sorted[r].n_ops; i++)
			l->region_of[sorted[r].ops[i]->id] = r;
}
