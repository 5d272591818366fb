/* The plan file: fixed-width little-endian tables, no pointers.
 * docs/plan-format.md is the specification; this header is its C form. The
 * compiler writes it (codegen/plan_write.c), the runtime verifies it once on
 * open (plan.c) and trusts it from then on.
 *
 * File = PlanHeader, PlanSection[n_sections], then the sections, each aligned
 * to 64 bytes and zero padded. A section is an array of one struct, or bytes.
 * Strings are offsets into SEC_STRINGS, each NUL terminated; 0 is "".
 */
#ifndef RUNTIME_PLAN_H
#define RUNTIME_PLAN_H

#include <stdint.h>

enum {
	PLAN_MAJOR = 1, /* another major version is refused */
	PLAN_MINOR = 0, /* unknown sections of a newer one are skipped */
	PLAN_ALIGN = 64,
	PLAN_MAX_TARGETS = 64,
	PLAN_MAX_BUFFERS = 1 << 14, /* of a target: bounds the overlap proof */
	KV_PAGE = 64                /* keys in a page of the cache */
};
#define PLAN_MAGIC "INGOTPLN"

typedef struct PlanHeader {
	char magic[8];
	uint16_t major, minor;
	uint32_t n_sections;
	uint64_t file_bytes;
	/* XXH64 of the section table; its seed is the XXH64, seed 0, of the
	 * header in front of this field. */
	uint64_t check;
} PlanHeader;

/* SECTION(NAME, element)  element: the struct it is an array of, or char */
#define PLAN_SECTIONS(SECTION)                                                 \
	SECTION(STRINGS, char)                                                 \
	SECTION(META, PlanMeta)                                                \
	SECTION(TENSORS, PlanTensor)                                           \
	SECTION(WEIGHTS, PlanWeight)                                           \
	SECTION(PIECES, PlanPiece)                                             \
	SECTION(STATES, PlanState)                                             \
	SECTION(TABLES, PlanTable)                                             \
	SECTION(GRAPH, char)                                                   \
	SECTION(TARGETS, PlanTarget)                                           \
	SECTION(PACKS, PlanPack)                                               \
	SECTION(BUFFERS, PlanBuffer)                                           \
	SECTION(KERNELS, PlanKernel)                                           \
	SECTION(LAUNCHES, PlanLaunch)                                          \
	SECTION(ARGS, PlanArg)                                                 \
	SECTION(REGIONS, PlanRegion)                                           \
	SECTION(SOURCES, char)                                                 \
	SECTION(OBJECTS, char)

typedef enum PlanSectionKind {
#define SECTION(NAME, element) SEC_##NAME,
	PLAN_SECTIONS(SECTION)
#undef SECTION
	    SEC_COUNT
} PlanSectionKind;

/* The one flag: a reader that does not know the section refuses the plan. */
enum { SECTION_REQUIRED = 1 };

typedef struct PlanSection {
	uint32_t kind; /* PlanSectionKind */
	uint32_t flags;
	uint64_t offset, bytes;
	uint64_t check; /* XXH64, seed 0, of the section */
} PlanSection;

/* Exactly one. */
typedef struct PlanMeta {
	uint32_t arch;       /* string: architecture of the checkpoint */
	uint32_t model_file; /* string: basename of the Lua file */
	uint32_t compiler;   /* string: version of Ingot */
	uint32_t numerics;   /* string: "exact" or "fast" */
	uint32_t kv_dtype;   /* DType of the cache */
	uint32_t vocab;      /* columns of the logits */
	uint32_t ctx;        /* trained context */
	uint32_t max_chunk;  /* most rows of a step */
	uint64_t layout;     /* fingerprint_layout of the checkpoint */
	uint64_t data; /* fingerprint_data; 0 when only its header was there */
} PlanMeta;

/* A tensor of the checkpoint, as it must be found. dims slowest first, the
 * last ones 1 where unused. */
typedef struct PlanTensor {
	uint32_t name; /* string */
	uint32_t dtype;
	uint32_t n_dims;
	uint32_t pad;
	uint64_t dim[4];
} PlanTensor;

/* A logical weight: pieces stacked along the rows, then mapped. */
typedef struct PlanWeight {
	uint32_t name; /* string */
	uint32_t dtype;
	/* 0 as stored, 1 one plus, 2 minus exp; then dtype is f32 */
	uint32_t map;
	uint32_t n_dims;
	uint64_t dim[4];                /* slowest first */
	uint32_t first_piece, n_pieces; /* at least one piece */
} PlanWeight;

/* Rows row .. row+rows-1 of a tensor seen as [all but last axis, last axis]. */
typedef struct PlanPiece {
	uint32_t tensor; /* index into SEC_TENSORS */
	uint32_t pad;
	uint64_t row, rows;
} PlanPiece;

/* Memory that lives from step to step, zero at the start. */
enum { STATE_SLOT, STATE_PAGED };
typedef struct PlanState {
	uint32_t name;  /* string */
	uint32_t kind;  /* STATE_SLOT or STATE_PAGED */
	uint64_t bytes; /* of a sequence, of a page */
} PlanState;

/* A table made on the host at session open: RoPE, f32 [ctx, rot/2, 2]. */
typedef struct PlanTable {
	uint32_t rot;
	uint32_t pad;
	double theta;
} PlanTable;

