#include "json.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

#include "checkpoint_impl.h"

enum { MAX_DEPTH = 64, MAX_BYTES = 1 << 28 };

typedef struct Convert {
	Pool *pool;
	const char *file;
	bool whole_floats; /* integers were read as doubles */
	Error *err;
} Convert;

static ingot_status convert(
    const Convert *cv, const json_t *j, int depth, Value *out);

static ingot_status
convert_text(const Convert *cv, const json_t *j, Value *out)
{
	size_t n = json_string_length(j);

	out->u.string.length = n;
	out->u.string.text = pool_text(cv->pool, json_string_value(j), n);
	return out->u.string.text ? INGOT_OK
				  : ckpt_no_memory(cv->file, cv->err);
}

static ingot_status
convert_array(const Convert *cv, const json_t *j, int depth, Value *out)
{
	size_t i, n = json_array_size(j);
	Value *items = pool_alloc(cv->pool, n, sizeof *items);
	ingot_status s = INGOT_OK;

	if (!items)
		return ckpt_no_memory(cv->file, cv->err);
	for (i = 0; i < n && !s; i++)
		s = convert(cv, json_array_get(j, i), depth, &items[i]);
	out->u.list.items = items;
	out->u.list.count = n;
	return s;
}

static ingot_status
convert_object(const Convert *cv, const json_t *j, int depth, Value *out)
{
	/* jansson's iterators want a json_t that is not const, and leave it
	 * as it is. */
	json_t *o = (json_t *)j;
	size_t i = 0, n = json_object_size(j);
	Value *items = pool_alloc(cv->pool, n, sizeof *items);
	ingot_status s = items ? INGOT_OK : ckpt_no_memory(cv->file, cv->err);
	void *it;

	for (it = json_object_iter(o); it && !s;
	     it = json_object_iter_next(o, it), i++) {
		const char *key = json_object_iter_key(it);

		items[i].key = pool_text(cv->pool, key, strlen(key));
		s = items[i].key ? convert(cv, json_object_iter_value(it),
				       depth, &items[i])
				 : ckpt_no_memory(cv->file, cv->err);
	}
	out->u.list.items = items;
	out->u.list.count = n;
	return s;
}

static void
convert_real(const Convert *cv, double d, Value *out)
{
	if (cv->whole_floats && fabs(d) <= 0x1p53 && d == floor(d)) {
		out->kind = VAL_INT;
		out->u.integer = (int64_t)d;
	} else {
		out->kind = VAL_FLOAT;
		out->u.number = d;
	}
}

/* Fills all of *out but the key. */
static ingot_status
convert(const Convert *cv, const json_t *j, int depth, Value *out)
{
	if (depth == MAX_DEPTH)
		return ckpt_fail(cv->err, INGOT_BAD_FILE, cv->file,
		    "is nested deeper than %d levels", MAX_DEPTH);
	switch (json_typeof(j)) {
	case JSON_OBJECT:
		out->kind = VAL_OBJECT;
		return convert_object(cv, j, depth + 1, out);
	case JSON_ARRAY:
		out->kind = VAL_ARRAY;
		return convert_array(cv, j, depth + 1, out);
	case JSON_STRING:
		out->kind = VAL_STRING;
		return convert_text(cv, j, out);
	case JSON_INTEGER:
		out->kind = VAL_INT;
		out->u.integer = json_integer_value(j);
		return INGOT_OK;
	case JSON_REAL:
		convert_real(cv, json_real_value(j), out);
		return INGOT_OK;
	case JSON_TRUE:
	case JSON_FALSE:
		out->kind = VAL_BOOL;
		out->u.boolean = json_is_true(j);
		return INGOT_OK;
	case JSON_NULL:
		break;
	}
	out->kind = VAL_NULL;
	return INGOT_OK;
}

static ingot_status
not_json(const char *file, const json_error_t *e, Error *err)
{
	Quote q;

	if (json_error_code(e) == json_error_out_of_memory)
		return ckpt_no_memory(file, err);
	return ckpt_fail(err, INGOT_BAD_FILE, file,
	    "is not valid JSON: line %d, column %d: %s", e->line, e->column,
	    quote(&q, e->text, strlen(e->text)));
}

ingot_status
json_read(Pool *pool, const char *file, const char *text, size_t length,
    const Value **out, Error *err)
{
	const size_t flags = JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL;
	Convert cv = {pool, file, false, err};
	json_error_t e;
	json_t *j;
	Value *v;
	ingot_status s;

	if (length > MAX_BYTES)
		return ckpt_fail(err, INGOT_UNSUPPORTED, file,
		    "has %zu bytes of JSON, more than %d", length, MAX_BYTES);
	j = json_loadb(length ? text : "", length, flags, &e);
	/* tokenizer_config.json often has a model_max_length of 10^30. */
	if (!j && json_error_code(&e) == json_error_numeric_overflow) {
		cv.whole_floats = true;
		j = json_loadb(
		    text, length, flags | JSON_DECODE_INT_AS_REAL, &e);
	}
	if (!j)
		return not_json(file, &e, err);
	v = pool_alloc(pool, 1, sizeof *v);
	if (!v)
		s = ckpt_no_memory(file, err);
	else if (!json_is_object(j))
		s = ckpt_fail(
		    err, INGOT_BAD_FILE, file, "must hold a JSON object");
	else
		s = convert(&cv, j, 0, v);
	json_decref(j);
	if (!s)
		*out = v;
	return s;
}
