#include "fingerprint.h"

#include <string.h>
#include <xxhash.h>

/* Keys that cannot change what a plan computes. */
static const char *const described[] = {"general.", "tokenizer.", "_",
    "transformers_version", "quantize.", "split.", NULL};

static bool
is_described(const char *key)
{
	if (strcmp(key, "general.architecture") == 0)
		return false;
	for (int i = 0; described[i]; i++)
		if (strncmp(key, described[i], strlen(described[i])) == 0)
			return true;
	return false;
}

static void
add_value(XXH64_state_t *x, const Value *v)
{
	XXH64_update(x, &v->kind, sizeof v->kind);
	switch (v->kind) {
	case VAL_NULL:
		break;
	case VAL_BOOL:
		XXH64_update(x, &v->u.boolean, sizeof v->u.boolean);
		break;
	case VAL_INT:
		XXH64_update(x, &v->u.integer, sizeof v->u.integer);
		break;
	case VAL_FLOAT:
		XXH64_update(x, &v->u.number, sizeof v->u.number);
		break;
	case VAL_STRING:
		XXH64_update(x, v->u.string.text, v->u.string.length);
		break;
	case VAL_ARRAY:
	case VAL_OBJECT:
		for (size_t i = 0; i < v->u.list.count; i++) {
			const Value *item = &v->u.list.items[i];

			if (item->key && is_described(item->key))
				continue;
			if (item->key)
				XXH64_update(
				    x, item->key, strlen(item->key) + 1);
			add_value(x, item);
		}
	}
}

static void
add_tensor(XXH64_state_t *x, const CkptTensor *t)
{
	XXH64_update(x, t->name, strlen(t->name) + 1);
	XXH64_update(x, t->type_name, strlen(t->type_name) + 1);
	XXH64_update(x, t->dims, (size_t)t->n_dims * sizeof t->dims[0]);
}

uint64_t
fingerprint_layout(const Checkpoint *c)
{
	XXH64_state_t *x = XXH64_createState();
	uint64_t hash;

	if (!x)
		return 0;
	XXH64_reset(x, 0);
	add_value(x, ckpt_config(c));
	for (size_t i = 0; i < ckpt_count(c); i++)
		add_tensor(x, ckpt_tensor(c, i));
	hash = XXH64_digest(x);
	XXH64_freeState(x);
	return hash;
}

uint64_t
fingerprint_data(const Checkpoint *c)
{
	enum { SAMPLE = 64 };
	uint64_t hash = 0;

	if (ckpt_header_only(c))
		return 0;
	for (size_t i = 0; i < ckpt_count(c); i++) {
		const CkptTensor *t = ckpt_tensor(c, i);
		uint64_t at = t->bytes / 2;

		if (t->data && t->bytes >= 2 * SAMPLE)
			hash = XXH64((const char *)t->data + at, SAMPLE, hash);
		else if (t->data)
			hash = XXH64(t->data, t->bytes, hash);
	}
	return hash ? hash : 1;
}