/* Code for one device kind. first_/n_ are ranges in the sections. */
typedef struct PlanTarget {
	uint32_t name;                /* string: row of the target table */
	uint32_t toolchain;           /* string: compiler and version */
	uint32_t first_pack, n_packs; /* one for each weight, in their order */
	uint32_t first_buffer, n_buffers;
	uint32_t first_kernel, n_kernels;
	uint32_t first_launch, n_launches;
	uint64_t source, source_bytes; /* in SEC_SOURCES */
	uint64_t object, object_bytes; /* in SEC_OBJECTS */
} PlanTarget;

/* How a weight lies in the target's memory. */
enum {
	PACK_PLAIN, /* as in the checkpoint: row major blocks */
	PACK_ROWS8  /* tiles of 8 rows, runtime/pack.h */
};
typedef struct PlanPack {
	uint32_t pack;
	uint32_t pad;
	uint64_t bytes;
} PlanPack;

/* A symbol of a size: what it stands for is known in each step. */
enum {
	SYM_ONE,
	SYM_T, /* tokens */
	SYM_R, /* rows of logits */
	SYM_B, /* sequences */
	SYM_COUNT
};

/* An activation: row_bytes kept for each of sym (its rows lie closer where a
 * row is no multiple of 64 bytes); the arena of sym holds it at
 * offset * (most rows of sym), both multiples of 64. */
typedef struct PlanBuffer {
	uint32_t name; /* string */
	uint32_t sym;  /* SYM_T or SYM_R */
	uint32_t node; /* number in SEC_GRAPH of the value it holds */
	uint32_t pad;
	uint64_t row_bytes, offset;
	uint32_t first_launch, last_launch; /* lifetime, within the target */
} PlanBuffer;

typedef struct PlanKernel {
	uint32_t name;                 /* string: symbol in the object */
	uint32_t family;               /* string */
	uint64_t source, source_bytes; /* its part of the target's source */
} PlanKernel;

/* One call of a kernel: ceil(sym*mul/div) + add workgroups. */
typedef struct PlanLaunch {
	uint32_t kernel; /* within the target */
	uint32_t region; /* index into SEC_REGIONS */
	uint32_t sym, mul, div, add;
	uint32_t first_arg, n_args; /* in SEC_ARGS */
} PlanLaunch;

/* What pointer i of a kernel is. */
enum {
	ARG_BUFFER, /* index within the target */
	ARG_WEIGHT,
	ARG_STATE,
	ARG_TABLE,
	ARG_INPUT, /* index: IN_... */
	ARG_LOGITS /* f32 [R, vocab] */
};
typedef struct PlanArg {
	uint32_t kind, index; /* index 0 for ARG_LOGITS */
} PlanArg;

/* What is known only in a step; all u32. */
enum {
	IN_TOKENS,    /* [T] */
	IN_POSITIONS, /* [T] */
	IN_ROW_SLOT,  /* [T] state slot of the row's sequence */
	IN_SEQS,      /* [B][4]: slot, first row, rows, start position */
	IN_BLOCKS,    /* [slots][StepArgs.pages]: page of each 64 positions */
	IN_ROWS,      /* [R] rows wanted */
	IN_COUNT
};

/* For people: what a launch computes and where the model says so. */
typedef struct PlanRegion {
	uint32_t name;  /* string */
	uint32_t rules; /* string: fusions that made it, comma separated */
	uint32_t ops;   /* string: its ops, one a line */
	uint32_t lines; /* string: file:line of its ops, comma separated */
	uint32_t why;   /* string: fusions that did not apply, one a line */
	uint32_t pad;
} PlanRegion;

/* A CPU kernel: void NAME(void *const *arg, const StepArgs *s, uint32_t wg).
 * The emitted prelude repeats this struct. */
typedef struct StepArgs {
	uint32_t tokens, rows, seqs; /* T, R, B */
	uint32_t pages;              /* pages in a row of IN_BLOCKS */
	uint32_t *fault; /* set to 1 by a kernel that met a value not finite */
} StepArgs;

_Static_assert(sizeof(PlanHeader) == 32, "PlanHeader");
_Static_assert(sizeof(PlanSection) == 32, "PlanSection");
_Static_assert(sizeof(PlanMeta) == 48, "PlanMeta");
_Static_assert(sizeof(PlanTensor) == 48, "PlanTensor");
_Static_assert(sizeof(PlanWeight) == 56, "PlanWeight");
_Static_assert(sizeof(PlanPiece) == 24, "PlanPiece");
_Static_assert(sizeof(PlanState) == 16, "PlanState");
_Static_assert(sizeof(PlanTable) == 16, "PlanTable");
_Static_assert(sizeof(PlanTarget) == 72, "PlanTarget");
_Static_assert(sizeof(PlanPack) == 16, "PlanPack");
_Static_assert(sizeof(PlanBuffer) == 40, "PlanBuffer");
_Static_assert(sizeof(PlanKernel) == 24, "PlanKernel");
_Static_assert(sizeof(PlanLaunch) == 32, "PlanLaunch");
_Static_assert(sizeof(PlanArg) == 8, "PlanArg");
_Static_assert(sizeof(PlanRegion) == 24, "PlanRegion");

#endif
