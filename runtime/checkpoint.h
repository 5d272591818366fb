/* A checkpoint on disk: a GGUF file or a Hugging Face folder, opened read-only
 * and memory-mapped. Headers are verified once here (every size and offset,
 * with checked arithmetic); tensor data is never copied. */
#ifndef RUNTIME_CHECKPOINT_H
#define RUNTIME_CHECKPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../numerics/types.h"
#include "error.h"

/* GGUF has at most 4; vision towers of folders have convolutions with 5. */
enum { CKPT_MAX_DIMS = 8 };

/* One tensor. dims run from the slowest to the fastest axis (PyTorch order),
 * so a matrix is [out, in] in both file kinds. No dimension is 0, the number
 * of elements fits 63 bits, and a scalar is [1]. Names are 1 to 255 bytes of
 * printable UTF-8, each once. */
typedef struct CkptTensor {
	const char *name;
	DType type;
	/* Spelling of the type in the file; type is DT_COUNT when Ingot does
	 * not know it, and then only this name is meaningful. */
	const char *type_name;
	int n_dims;
	uint64_t dims[CKPT_MAX_DIMS];
	/* Inside the file, shared with no other tensor; 0 when nothing is
	 * known about the type. */
	uint64_t bytes;
	/* NULL when the file holds only the header. Aligned to at least 8 in
	 * a GGUF file, to nothing in a safetensors file. */
	const void *data;
} CkptTensor;

typedef enum CkptKind { CKPT_GGUF, CKPT_FOLDER } CkptKind;

typedef enum ValueKind {
	VAL_NULL,
	VAL_BOOL,
	VAL_INT,
	VAL_FLOAT,
	VAL_STRING,
	VAL_ARRAY,
	VAL_OBJECT
} ValueKind;

/* A metadata value, as a small tree. An unsigned number beyond 2^63 - 1 is a
 * VAL_FLOAT. Strings may hold any bytes, NUL too (length counts), and UTF-8 is
 * not promised for those of a GGUF file. A NUL follows every key and every
 * string but one kind: the strings in arrays of a GGUF file (tokens, merges)
 * are not copied, and end by their length alone. */
typedef struct Value {
	ValueKind kind;
	const char *key; /* inside an object, else NULL */
	union {
		bool boolean;
		int64_t integer;
		double number;
		struct {
			const char *text;
			size_t length;
		} string;
		struct {
			const struct Value *items;
			size_t count;
		} list; /* VAL_ARRAY and VAL_OBJECT */
	} u;
} Value;

typedef struct Checkpoint Checkpoint;

/* Opens path: a GGUF file, alone or any one of a split set (whose names end in
 * -00001-of-00003.gguf and so on), or a folder with config.json and
 * model.safetensors or the shards of model.safetensors.index.json. The files
 * must not shrink while c is open. On success *out is the caller's, to be
 * closed with ckpt_close. allow_header_only accepts a GGUF file that ends
 * exactly where its data section starts (data pointers are then NULL); any
 * other short file is an error. */
ingot_status ckpt_open(
    const char *path, bool allow_header_only, Checkpoint **out, Error *err);
void ckpt_close(Checkpoint *c);

CkptKind ckpt_kind(const Checkpoint *c);
const char *ckpt_path(const Checkpoint *c);
bool ckpt_header_only(const Checkpoint *c);

size_t ckpt_count(const Checkpoint *c);
const CkptTensor *ckpt_tensor(const Checkpoint *c, size_t i);
/* The tensor called name, or NULL. */
const CkptTensor *ckpt_find(const Checkpoint *c, const char *name);

/* GGUF: an object of all metadata keys, in file order. Folder: config.json.
 * Lives as long as c. */
const Value *ckpt_config(const Checkpoint *c);
/* Folder only: generation_config.json or tokenizer_config.json or
 * tokenizer.json, parsed on first use (by one thread at a time) and kept as
 * long as c; *out is NULL when the file is absent or c is a GGUF file. file is
 * a plain name. */
ingot_status ckpt_json(
    Checkpoint *c, const char *file, const Value **out, Error *err);

/* The member of object o called key, or NULL (also when o is NULL or no
 * object). */
const Value *value_get(const Value *o, const char *key);
/* The string of v, or NULL when v is NULL, another kind, or holds a NUL. Not
 * for the strings in arrays of a GGUF file, which are not terminated. */
const char *value_string(const Value *v);

#endif
