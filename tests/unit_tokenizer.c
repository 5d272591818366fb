/* The tokenizer on text: ids against Hugging Face tokenizers, long runs,
 * normalisation, streaming, and the functions of ingot.h. */
#include <pthread.h>
#include <time.h>
#include <utf8proc.h>

#include "../runtime/nfc.h"
#include "../runtime/pattern.h"
#include "../runtime/utf8.h"
#include "made_checkpoint.h"

#define FIXTURES "tests/fixtures/"

static void
open_fixture(Made *m, const char *name)
{
	char path[128];

	memset(m, 0, sizeof *m);
	snprintf(
	    path, sizeof path, FIXTURES "%s-tokenizer/tokenizer.json", name);
	make_folder(m, parse_file(&m->c.pool, path), "{}", NULL, NULL);
	open_made(m);
}

/* ---- ids ---- */

static void
check_ids(const Tokenizer *t, const char *text, size_t length, bool specials,
    const Value *want, const char *what)
{
	uint32_t *ids;
	size_t count, i;
	Error err = {0};
	Quote q;
	bool equal;

	if (tok_encode(t, text, length, specials, &ids, &count, &err))
		fail_msg("%s: %s", what, err.text);
	equal = count == want->u.list.count;
	for (i = 0; equal && i < count; i++)
		equal = ids[i] == want->u.list.items[i].u.integer;
	if (!equal) {
		for (i = 0; i < count; i++)
			print_error(" %u", ids[i]);
		print_error(" but reference");
		for (i = 0; i < want->u.list.count; i++)
			print_error(
			    " %d", (int)want->u.list.items[i].u.integer);
		fail_msg("%s, specials %d: '%s'", what, specials,
		    quote(&q, text, length));
	}
	free(ids);
}

static const char *const names[] = {"demo", "qwen2", "qwen35"};

static const Value *
read_cases(Pool *pool)
{
	const Value *cases = value_get(
	    parse_file(pool, FIXTURES "tokenizer_cases.json"), "cases");

	assert_non_null(cases);
	assert_true(cases->u.list.count > 400);
	return cases;
}

static void
folder_ids(void **state)
{
	Pool pool = {0};
	const Value *cases = read_cases(&pool), *row;
	Made m;
	size_t i, k;

	(void)state;
	for (k = 0; k < 3; k++) {
		open_fixture(&m, names[k]);
		for (i = 0; i < cases->u.list.count; i++) {
			row = cases->u.list.items[i].u.list.items;
			check_ids(m.t, row->u.string.text, row->u.string.length,
			    true, &row[1 + k], names[k]);
			check_ids(m.t, row->u.string.text, row->u.string.length,
			    false,
			    &row[row[4 + k].kind == VAL_NULL ? 1 + k : 4 + k],
			    names[k]);
		}
		drop(&m);
	}
	pool_free(&pool);
}

/* The keys that a converter makes of tokenizer.json. */
static const Value *
gguf_keys(Pool *pool, const Value *file, const char *pre)
{
	static const char *const keys[] = {"tokenizer.ggml.model",
	    "tokenizer.ggml.pre", "tokenizer.ggml.tokens",
	    "tokenizer.ggml.token_type", "tokenizer.ggml.merges"};
	const Value *model = value_get(file, "model");
	const Value *vocab = value_get(model, "vocab");
	const Value *added = value_get(file, "added_tokens");
	size_t count = vocab->u.list.count + added->u.list.count, i, id;
	Value *root = pool_alloc(pool, 1, sizeof *root);
	Value *o = pool_alloc(pool, 5, sizeof *o);
	Value *tokens = pool_alloc(pool, count, sizeof *tokens);
	Value *types = pool_alloc(pool, count, sizeof *types);

	for (i = 0; i < count; i++) {
		tokens[i].kind = VAL_STRING;
		tokens[i].u.string.text = "";
		types[i].kind = VAL_INT;
		types[i].u.integer = 5;
	}
	for (i = 0; i < vocab->u.list.count; i++) {
		id = (size_t)vocab->u.list.items[i].u.integer;
		tokens[id].u.string.text = vocab->u.list.items[i].key;
		tokens[id].u.string.length = strlen(vocab->u.list.items[i].key);
		types[id].u.integer = 1;
	}
	for (i = 0; i < added->u.list.count; i++) {
		id =
		    (size_t)value_get(&added->u.list.items[i], "id")->u.integer;
		tokens[id] = *value_get(&added->u.list.items[i], "content");
		types[id].u.integer = 3;
	}
	for (i = 0; i < 5; i++) {
		o[i].kind = i < 2 ? VAL_STRING : VAL_ARRAY;
		o[i].key = keys[i];
	}
	o[0].u.string.text = "gpt2";
	o[0].u.string.length = strlen("gpt2");
	o[1].u.string.text = pre;
	o[1].u.string.length = strlen(pre);
	o[2].u.list.items = tokens;
	o[3].u.list.items = types;
	o[2].u.list.count = o[3].u.list.count = count;
	o[4].u.list = value_get(model, "merges")->u.list;
	root->kind = VAL_OBJECT;
	root->u.list.items = o;
	root->u.list.count = 5;
	return root;
}

