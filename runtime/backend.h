/* The seam between sessions and what computes a step: a plan's launches
 * (exec.c), or an evaluator that the embedding program supplies. Sessions,
 * pages, logits and sampling are the same on both. */
#ifndef RUNTIME_BACKEND_H
#define RUNTIME_BACKEND_H

#include "plan_open.h"
#include "weights.h"

/* The tokens of one sequence in a step: rows first .. first+count-1, at
 * positions start .. start+count-1, with its state in slot. The layout is that
 * of IN_SEQS. */
typedef struct StepSeq {
	uint32_t slot, first, count, start;
} StepSeq;

/* One forward pass. Valid until step returns. */
typedef struct StepDesc {
	uint32_t n_tokens;
	const uint32_t *tokens; /* [n_tokens], each below vocab */
	uint32_t n_seqs;
	const StepSeq *seqs; /* [n_seqs], covering the rows in order */
	uint32_t n_rows;
	const uint32_t *rows; /* [n_rows], ascending: logits are wanted */
} StepDesc;

/* What a session will ask for at most, and the memory that it shares: both
 * pointers live as long as the backend. */
typedef struct BackendLimits {
	uint32_t ctx;                  /* tokens of a sequence */
	uint32_t max_seqs;             /* slots */
	uint32_t max_tokens, max_rows; /* of a step */
	uint32_t seq_pages;     /* pages of a sequence: ceil(ctx / KV_PAGE) */
	uint32_t n_pages;       /* pages of the pool: seq_pages * max_seqs */
	const uint32_t *blocks; /* [max_seqs][seq_pages], set before a step */
	float *logits;          /* [max_rows][vocab], written by a step */
} BackendLimits;

typedef struct Backend Backend;

typedef struct BackendOps {
	/* Computes a step; logits rows 0 .. n_rows-1 are set. A value that is
	 * not finite: INGOT_NOT_FINITE, the sentence naming the region.
	 * Allocates nothing. The floating-point state is set. */
	ingot_status (*step)(Backend *b, const StepDesc *d, Error *err);
	/* The state of slot to becomes that of from, which holds length
	 * tokens. Pages are not touched: copy_page is called for those. */
	void (*copy_slot)(
	    Backend *b, uint32_t from, uint32_t to, uint32_t length);
	/* The state of slot becomes that of an empty sequence. */
	void (*clear_slot)(Backend *b, uint32_t slot);
	/* Page to of every paged state becomes page from. */
	void (*copy_page)(Backend *b, uint32_t from, uint32_t to);
	void (*close)(Backend *b);
} BackendOps;

/* First member of every backend. */
struct Backend {
	const BackendOps *ops;
};

/* How a model opens backends, one for each session. */
typedef struct BackendFactory {
	/* w and plan outlive the backend. */
	ingot_status (*open)(void *user, const Plan *plan, const Weights *w,
	    const BackendLimits *limits, Backend **out, Error *err);
	void *user;
	const char *device; /* name in ingot_model_info; a literal */
} BackendFactory;

/* ingot_model_open for a backend from outside: weights are bound row major
 * (PACK_PLAIN), the plan needs no target, options.device and threads are not
 * read. factory is copied; what user points to outlives the model. */
INGOT_API ingot_status model_open_custom(ingot_plan *plan,
    const char *checkpoint, const BackendFactory *factory,
    const ingot_model_options *options, ingot_model **out, ingot_error *err);

/* Called after each launch of a step, the failing one included. arg[i] is what
 * argument i of the launch points to; what is written there is what later
 * launches read. launch counts from the target's first. */
typedef struct LaunchWatch {
	void (*after)(void *user, uint32_t launch, void *const *arg,
	    const StepArgs *s, const StepDesc *d);
	void *user;
} LaunchWatch;

/* Sessions of m opened from now on call watch, which outlives them. For a
 * model that runs a plan's launches. */
INGOT_API void model_watch(ingot_model *m, const LaunchWatch *watch);

/* The plan's own executor; user is a CpuTarget. */
typedef struct CpuTarget {
	struct CpuDevice *device;
	uint32_t target;
	const LaunchWatch *watch; /* or NULL */
} CpuTarget;
ingot_status exec_open(void *user, const Plan *plan, const Weights *w,
    const BackendLimits *limits, Backend **out, Error *err);

#endif
