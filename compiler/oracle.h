/* The oracle as a backend: a plan's graph, run by ir/eval.h. The plan needs no
 * target. */
#ifndef COMPILER_ORACLE_H
#define COMPILER_ORACLE_H

#include "../ir/ir.h"
#include "../runtime/backend.h"

/* Called in each step with each f32 value that the model has labelled. */
typedef struct OracleWatch {
	void (*call)(void *user, const char *label, const float *value,
	    uint64_t rows, uint64_t columns);
	void *user;
} OracleWatch;

/* watch may be NULL; it outlives the model. */
BackendFactory oracle_factory(OracleWatch *watch);

/* Called in each step with the value of each node but states and appends, as
 * EvalOptions.watch. Nodes are those of oracle_graph, by id. */
typedef struct NodeWatch {
	void (*call)(
	    void *user, const Node *n, const void *value, uint64_t rows);
	void *user;
} NodeWatch;

/* watch outlives the model. */
BackendFactory oracle_factory_nodes(NodeWatch *watch);

/* The graph of a plan, ready to run, in a. */
ingot_status oracle_graph(
    Arena *a, const Plan *plan, const Graph **out, Error *err);

#endif
