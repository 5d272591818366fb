/* Which weights are packed for the target's kernels. */
#include <string.h>

#include "lower.h"

bool
is_packed(const Graph *g, const Weight *w)
{
	for (uint32_t i = 0; i < g->count; i++) {
		const Node *n = g->nodes[i], *table;

		if (n->op != OP_EMBED && n->op != OP_LINEAR &&
		    n->op != OP_EXPERTS)
			continue;
		table = n->in[n->op == OP_EMBED ? 0 : 1];
		if (strcmp(table->name, w->name) == 0)
			return true;
	}
	return false;
}
