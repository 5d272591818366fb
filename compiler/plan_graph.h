/* A drawing of a target's launches and the buffers between them. */
#ifndef COMPILER_PLAN_GRAPH_H
#define COMPILER_PLAN_GRAPH_H

#include "../runtime/plan_open.h"

/* Writes path as SVG through Graphviz. Returns an exit status. */
int plan_graph(const Plan *p, uint32_t target, const char *path);

#endif
