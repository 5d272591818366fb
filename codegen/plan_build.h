/* The parts of a plan that come from a graph and from emitted kernels. */
#ifndef CODEGEN_PLAN_BUILD_H
#define CODEGEN_PLAN_BUILD_H

#include "emit.h"
#include "plan_write.h"
#include "toolchain.h"

/* States, tables and the graph's text. */
void plan_add_graph(PlanWriter *pw, Graph *g);
/* One target: buffers, kernels, launches, their text and object code.
 * first_pack is the index of the first of its PlanPacks, one for each weight.
 */
void plan_add_target(
    PlanWriter *pw, const Emitted *e, const ToolResult *o, uint32_t first_pack);
/* The whole source of a target: prelude and kernels. */
const char *target_source(const Emitted *e, size_t *length);

#endif
