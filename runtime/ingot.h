/* ingot.h - run a compiled plan beside its checkpoint.
 *
 * A plan is opened, bound to a checkpoint on a device (a model), and run in
 * sessions. A session holds sequences; each call of ingot_step pushes tokens
 * through one forward pass for any number of them. The logits of a token do
 * not depend on what else is in the step, on how a prompt was cut, or on the
 * number of threads: they are the same bits.
 *
 * Ownership: what ingot_*_open gives is closed with the matching _close, in
 * any order in which a thing is closed before the thing it was opened from.
 * Threads: one session is used by one thread at a time; sessions of one model
 * may be used by different threads. Nothing here exits, prints or aborts.
 * Every options struct starts with its size (sizeof of what the caller was
 * compiled with); zero elsewhere means the default; NULL options mean all
 * defaults. A plan holds native code: opening one runs it when stepped.
 */
#ifndef INGOT_H
#define INGOT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define INGOT_ABI 1
#if defined(__GNUC__)
#define INGOT_API __attribute__((visibility("default")))
#else
#define INGOT_API
#endif

typedef enum ingot_status {
#define STATUS(NAME, text) INGOT_##NAME,
#include "status.def"
#undef STATUS
	INGOT_STATUS_COUNT
} ingot_status;

enum { INGOT_ERROR_TEXT = 512 };

/* Filled by a call that fails: one sentence that says what, where and what to
 * do. Always optional (NULL). */
typedef struct ingot_error {
	ingot_status status;
	char text[INGOT_ERROR_TEXT];
} ingot_error;

typedef struct ingot_plan ingot_plan;
typedef struct ingot_model ingot_model;
typedef struct ingot_session ingot_session;
typedef struct ingot_tokenizer ingot_tokenizer;

/* The fixed text of a status. */
INGOT_API const char *ingot_status_text(ingot_status s);

/* ---- plans ---- */

/* Opens and verifies the plan file at path. */
INGOT_API ingot_status ingot_plan_open(
    const char *path, ingot_plan **out, ingot_error *err);
/* The same from memory. bytes are copied. */
INGOT_API ingot_status ingot_plan_read(
    const void *bytes, size_t length, ingot_plan **out, ingot_error *err);
INGOT_API void ingot_plan_close(ingot_plan *plan);

/* ---- models: a plan bound to a checkpoint on a device ---- */

typedef struct ingot_model_options {
	size_t size;
	const char *device; /* "auto" (default) or "cpu" */
	uint32_t threads;   /* CPU threads; 0: one for each core */
	/* Called while weights are read, with bytes done and in all. */
	void (*progress)(void *user, uint64_t done, uint64_t total);
	void *user;
} ingot_model_options;

typedef struct ingot_model_info {
	uint32_t vocab;        /* columns of the logits */
	uint32_t ctx;          /* longest context the model was trained for */
	uint32_t max_chunk;    /* most tokens one step can take */
	uint64_t weight_bytes; /* packed weights held by the model */
	const char *device;    /* name of the device, owned by the model */
	int other_data; /* nonzero: the checkpoint has the layout that the plan
			 * was made for, but not the same weights */
} ingot_model_info;

/* Binds the weights of checkpoint (a GGUF file or a Hugging Face folder),
 * which must be the one that the plan was compiled for: the names, types and
 * shapes of its tensors and its configuration are compared. plan must outlive
 * the model. */
INGOT_API ingot_status ingot_model_open(ingot_plan *plan,
    const char *checkpoint, const ingot_model_options *options,
    ingot_model **out, ingot_error *err);
INGOT_API void ingot_model_close(ingot_model *model);
INGOT_API ingot_model_info ingot_model_get_info(const ingot_model *model);

/* ---- sessions ---- */

typedef struct ingot_session_options {
	size_t size;
	uint32_t ctx;      /* tokens a sequence can hold; default: the smaller
			    * of the model's and 8192; more than the model was
			    * trained for is possible, up to 2^20 */
	uint32_t max_seqs; /* sequences that can exist at once; default 1 */
	uint32_t max_rows; /* rows of logits one step can give; default
			    * max_seqs, at most max_chunk */
} ingot_session_options;