/* Whether GGUF must give what the folder gives: the text is in form C, no
 * added token has a flag that GGUF lacks, and ignore_merges changes nothing. */
static bool
comparable(const Value *text)
{
	size_t n;
	char *normal;
	bool same;

	if (memchr(text->u.string.text, '<', text->u.string.length) ||
	    strstr(text->u.string.text, "n\xC3\xA9") ||
	    strstr(text->u.string.text, "unreachable"))
		return false;
	assert_int_equal(nfc_text(text->u.string.text, text->u.string.length,
			     &normal, &n, NULL),
	    INGOT_OK);
	same = n == text->u.string.length &&
	       memcmp(normal, text->u.string.text, n) == 0;
	free(normal);
	return same;
}

static void
gguf_ids(void **state)
{
	static const char *const pre[] = {"qwen35", "qwen2", "qwen35"};
	Pool pool = {0};
	const Value *cases = read_cases(&pool), *row;
	char path[128];
	size_t i, k, checked = 0;

	(void)state;
	for (k = 0; k < 3; k++) {
		Made m = {.c = {.kind = CKPT_GGUF, .path = "made.gguf"}};

		snprintf(path, sizeof path,
		    FIXTURES "%s-tokenizer/tokenizer.json", names[k]);
		m.c.config =
		    gguf_keys(&m.c.pool, parse_file(&m.c.pool, path), pre[k]);
		open_made(&m);
		for (i = 0; i < cases->u.list.count; i++) {
			row = cases->u.list.items[i].u.list.items;
			if (!comparable(row))
				continue;
			check_ids(m.t, row->u.string.text, row->u.string.length,
			    true, &row[1 + k], pre[k]);
			checked++;
		}
		drop(&m);
	}
	assert_true(checked > 600);
	pool_free(&pool);
}

/* Encodes, and checks that the bytes of the ids are the text. */
static size_t
round_trip(const Tokenizer *t, const char *text, size_t length)
{
	uint32_t *ids;
	size_t count, i, at = 0, n;
	const char *bytes;
	Error err = {0};

	if (tok_encode(t, text, length, true, &ids, &count, &err))
		fail_msg("%s", err.text);
	for (i = 0; i < count; i++) {
		bytes = tok_bytes(t, ids[i], &n);
		assert_true(n > 0 && n <= length - at);
		assert_memory_equal(text + at, bytes, n);
		at += n;
	}
	assert_int_equal(at, length);
	free(ids);
	return count;
}

static void
bytes_of_ids_are_the_text(void **state)
{
	Pool pool = {0};
	const Value *cases = read_cases(&pool), *text;
	Made m;
	size_t i;

	(void)state;
	open_fixture(&m, "demo");
	for (i = 0; i < cases->u.list.count; i++) {
		text = cases->u.list.items[i].u.list.items;
		round_trip(m.t, text->u.string.text, text->u.string.length);
	}
	drop(&m);
	pool_free(&pool);
}

/* ---- long runs ---- */

typedef struct Run {
	const char *unit, *tail;
	size_t count;
	size_t ids; /* 0: any number */
} Run;

static const Run runs[] = {
    {"Q", "", 1000000, 1000000},
    {"\n", "", 1000000, 0},
    {" ", "x", 1000000, 0},
    {"\t", "x", 1000000, 0},
    {"\xCC\x81", "", 500000, 0},
    {"\xCC\x81\xCC\xA3", "", 500000, 0},
    {".", "", 1000000, 0},
    {"a ", "", 500000, 0},
    {" \n", "x", 500000, 0},
    {"the", "", 400000, 0},
    {"<", "", 1000000, 0},
    {"<|im_end|", "", 200000, 0},
    {"<|im_end|>", "", 200000, 0},
    {"'", "s", 1000000, 0},
    {"\xE4\xBD\xA0", "", 400000, 0},
};

