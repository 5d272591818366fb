/* Emitting kernels: one file per family over the pieces declared here.
 *
 * A kernel's text names values after their ops and weights after the model's
 * names without the layer, so equal regions of different layers give equal
 * text and share one kernel. */
#ifndef CODEGEN_EMIT_H
#define CODEGEN_EMIT_H

#include "../lower/lower.h"
#include "../runtime/plan.h"
#include "text.h"

enum { MAX_ARGS = 64, NAME_TEXT = 48 };

/* What a kernel's pointer argument stands for. */
typedef struct Arg {
	uint32_t kind;    /* ARG_... of plan.h */
	const Node *node; /* buffer, weight, state; rope for a table */
	uint32_t input;   /* IN_... for ARG_INPUT */
	const char *name; /* in the text */
} Arg;

/* Workgroups of a launch: ceil(sym*mul/div) + add. */
typedef struct Grid {
	uint32_t sym, mul, div, add;
} Grid;

/* An op that the target has no kernel for. */
typedef struct Missing {
	const Node *op;
	const char *why;
} Missing;

/* One region's kernel while it is written. */
typedef struct Kernel {
	const Lowered *l;
	const Region *r;
	Arena *arena;
	Diag *diag;
	Text body;
	Arg args[MAX_ARGS];
	uint32_t n_args;
	Grid grid;
	const char *stem;   /* name without what makes it unique */
	const char **names; /* by node id: name of a value in this kernel */
	uint32_t *counts;   /* by op: names given so far */
	bool *declared;     /* by node id: its pointer is in scope */
	Missing missing;    /* set by no_kernel */
} Kernel;

/* A part of a row that ops are applied to: the whole row, or one of heads
 * equal parts, which is called head. Row number and head are C variables. */
typedef struct Scope {
	const char *row;
	const char *head; /* NULL: whole rows */
	uint64_t heads;   /* 1 for whole rows */
	bool numbers;     /* a head's part is one number, of vectors too */
} Scope;

/* ---- arguments and names (value.c) ---- */

/* Each returns the name of the pointer in the text, adding the argument on
 * first use. */
const char *arg_weight(Kernel *k, const Node *weight);
const char *arg_state(Kernel *k, const Node *state);
const char *arg_input(Kernel *k, uint32_t input);
const char *arg_table(Kernel *k, const Node *rope);
/* The rows of a value made in another region, or stored by this one. */
const char *arg_rows(Kernel *k, const Node *value);

/* The C type that holds values of a type ("float", "Q8A" ...). */
const char *c_type(DType t);
/* Name of n in this kernel: its op's name and a number. */
const char *value_name(Kernel *k, const Node *n);
bool in_region(const Kernel *k, const Node *n);
/* Whether n has readers outside the region, so that it must be stored. */
bool is_output(const Kernel *k, const Node *n);

/* Declares, once for a scope, a pointer to the part of n's row that s covers
 * and returns its name. n may be a view, a weight, a stored value or one of
 * the region (an array then, or where it is stored). */
const char *value_ref(Kernel *k, const Scope *s, Node *n);
/* Elements of n's row that s covers; of a vector, all. */
uint64_t scope_width(const Scope *s, Node *n);

/* Declares what op n of the region makes for this scope, the stored rows' part
 * or an array, and returns its name. */
const char *declare_target(Kernel *k, const Scope *s, Node *n);
/* Declares a pointer to the part of n's row that s covers as the value alias,
 * an op of the region that passes n on. */
void declare_as(Kernel *k, const Scope *s, Node *n, Node *alias);
/* Makes n known in the scope under a name of the caller's choice. */
void bind_value(Kernel *k, Node *n, const char *name);

/* ---- ops of a scope ---- */

/* Emits the ops of the region in order, but for those that skip names. */
void emit_scope(Kernel *k, const Scope *s, bool (*skip)(const Node *));
/* Emits op n, one of the row family, over the scope. */
void emit_row_op(Kernel *k, const Scope *s, Node *n);
/* Emits a point op and what was inlined into it. */
void emit_point(Kernel *k, const Scope *s, Node *n);
/* Whether a point op is written as part of its only reader's expression. */
bool is_inlined(const Kernel *k, const Node *n);

/* A loop nest over width elements: i alone, or h over runs of run elements. */
typedef struct Loops {
	uint64_t width, run;
} Loops;

/* The expression of op n at the loops' element, operands filled in. */
const char *point_expression(
    Kernel *k, const Scope *s, Node *n, const Loops *l);
/* Element of a value at the loops' index: a load widened to f32, or the
 * expression of an op inlined here. */
const char *element(Kernel *k, const Scope *s, Node *n, const Loops *l);
/* value, which is of type t, as an f32. */
const char *widened(Kernel *k, DType t, const char *value);
/* value converted for storing as t. */
const char *narrowed(Kernel *k, DType t, const char *value);
/* Declares the pointers that element of n will use, ahead of its loops. */
void declare_element(Kernel *k, const Scope *s, Node *n);

/* ---- families (kern_*.c): write the body, set grid and stem ---- */
void emit_row(Kernel *k);
void emit_matmul(Kernel *k);
void emit_experts(Kernel *k);
void emit_conv(Kernel *k);
void emit_delta(Kernel *k);
void emit_attention(Kernel *k);

/* Ends in err: the target has no kernel for n, and why. */
noreturn void no_kernel(Kernel *k, const Node *n, const char *why);
/* The op of the region that its family is named after. */
Node *find_op(const Kernel *k, Op op);
/* A float constant in text: exact, readable where short. */
const char *float_text(Arena *a, float f);

/* ---- the whole (emit.c) ---- */

typedef struct Code {
	const char *name;
	Family family;
	const char *text; /* the whole function */
} Code;

typedef struct Launch {
	uint32_t code;
	const Region *region;
	Grid grid;
	const Arg *args;
	uint32_t n_args;
	/* The region's ops in the kernel's names, a line each. */
	const char *ops;
} Launch;

typedef struct Emitted {
	const Lowered *l;
	Code *codes;
	uint32_t n_codes;
	Launch *launches; /* one for each region, in order */
	uint32_t n_launches;
	Missing *missing; /* of each region without a kernel, the first op */
	uint32_t n_missing;
} Emitted;

/* An op without a kernel ends in err with exit code 3. */
Emitted *emit(const Lowered *l, Diag *d);
/* The same, but goes on behind such an op: its region has a launch of one
 * workgroup of an empty kernel, so that all can be counted and nothing run. */
Emitted *emit_anyway(const Lowered *l, Diag *d);
/* Ends in err: the sentence about a missing op. */
noreturn void err_missing(const Lowered *l, const Missing *m, Diag *d);
/* The text that goes in front of the kernels. */
extern const char prelude_text[];
extern const char prelude_gpu_text[];

#endif