INGOT_API ingot_status ingot_session_open(ingot_model *model,
    const ingot_session_options *options, ingot_session **out,
    ingot_error *err);
INGOT_API void ingot_session_close(ingot_session *s);

/* Adds an empty sequence; *seq is its number, below max_seqs.
 * INGOT_FULL when max_seqs exist. */
INGOT_API ingot_status ingot_seq_add(
    ingot_session *s, uint32_t *seq, ingot_error *err);
/* Adds a sequence with the same tokens behind it as from. */
INGOT_API ingot_status ingot_seq_copy(
    ingot_session *s, uint32_t from, uint32_t *seq, ingot_error *err);
INGOT_API ingot_status ingot_seq_remove(
    ingot_session *s, uint32_t seq, ingot_error *err);
/* Tokens that the sequence has consumed; 0 for one that does not exist. */
INGOT_API uint32_t ingot_seq_length(const ingot_session *s, uint32_t seq);

typedef enum ingot_want {
	INGOT_WANT_NONE, /* no logits (all but the last chunk of a prompt) */
	INGOT_WANT_LAST, /* one row: after the last token */
	INGOT_WANT_ALL   /* a row after each token */
} ingot_want;

/* What one sequence does in a step. */
typedef struct ingot_work {
	uint32_t seq;
	uint32_t count;         /* tokens, at least 1 */
	const uint32_t *tokens; /* [count], each below vocab */
	ingot_want want;
} ingot_work;

/* One forward pass. Each sequence occurs at most once; counts add up to at
 * most max_chunk. Rows of logits are numbered from 0 in the order of work.
 * A failed step (INGOT_NOT_FINITE names the region) leaves its sequences
 * undefined: remove them. INGOT_FULL: a sequence would exceed ctx, and nothing
 * was done. */
INGOT_API ingot_status ingot_step(
    ingot_session *s, const ingot_work *work, size_t n_work, ingot_error *err);

/* Row of logits of the last step, f32 [vocab], in host memory, valid until
 * the next step; NULL when there is no such row. Rows of padding ids are as
 * computed. */
INGOT_API const float *ingot_logits(ingot_session *s, uint32_t row);

typedef struct ingot_sampling {
	size_t size;
	float temp;     /* 0: greedy */
	uint32_t top_k; /* 0: all */
	float top_p;    /* 0 or 1: off */
	float min_p;    /* 0: off */
	uint64_t seed;
	uint64_t position; /* counter of the draw: the length of the sequence */
	/* Its padding ids are skipped; may be NULL. */
	const ingot_tokenizer *tokens;
} ingot_sampling;

/* Picks a token from a row of logits (docs/numerics.md, Sampling). Ties go to
 * the lowest id. */
INGOT_API ingot_status ingot_sample(const ingot_session *s, uint32_t row,
    const ingot_sampling *how, uint32_t *token, ingot_error *err);

/* ---- tokens and text ---- */

/* The tokenizer of a checkpoint. INGOT_UNSUPPORTED when it has none. */
INGOT_API ingot_status ingot_tokenizer_open(
    const char *checkpoint, ingot_tokenizer **out, ingot_error *err);
INGOT_API void ingot_tokenizer_close(ingot_tokenizer *t);
/* Encodes UTF-8. specials != 0: special tokens in the text become their ids.
 * Writes at most capacity ids and sets *count to the number there are; a first
 * call with capacity 0 asks for it. It can exceed length. */
INGOT_API ingot_status ingot_encode(const ingot_tokenizer *t, const char *text,
    size_t length, int specials, uint32_t *ids, size_t capacity, size_t *count,
    ingot_error *err);
/* The bytes of a token, possibly part of a character; owned by t. */
INGOT_API const char *ingot_token_bytes(
    const ingot_tokenizer *t, uint32_t id, size_t *length);
/* Nonzero when id ends generation. */
INGOT_API int ingot_is_stop(const ingot_tokenizer *t, uint32_t id);

#ifdef __cplusplus
}
#endif

#endif
