/* What the files of ir/ share among themselves. */
#ifndef IR_IR_IMPL_H
#define IR_IR_IMPL_H

#include "ir.h"

enum { WHY_BYTES = 512 };

/* How a WeightMap is spelled in text; NULL for MAP_NONE. */
extern const char *const weight_maps[];
enum { WEIGHT_MAPS = MAP_NEG_EXP + 1 };

size_t attr_bytes(AttrType t);
/* Equal to the bit in what op declares. */
bool attrs_equal(Op op, const Attrs *a, const Attrs *b);

/* The leaf called name may have this type in g; otherwise why says what is
 * wrong. Weights are looked up only when g has them already. */
bool check_leaf(
    const Graph *g, Op op, const char *name, const Type *type, char *why);

/* Puts n at the end, giving it its id. */
void graph_push(Graph *g, Node *n);
/* Before a pass that replaces nodes: every node stands for itself. */
void graph_reset(Graph *g);
/* Reads n's inputs through Node.to. */
void node_redirect(Node *n);

#endif
