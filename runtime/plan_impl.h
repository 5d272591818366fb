/* Between plan.c and plan_verify.c. */
#ifndef RUNTIME_PLAN_IMPL_H
#define RUNTIME_PLAN_IMPL_H

#include <stdbool.h>
#include <stddef.h>

#include "plan_open.h"
#include "quote.h"

/* Checks every index, range, size and lifetime in the tables of p. from names
 * the plan in errors. */
ingot_status plan_verify(const Plan *p, const char *from, Error *err);

#endif
