/* From a GGUF file to a checkpoint. The file may be one of a set: its names
 * end in -00001-of-00003.gguf and so on, its keys split.count and split.no
 * (from 0) say the same, and the first one has the metadata. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "checkpoint_impl.h"

#define TAIL "-00000-of-00000.gguf"

enum {
	TAIL_BYTES = sizeof TAIL - 1,
	MAX_PARTS = 99999, /* five digits */
	MAX_LINKS = 16,
	MAX_TARGET = 4096
};

/* What the name of a part says. */
typedef struct PartName {
	const char *path;
	uint32_t number, count; /* number from 1 */
} PartName;

/* ---- names ---- */

static uint32_t
five_digits(const char *s)
{
	uint32_t n = 0;
	int i;

	for (i = 0; i < 5; i++)
		n = n * 10 + (uint32_t)(s[i] - '0');
	return n;
}

/* Whether path is the name of a part; sets *out when it is. */
static bool
is_part_name(const char *path, PartName *out)
{
	size_t i, n = strlen(path);
	const char *tail;

	if (n <= TAIL_BYTES)
		return false;
	tail = path + n - TAIL_BYTES;
	for (i = 0; i < TAIL_BYTES; i++)
		if (TAIL[i] == '0' ? tail[i] < '0' || tail[i] > '9'
				   : tail[i] != TAIL[i])
			return false;
	*out = (PartName){path, five_digits(tail + 1), five_digits(tail + 10)};
	return out->number >= 1 && out->number <= out->count;
}

/* The path of part number beside name, or NULL when memory ran out. */
static const char *
part_path(Checkpoint *c, const PartName *name, uint32_t number)
{
	size_t n = strlen(name->path);
	char *path = pool_alloc(&c->pool, n + 1, 1);

	if (path)
		snprintf(path, n + 1,
		    "%.*s-%05" PRIu32 "-of-%05" PRIu32 ".gguf",
		    (int)(n - TAIL_BYTES), name->path, number % 100000,
		    name->count % 100000);
	return path;
}

/* The path that the link at path gives with target. */
static const char *
follow(Checkpoint *c, const char *path, const char *target)
{
	const char *slash = strrchr(path, '/');
	size_t folder =
	    *target != '/' && slash ? (size_t)(slash + 1 - path) : 0;
	size_t n = folder + strlen(target) + 1;
	char *out = pool_alloc(&c->pool, n, 1);

	if (out)
		snprintf(out, n, "%.*s%s", (int)folder, path, target);
	return out;
}

/* The name of a part that c->path is or leads to, by symbolic links. */
static ingot_status
find_name(Checkpoint *c, int64_t count, PartName *out, Error *err)
{
	char target[MAX_TARGET];
	const char *path = c->path;
	int i;

	for (i = 0; i < MAX_LINKS && !is_part_name(path, out); i++) {
		if (!link_target(path, target, sizeof target))
			i = MAX_LINKS;
		else if (!(path = follow(c, path, target)))
			return ckpt_no_memory(c->path, err);
	}
	if (i >= MAX_LINKS)
		return ckpt_fail(err, INGOT_BAD_FILE, c->path,
		    "the file is one of %" PRId64 " parts (split.count), but "
		    "its name does not end like " TAIL
		    ", so the others cannot be found; give the parts such "
		    "names, from 00001 on",
		    count);
	if (out->count != count)
		return ckpt_fail(err, INGOT_BAD_FILE, c->path,
		    "the file is one of %" PRId64 " parts by its split.count, "
		    "but one of %" PRIu32 " by its name",
		    count, out->count);
	return INGOT_OK;
}

/* ---- keys ---- */

/* Files in GGUF form that are no model. */
static ingot_status
check_purpose(const CkptFile *f, Error *err)
{
	Quote q;
	const char *type = value_string(value_get(f->keys, "general.type"));
	const char *arch =
	    value_string(value_get(f->keys, "general.architecture"));

	if (type && strcmp(type, "adapter") == 0)
		return ckpt_fail(err, INGOT_UNSUPPORTED, f->path,
		    "the file is an adapter (general.type = adapter), not a "
		    "model; merge it into its base model first");
	if ((type && strcmp(type, "mmproj") == 0) ||
	    (arch && strcmp(arch, "clip") == 0))
		return ckpt_fail(err, INGOT_UNSUPPORTED, f->path,
		    "the file is a projector for images or sound "
		    "(general.type = mmproj or architecture = clip), not a "
		    "language model; name the model's own file");
	if (type && strcmp(type, "model") != 0)
		return ckpt_fail(err, INGOT_UNSUPPORTED, f->path,
		    "the file is no model: general.type is '%s'",
		    quote(&q, type, strlen(type)));
	return INGOT_OK;
}

/* The integer called key into *out; it must be from 0 to most. When absent,
 * *out stays, or, when needed, that is the fault. */
static ingot_status
get_count(const CkptFile *f, const char *key, bool needed, int64_t most,
    int64_t *out, Error *err)
{
	const Value *v = value_get(f->keys, key);

	if (!v && needed)
		return ckpt_fail(err, INGOT_BAD_FILE, f->path,
		    "the file has the name of a part, but no key %s", key);
	if (v &&
	    (v->kind != VAL_INT || v->u.integer < 0 || v->u.integer > most))
		return ckpt_fail(err, INGOT_BAD_FILE, f->path,
		    "key '%s' is not an integer from 0 to %" PRId64, key, most);
	if (v)
		*out = v->u.integer;
	return INGOT_OK;
}

