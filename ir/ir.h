/* The typed op graph: types, nodes, and the passes over them.
 *
 * A graph is a list of nodes in topological order; a node is one op and its
 * one value. Everything lives in the graph's arena and goes with it.
 */
#ifndef IR_IR_H
#define IR_IR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "../numerics/types.h"
#include "arena.h"

typedef enum Op {
#define OP(NAME, name, inputs, KIND, flags) OP_##NAME,
#include "ops.def"
#undef OP
	OP_COUNT
} Op;

typedef enum OpKind {
	KIND_LEAF,
	KIND_VIEW,
	KIND_POINT,
	KIND_ROW,
	KIND_GATHER,
	KIND_CONTRACT,
	KIND_SEQ
} OpKind;

enum { COMMUTES = 1, EFFECT = 2 };

typedef struct OpInfo {
	const char *name;
	int inputs;
	OpKind kind;
	int flags;
} OpInfo;

extern const OpInfo ops[OP_COUNT];
Op op_by_name(const char *name); /* OP_COUNT when there is none */

typedef uint32_t attr_u32;
typedef float attr_f32;
typedef double attr_f64;
typedef bool attr_flag;

typedef enum AttrType { ATTR_u32, ATTR_f32, ATTR_f64, ATTR_flag } AttrType;

/* All attributes of all ops; a field is meaningful only for the ops that
 * declare it, and 0 elsewhere. */
typedef struct Attrs {
	uint32_t start, count; /* slice */
	uint32_t k;            /* top_k */
	uint32_t rot;          /* rope */
	float factor;          /* scale */
	float eps;             /* rms_norm, l2_norm */
	float scale;           /* attention */
	double theta;          /* rope */
	bool renormalise;      /* route */
	bool tiled;            /* delta_rule */
} Attrs;

/* One declared attribute: which op, what it is called, where it is kept. */
typedef struct AttrInfo {
	Op op;
	const char *name;
	AttrType type;
	size_t offset; /* into Attrs */
	bool required;
} AttrInfo;

extern const AttrInfo attrs[];
extern const size_t attr_count;

/* A dimension is a count, or one of these symbols. */
enum {
	DIM_T = -1, /* tokens of the step */
	DIM_R = -2, /* rows of logits wanted */
	DIM_B = -3, /* sequences */
	DIM_C = -4  /* context */
};

enum { MAX_DIMS = 4, MAX_INPUTS = 6 };

typedef struct Type {
	DType dtype;
	int n_dims;
	int64_t dim[MAX_DIMS]; /* slowest first */
} Type;

typedef struct Node Node;
struct Node {
	Op op;
	uint32_t id; /* position in the graph */
	Type type;
	Node *in[MAX_INPUTS]; /* ops[op].inputs of them */
	Attrs attr;
	const char *name; /* of a leaf; a label elsewhere, or NULL */
	const char *file; /* model file and line that made it, or NULL */
	uint32_t line;
	Node *to; /* scratch for passes: what replaces it */
	uint32_t mark;
};

/* Where a weight's rows come from: the pieces in order make the whole. */
typedef struct WeightPiece {
	const char *tensor; /* name in the checkpoint */
	uint32_t row, rows; /* rows of its [.., K] matrix form taken; row 0 and
			     * rows 0: all of it */
} WeightPiece;

typedef enum WeightMap {
	MAP_NONE,     /* as stored */
	MAP_ONE_PLUS, /* 1 + w, rounded once */
	MAP_NEG_EXP   /* -exp(w) */
} WeightMap;

/* What a weight leaf stands for. Its dtype is that of the pieces' tensors, or
 * f32 where they are f16 or bf16: then the values are widened at load, which is
 * exact, before they are mapped. */
typedef struct Weight {
	const char *name; /* equals the node's name */
	Type type;        /* constant dims only */
	WeightMap map;    /* other than MAP_NONE: the result is f32 */
	uint32_t n_pieces;
	WeightPiece *pieces;
} Weight;

typedef struct Graph {
	Arena *arena;
	Node **nodes;
	uint32_t count, capacity;
	Weight *weights;
	uint32_t n_weights, cap_weights;
	Node *result;      /* logits, f32 [R, vocab] */
	const char *arch;  /* architecture name */
	const char *model; /* the model file that built it, or NULL; no part
			    * of the text form */
	uint32_t vocab;    /* columns of the result */
	uint32_t ctx;      /* trained context */
} Graph;

/* ---- building ---- */

Graph *graph_new(Arena *a);
/* Adds a node after checking and inferring its type. On a mistake NULL is
 * returned and why (at least 512 bytes) holds the sentence, naming op, shapes
 * and dtypes. type is read for ops whose result cannot be inferred alone: the
 * leaves, reshape (dims) and cast (dtype); NULL elsewhere. */
Node *graph_add(Graph *g, Op op, Node *const *in, const Attrs *attr,
    const Type *type, const char *name, char *why);
/* The weight called name, or NULL. */
const Weight *graph_weight(const Graph *g, const char *name);
/* Adds w (copied, pieces and strings too); its leaf is added by graph_add. */
void graph_add_weight(Graph *g, const Weight *w);

bool type_equal(const Type *a, const Type *b);
/* Elements of the axes behind the first. */
uint64_t type_row(const Type *t);
/* Product of all axes; only for types without symbols. */
uint64_t type_count(const Type *t);
/* "f32[T,4,64]" into out, which holds TYPE_TEXT bytes. Returns out. */
enum { TYPE_TEXT = 96 };
char *type_text(const Type *t, char *out);

/* Type of op applied to in: the rule of ops.def. See graph_add. */
bool infer(Op op, Node *const *in, const Attrs *attr, Type *type, char *why);

/* ---- passes: each needs a verified graph and leaves one ---- */

/* Checks everything a pass may rely on: order, arity, types equal to what
 * infer gives, leaves named once, one append or scan a state, result typed.
 * Returns NULL, or the sentence that says what is wrong. Overwrites marks. */
const char *verify(const Graph *g);
/* Rewrites that keep bits: casts to the same type, reshapes of reshapes or to
 * the same shape, slices of slices or of everything. */
void simplify(Graph *g);
/* Merges nodes that compute the same; effects are left alone. */
void cse(Graph *g);
/* Drops nodes that neither the result nor an effect needs, and weights that no
 * node reads. */
void dce(Graph *g);

/* Quantises the f32 operand of every linear and experts whose weight is
 * quantised: one quantise node per operand. Before it such a pair is a valid
 * graph, but not one that can run. */
void legalise(Graph *g);

/* Marks uses: node->mark = number of readers, the result counting as one. */
void count_uses(const Graph *g);

/* ---- text ---- */

void graph_print(const Graph *g, FILE *out);
/* Parses what graph_print wrote. NULL and a sentence with the line number in
 * why (512 bytes) when text is not that. */
Graph *graph_parse(Arena *a, const char *text, size_t length, char *why);

#endif
