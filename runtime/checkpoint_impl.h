/* Inside of the checkpoint reader: what checkpoint.c and the readers of the
 * file kinds share. Readers append tensors in file order, check their own
 * file, and leave all cleaning up to ckpt_close. */
#ifndef RUNTIME_CHECKPOINT_IMPL_H
#define RUNTIME_CHECKPOINT_IMPL_H

#include "checkpoint.h"
#include "json.h"
#include "mapping.h"
#include "pool.h"
#include "quote.h"

enum {
	CKPT_MAX_NAME = 255,       /* bytes of a tensor name or GGUF key */
	CKPT_MAX_TENSORS = 1 << 20 /* in all files */
};

/* One mapped file with tensors, and which of them are in it. */
typedef struct CkptFile {
	Mapping map;
	const char *path;
	size_t first, end; /* range of Checkpoint.tensors */
	/* GGUF alone: its metadata, the place of the tensors' entries in the
	 * header, and how many there are. */
	const Value *keys;
	uint64_t entries, n_entries;
} CkptFile;

/* Parsed files of a folder, by name; value is NULL when there is none. */
typedef struct CkptJson {
	struct CkptJson *next;
	const char *file;
	const Value *value;
} CkptJson;

struct Checkpoint {
	CkptKind kind;
	bool header_only;
	const char *path;
	Pool pool; /* every name and Value */
	CkptFile *files;
	size_t n_files;
	CkptTensor *tensors; /* malloc */
	size_t count, capacity;
	const CkptTensor **by_name; /* malloc; sorted when all are read */
	const Value *config;
	CkptJson *json;
};

/* Where a tensor lies in its file. begin == end: not known, or empty. */
typedef struct Span {
	const char *name;
	uint64_t begin, end;
} Span;

/* fail with the sentence "file: ...". */
#if defined(__GNUC__)
__attribute__((format(printf, 4, 5)))
#endif
ingot_status
ckpt_fail(
    Error *err, ingot_status status, const char *file, const char *fmt, ...);
/* INGOT_NO_MEMORY for file. */
ingot_status ckpt_no_memory(const char *file, Error *err);

/* Room for n files in c->files, empty ones. */
ingot_status ckpt_add_files(Checkpoint *c, size_t n, Error *err);
/* A zeroed tensor at the end of c->tensors, counted; it may move when the
 * next one is added. NULL when memory ran out. */
CkptTensor *ckpt_add_tensor(Checkpoint *c);

/* Refuses what cannot be a name in a file: empty, too long, or not
 * printable. what is "tensor" or "key". */
ingot_status ckpt_check_name(const char *file, const char *what,
    const char *name, size_t length, Error *err);
/* Sets dims of t from n numbers; checks them and that the number of elements
 * fits 63 bits. No dimension (a scalar) becomes one of 1. */
ingot_status ckpt_set_dims(const char *file, CkptTensor *t,
    const uint64_t *dims, size_t n, Error *err);
/* Elements of t, whose dims are checked. */
uint64_t ckpt_elements(const CkptTensor *t);
/* Makes by_name of the tensors, which must no longer move; refuses two of one
 * name. */
ingot_status ckpt_index(Checkpoint *c, Error *err);
/* Sorts spans and refuses two that overlap. With size != 0 first refuses a
 * file of size bytes that ends before a span does. */
ingot_status ckpt_check_spans(
    const char *file, Span *spans, size_t n, uint64_t size, Error *err);

/* Sets keys, entries and n_entries of f, which is mapped. */
ingot_status gguf_read_keys(Checkpoint *c, CkptFile *f, Error *err);
/* Then adds its tensors. */
ingot_status gguf_read_tensors(
    Checkpoint *c, CkptFile *f, bool allow_header_only, Error *err);
/* Reads the file c->path and, when it is one of a set, the others. */
ingot_status split_read(Checkpoint *c, bool allow_header_only, Error *err);
/* Reads the shards of the folder c->path. */
ingot_status safetensors_read(Checkpoint *c, Error *err);
/* dir/name in the pool of c, or NULL when memory ran out. */
const char *ckpt_join(Checkpoint *c, const char *name);

#endif