static double
seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static char *
repeat(const Run *r, size_t *length)
{
	size_t unit = strlen(r->unit), i;
	char *text = malloc(r->count * unit + strlen(r->tail) + 1);

	assert_non_null(text);
	for (i = 0; i < r->count; i++)
		memcpy(text + i * unit, r->unit, unit);
	strcpy(text + i * unit, r->tail);
	*length = r->count * unit + strlen(r->tail);
	return text;
}

static void *
encode_runs(void *tokenizer)
{
	char *text;
	size_t i, length, count;
	uint32_t *ids;
	double start, took;
	Error err = {0};

	for (i = 0; i < sizeof runs / sizeof *runs; i++) {
		text = repeat(&runs[i], &length);
		start = seconds();
		if (tok_encode(
			tokenizer, text, length, true, &ids, &count, &err)) {
			print_error("run %zu: %s\n", i, err.text);
			return tokenizer;
		}
		took = seconds() - start;
		free(ids);
		free(text);
		if (took > 5 || (runs[i].ids && count != runs[i].ids)) {
			print_error(
			    "run %zu: %zu ids, %.2f s\n", i, count, took);
			return tokenizer;
		}
	}
	return NULL;
}

/* Each in a thread with a small stack: nothing may recurse by length. */
static void
long_runs(void **state)
{
	pthread_attr_t attributes;
	pthread_t thread;
	void *failed;
	Made m;
	size_t k;

	(void)state;
	pthread_attr_init(&attributes);
	assert_int_equal(pthread_attr_setstacksize(&attributes, 256 * 1024), 0);
	for (k = 0; k < 3; k++) {
		open_fixture(&m, names[k]);
		assert_int_equal(
		    pthread_create(&thread, &attributes, encode_runs, m.t), 0);
		pthread_join(thread, &failed);
		assert_null(failed);
		drop(&m);
	}
	pthread_attr_destroy(&attributes);
}

static void
long_runs_come_back(void **state)
{
	Made m;
	char *text;
	size_t i, length;

	(void)state;
	open_fixture(&m, "demo");
	for (i = 0; i < sizeof runs / sizeof *runs; i++) {
		text = repeat(&runs[i], &length);
		round_trip(m.t, text, length);
		free(text);
	}
	drop(&m);
}

/* ---- normalisation, patterns ---- */

static void
nfc_is_the_librarys(void **state)
{
	Pool pool = {0};
	const Value *cases = read_cases(&pool), *v;
	size_t i, n, changed = 0;
	char *mine, *text;
	unsigned char *theirs;

	(void)state;
	for (i = 0; i < cases->u.list.count; i++) {
		v = cases->u.list.items[i].u.list.items;
		text = malloc(v->u.string.length * 2 + 1);
		assert_non_null(text);
		/* Twice, so that ends meet beginnings. */
		memcpy(text, v->u.string.text, v->u.string.length);
		memcpy(text + v->u.string.length, v->u.string.text,
		    v->u.string.length + 1);
		n = 2 * v->u.string.length;
		if (memchr(text, '\0', n)) {
			free(text);
			continue;
		}
		theirs = utf8proc_NFC((unsigned char *)text);
		assert_int_equal(nfc_text(text, n, &mine, &n, NULL), INGOT_OK);
		assert_int_equal(n, strlen((char *)theirs));
		assert_memory_equal(mine, theirs, n);
		changed += strcmp((char *)theirs, text) != 0;
		if (nfc_trivial(text, strlen(text)))
			assert_string_equal((char *)theirs, text);
		free(text);
		free(mine);
		free(theirs);
	}
	assert_true(changed > 20);
	pool_free(&pool);
}

static void
patterns(void **state)
{
	static const char *const bad[] = {"\\w+", "\\b", "a^", "a$", "[[a]]",
	    "[a&&b]", "(?<n>a)", "(?x)a", "(*UTF)a", "a{2}+", "a{,2}",
	    "\\p{Han}", "\\p{^L}", "\\pL", "\\h", "\\x41", "[]a]", "\\R", "a\\",
	    "\\p{L", "(?"};
	char *out;
	size_t i, n;
	Error err = {0};

	(void)state;
	for (i = 0; i < sizeof bad / sizeof *bad; i++) {
		assert_int_equal(
		    pattern_translate(bad[i], strlen(bad[i]), &out, &n, &err),
		    INGOT_UNSUPPORTED);
		assert_non_null(strstr(err.text, "is not covered"));
	}
	assert_int_equal(
	    pattern_translate("[\\S]\\p{Lu}{1,3}+?", 17, &out, &n, &err),
	    INGOT_UNSUPPORTED);
	assert_int_equal(
	    pattern_translate("[\\S](?i:\\p{Lu})", 15, &out, &n, &err), 0);
	assert_string_equal(out, "[\\S\\x{180E}](?i:\\p{Lu})");
	free(out);
}

