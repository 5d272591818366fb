#include "lower.h"

Lowered *
lower(Graph *g, const Target *t, const LowerOptions *o, Diag *d)
{
	Lowered *l = arena_alloc(g->arena, sizeof *l);
	const char *fault;

	l->graph = g;
	l->target = t;
	fuse(l, o);
	schedule(l);
	plan_memory(l);
	fault = check_memory(l);
	if (fault)
		err(d, 70, NULL, "the memory plan is wrong: %s", fault);
	return l;
}