/* f's key must be what it is in the part called by. */
static ingot_status
check_same(const CkptFile *f, const char *key, int64_t most, const CkptFile *by,
    int64_t want, Error *err)
{
	Quote q;
	int64_t n = 0;
	ingot_status s = get_count(f, key, true, most, &n, err);

	if (s || n == want)
		return s;
	return ckpt_fail(err, INGOT_BAD_FILE, f->path,
	    "%s is %" PRId64 ", but %" PRId64 " in %s: the files are not of "
	    "one set",
	    key, n, want, quote(&q, by->path, strlen(by->path)));
}

static ingot_status
check_architecture(const CkptFile *f, const CkptFile *first, Error *err)
{
	Quote q, r;
	const char *key = "general.architecture";
	const char *has = value_string(value_get(f->keys, key));
	const char *want = value_string(value_get(first->keys, key));

	if (!has || !want || strcmp(has, want) == 0)
		return INGOT_OK;
	return ckpt_fail(err, INGOT_BAD_FILE, f->path,
	    "%s is '%s', but '%s' in the first part: the files are not of one "
	    "set",
	    key, quote(&q, has, strlen(has)), quote(&r, want, strlen(want)));
}

/* ---- the set ---- */

static ingot_status
open_part(Checkpoint *c, CkptFile *f, const char *path, Error *err)
{
	ingot_status s;

	if (!path)
		return ckpt_no_memory(c->path, err);
	f->path = path;
	s = map_file(path, &f->map, err);
	if (!s)
		s = gguf_read_keys(c, f, err);
	return s ? s : check_purpose(f, err);
}

static ingot_status
is_missing(const Checkpoint *c, const char *path, const PartName *name,
    uint32_t number, Error *err)
{
	Quote q;

	return ckpt_fail(err, INGOT_IO, path,
	    "the file is missing: it is part %" PRIu32 " of the %" PRIu32
	    " that %s is one of",
	    number, name->count, quote(&q, c->path, strlen(c->path)));
}

/* Opens all parts into c->files, by their names; the file there is one. */
static ingot_status
open_parts(Checkpoint *c, const PartName *name, Error *err)
{
	CkptFile opened = c->files[0];
	const char *path;
	uint32_t i;
	ingot_status s = ckpt_add_files(c, name->count, err);

	if (s)
		return s;
	c->files[name->number - 1] = opened;
	for (i = 1; i <= name->count && !s; i++) {
		if (i == name->number)
			continue;
		path = part_path(c, name, i);
		if (path && file_kind(path) == FILE_MISSING)
			return is_missing(c, path, name, i, err);
		s = open_part(c, &c->files[i - 1], path, err);
	}
	return s;
}

/* Sorts c->files, of the set of opened, by split.no. */
static ingot_status
sort_parts(Checkpoint *c, const CkptFile *opened, Error *err)
{
	Quote q;
	size_t i, n = c->n_files;
	int64_t at = 0;
	CkptFile *sorted = pool_alloc(&c->pool, n, sizeof *sorted);
	ingot_status s;

	if (!sorted)
		return ckpt_no_memory(c->path, err);
	for (i = 0; i < n; i++) {
		CkptFile *f = &c->files[i];

		s = check_same(
		    f, "split.count", MAX_PARTS, opened, (int64_t)n, err);
		if (!s)
			s = get_count(
			    f, "split.no", true, (int64_t)n - 1, &at, err);
		if (s)
			return s;
		if (sorted[at].path)
			return ckpt_fail(err, INGOT_BAD_FILE, f->path,
			    "split.no is %" PRId64 " in this file and in %s: "
			    "a part is there twice, and another is missing",
			    at,
			    quote(
				&q, sorted[at].path, strlen(sorted[at].path)));
		sorted[at] = *f;
	}
	memcpy(c->files, sorted, n * sizeof *sorted);
	return INGOT_OK;
}

/* When the file in c->files is one of a set, opens the whole set. */
static ingot_status
find_parts(Checkpoint *c, Error *err)
{
	CkptFile opened = c->files[0];
	PartName name;
	int64_t count = 0;
	size_t i;
	ingot_status s =
	    get_count(&opened, "split.count", false, MAX_PARTS, &count, err);

	if (s || count <= 1) /* merging leaves a 0 */
		return s;
	s = find_name(c, count, &name, err);
	if (!s)
		s = open_parts(c, &name, err);
	if (!s)
		s = sort_parts(c, &opened, err);
	for (i = 1; i < c->n_files && !s; i++)
		s = check_architecture(&c->files[i], &c->files[0], err);
	return s;
}

/* All parts must know how many tensors there are. */
static ingot_status
check_total(const Checkpoint *c, Error *err)
{
	const char *key = "split.tensors.count";
	const CkptFile *first = &c->files[0];
	int64_t total = 0;
	size_t i;
	ingot_status s =
	    get_count(first, key, true, CKPT_MAX_TENSORS, &total, err);

	for (i = 1; i < c->n_files && !s; i++)
		s = check_same(
		    &c->files[i], key, CKPT_MAX_TENSORS, first, total, err);
	if (s || (size_t)total == c->count)
		return s;
	return ckpt_fail(err, INGOT_BAD_FILE, first->path,
	    "%s is %" PRId64 ", but the parts hold %zu tensors", key, total,
	    c->count);
}

ingot_status
split_read(Checkpoint *c, bool allow_header_only, Error *err)
{
	size_t i;
	ingot_status s = ckpt_add_files(c, 1, err);

	if (!s)
		s = open_part(c, &c->files[0], c->path, err);
	if (!s)
		s = find_parts(c, err);
	for (i = 0; i < c->n_files && !s; i++)
		s = gguf_read_tensors(c, &c->files[i], allow_header_only, err);
	if (!s && c->n_files > 1)
		s = check_total(c, err);
	c->config = s ? NULL : c->files[0].keys;
	return s ? s : ckpt_index(c, err);
}
