/* Lowering: a verified graph to regions, launches and memory for one target.
 *
 * Order of the passes: legalise (ir), fuse, schedule, memory. Nothing here
 * prints kernel text. */
#ifndef LOWER_LOWER_H
#define LOWER_LOWER_H

#include "../ir/diag.h"
#include "../ir/ir.h"

typedef enum Family {
#define FAMILY(NAME, name) FAM_##NAME,
#include "families.def"
#undef FAMILY
	FAM_COUNT
} Family;

extern const char *const family_names[FAM_COUNT];
/* The family that computes op alone; FAM_COUNT: it needs no kernel. */
Family op_family(Op op);

typedef enum TargetTool { TARGET_CPU, TARGET_AMDGCN, TARGET_PTX } TargetTool;

/* Matrix instructions, by how operands lie in the lanes. */
typedef enum Matrix {
	MATRIX_NONE,
	MATRIX_WMMA11,
	MATRIX_WMMA12,
	MATRIX_MMA
} Matrix;

/* The instruction for a dot product of four signed bytes. */
typedef enum Dot { DOT_NONE, DOT_SDOT4, DOT_SUDOT4, DOT_DP4A } Dot;

/* A row of targets.def, which tells more of each fact. */
typedef struct Target {
	const char *name, *isa;
	TargetTool tool;  /* kind of code it runs */
	bool kernels;     /* whether there are kernels for it */
	uint32_t lanes;   /* f32 lanes of a vector or of a wave */
	uint32_t tile;    /* rows of a weight per workgroup, a multiple of 32 */
	uint32_t lds;     /* bytes per workgroup */
	uint32_t regs;    /* registers of a SIMD, per lane */
	uint32_t granule; /* of registers given to a wave */
	uint32_t max_regs; /* of a wave, per lane */
	Matrix matrix;
	Dot dot;
	uint32_t bandwidth; /* GB/s, 0: unknown */
	float launch;       /* us, 0: unknown */
} Target;

enum { MAX_WAVES = 16 }; /* of a SIMD, on every GPU of the table */

extern const Target targets[];
extern const size_t target_count;
const Target *target_by_name(const char *name); /* or NULL */
/* Waves that a SIMD of a GPU holds when each has so many registers a lane, LDS
 * aside; 0 when a wave cannot have so many. */
uint32_t target_waves(const Target *t, uint32_t regs);

typedef enum Why {
	WHY_NONE,
#define WHY(NAME, text) WHY_##NAME,
#include "why.def"
#undef WHY
	WHY_COUNT
} Why;

extern const char *const why_text[WHY_COUNT];

/* Names of the fusion rules, ended by NULL; rule i has bit 1 << i. */
extern const char *const fuse_rules[];
/* The bit of the rule called name, or 0. */
uint32_t fuse_bit(const char *name);
enum { FUSE_ALL = 0x7fffffff };

typedef struct LowerOptions {
	uint32_t rules; /* fusion rules that may apply; 0: every op alone */
} LowerOptions;

/* A fusion that was tried and did not apply. */
typedef struct WhyNot {
	const char *rule;
	const Node *op;
	Why why;
	struct WhyNot *next;
} WhyNot;

/* Ops that one kernel computes, in order. */
typedef struct Region {
	Family family;
	Node **ops;
	uint32_t n_ops;
	uint32_t rules; /* bits of the rules that made it */
	WhyNot *why;
} Region;

/* Memory of a value that leaves its region. */
typedef struct Buffer {
	const Node *node;
	int64_t sym;          /* DIM_T or DIM_R */
	uint64_t row_bytes;   /* kept for a row, a multiple of 64 */
	uint64_t offset;      /* per row, a multiple of 64 */
	uint32_t first, last; /* regions between which it lives */
} Buffer;

typedef struct Lowered {
	Graph *graph;
	const Target *target;
	Region *regions; /* in launch order */
	uint32_t n_regions;
	Buffer *buffers;
	uint32_t n_buffers;
	uint32_t *region_of; /* by node id; NO_REGION for leaves and views */
	uint32_t *buffer_of; /* by node id; NO_BUFFER where it has none */
} Lowered;

#define NO_REGION UINT32_MAX
#define NO_BUFFER UINT32_MAX

/* Everything comes from the graph's arena. An op that no family of the target
 * computes ends in err with exit code 3. */
Lowered *lower(Graph *g, const Target *t, const LowerOptions *o, Diag *d);

/* ---- passes ---- */
/* Fills regions (in no order) and region_of. */
void fuse(Lowered *l, const LowerOptions *o);
/* Puts the regions into launch order. */
void schedule(Lowered *l);
/* Fills buffers and buffer_of, with lifetimes and offsets. */
void plan_memory(Lowered *l);
/* Proves that no two live buffers overlap; NULL or the sentence. */
const char *check_memory(const Lowered *l);

/* Whether the target's kernels read w in packed form (runtime/pack.h): it is
 * multiplied by or looked up in, not a vector. */
bool is_packed(const Graph *g, const Weight *w);

/* ---- views ----
 * How the elements of a row of a value lie in the row of the value that is
 * really stored: element i at offset + i/inner*stride + i%inner. */
typedef struct View {
	Node *root;
	uint64_t offset, inner, stride;
	uint64_t count; /* elements of a row of the view */
} View;

/* Looks through reshapes and slices. */
View view_of(Node *n);
Node *root_of(Node *n);
bool view_contiguous(const View *v);

/* Bytes of a row of n's value. */
uint64_t row_bytes(const Node *n);
/* Elements of the last axis. */
uint64_t last_axis(const Node *n);
/* Whether n's first axis counts rows of the step. */
bool has_rows(const Node *n);

#endif