/* ---- streaming ---- */

static const struct {
	const char *bytes, *text;
} streams[] = {
    {"abc", "abc"},
    {"\xC3\xA9\xE4\xBD\xA0\xF0\x9F\x99\x82", "\u00e9\u4f60\U0001f642"},
    {"\xFF", "\uFFFD"},
    {"\x80\xBF", "\uFFFD\uFFFD"},
    {"\xC0\xAF", "\uFFFD\uFFFD"},
    {"\xE2\x82", "\uFFFD"},
    {"\xE2\x82"
     "a",
	"\uFFFDa"},
    {"\xF0\x9F\x99", "\uFFFD"},
    {"\xF0\x9F\x99\xF0\x9F\x99\x82", "\uFFFD\U0001f642"},
    {"\xE0\x80\x80", "\uFFFD\uFFFD\uFFFD"},
    {"\xED\xA0\x80", "\uFFFD\uFFFD\uFFFD"},
    {"\xF4\x90\x80\x80", "\uFFFD\uFFFD\uFFFD\uFFFD"},
    {"\xF5\x80", "\uFFFD\uFFFD"},
    /* The example of the Unicode standard, table 3-11. */
    {"\xE1\x80\xE2\xF0\x91\x92\xF1\xBF"
     "A",
	"\uFFFD\uFFFD\uFFFD\uFFFDA"},
};

/* Pushes bytes in pieces of at most step, checking each write by itself. */
static void
check_stream(const char *bytes, size_t step, const char *want)
{
	Utf8Stream s = {{0}, 0};
	size_t length = strlen(bytes), i, n, m, at = 0;
	char out[64], *end;

	for (i = 0; i < length; i += n) {
		n = step < length - i ? step : length - i;
		end = out + at;
		m = utf8_push(&s, bytes + i, n, end);
		assert_int_equal(utf8_valid(end, m), m);
		assert_true(m <= 3 * (n + 4));
		at += m;
	}
	at += utf8_finish(&s, out + at);
	assert_int_equal(utf8_finish(&s, out + at), 0);
	out[at] = '\0';
	assert_string_equal(out, want);
}

static void
streaming(void **state)
{
	size_t i, step;

	(void)state;
	for (i = 0; i < sizeof streams / sizeof *streams; i++)
		for (step = 1; step < 10; step++)
			check_stream(streams[i].bytes, step, streams[i].text);
}

/* ---- the public face ---- */

static void
public_functions(void **state)
{
	static const char path[] = FIXTURES "qwen3-tiny/model-bf16.gguf";
	ingot_tokenizer *t;
	ingot_error err = {0};
	uint32_t ids[8] = {0};
	size_t count, n;

	(void)state;
	if (ingot_tokenizer_open(path, &t, &err))
		fail_msg("%s", err.text);
	assert_int_equal(
	    ingot_encode(t, "th<|im_end|>!", 13, 1, ids, 8, &count, &err), 0);
	assert_int_equal(count, 3);
	assert_int_equal(ids[1], 2);
	assert_int_equal(ids[0], tok_id(tokenizer_of(t), "th"));
	assert_memory_equal(ingot_token_bytes(t, ids[0], &n), "th", 2);
	assert_int_equal(n, 2);
	ids[1] = 77;
	assert_int_equal(
	    ingot_encode(t, "th!!", 4, 1, ids, 1, &count, &err), 0);
	assert_int_equal(count, 3);
	assert_int_equal(ids[1], 77);
	assert_int_equal(
	    ingot_encode(t, "<|im_end|>", 10, 0, NULL, 0, &count, &err), 0);
	assert_true(count > 1);
	assert_true(ingot_is_stop(t, 2) && ingot_is_stop(t, 0));
	assert_false(ingot_is_stop(t, 1) || ingot_is_stop(t, 11));
	ingot_tokenizer_close(t);
	assert_int_not_equal(ingot_tokenizer_open("/nowhere", &t, &err), 0);
	assert_null(t);
	ingot_tokenizer_close(NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(folder_ids),
	    cmocka_unit_test(gguf_ids),
	    cmocka_unit_test(bytes_of_ids_are_the_text),
	    cmocka_unit_test(long_runs),
	    cmocka_unit_test(long_runs_come_back),
	    cmocka_unit_test(nfc_is_the_librarys),
	    cmocka_unit_test(patterns),
	    cmocka_unit_test(streaming),
	    cmocka_unit_test(public_functions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
