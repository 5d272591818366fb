/* What is in a plan, as JSON. */
#ifndef COMPILER_PLAN_JSON_H
#define COMPILER_PLAN_JSON_H

#include <jansson.h>

#include "../runtime/plan_open.h"

/* The n bytes at s as a JSON string. What is no UTF-8, or could play tricks on
 * a terminal, is '?' there: names in checkpoints and plans are mere bytes. */
json_t *json_shown(const char *s, size_t n);

/* Each returns a new reference; t is the index of a target. Objects about a
 * target name it, so that those of several can stand in one array. */

/* Facts about the whole, and its targets. */
json_t *plan_summary(const Plan *p);
/* One object a launch, in order: what it computes and why no more. */
json_t *plan_launches(const Plan *p, uint32_t t);
/* One object a kernel. */
json_t *plan_kernels(const Plan *p, uint32_t t);
/* One object a buffer: bytes and lifetime. */
json_t *plan_buffers(const Plan *p, uint32_t t);
/* Bytes that the target needs for each token and each row of logits of a step,
 * and for its weights. */
json_t *plan_arenas(const Plan *p, uint32_t t);
/* One object a state. */
json_t *plan_states(const Plan *p);

const PlanKernel *launch_kernel(
    const Plan *p, const PlanTarget *t, const PlanLaunch *l);

#endif
