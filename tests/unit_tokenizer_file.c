/* The tokenizer on small vocabularies: what the keys of a file mean, and the
 * sentence with which each kind of bad file is refused. */
#include "made_checkpoint.h"

#define K "tokenizer.ggml."
#define HEAD "{\"" K "model\":\"gpt2\",\"" K "pre\":\"qwen2\","
#define TOKENS(list) "\"" K "tokens\":[" list "],"
#define TYPES(list) "\"" K "token_type\":[" list "]"
#define MERGES(list) ",\"" K "merges\":[" list "]"

#define SMALL                                                                  \
	HEAD TOKENS("\"a\",\"b\",\"ab\",\"<|im_end|>\",\"<u>\",\"pad\","       \
		    "\"<0x0A>\",\"\\u0120\",\"<unk>\"")                        \
	    TYPES("1,1,1,3,4,5,6,1,2")

static void
check_text(
    const Tokenizer *t, const char *text, bool specials, const char *want)
{
	uint32_t *ids;
	size_t count, i, n = 0;
	char got[256] = "";
	Error err = {0};

	if (tok_encode(t, text, strlen(text), specials, &ids, &count, &err))
		n = (size_t)snprintf(got, sizeof got, "%s", err.text);
	for (i = 0; i < count; i++)
		n += (size_t)snprintf(
		    got + n, sizeof got - n, i ? " %u" : "%u", ids[i]);
	assert_string_equal(got, want);
	free(ids);
}

static void
token_types(void **state)
{
	Made m;
	size_t n;

	(void)state;
	make_gguf(&m, SMALL MERGES("\"a b\"") "}");
	open_made(&m);
	assert_int_equal(tok_count(m.t), 9);
	check_text(m.t, "abba<u>\n ba", true, "2 1 0 4 6 7 1 0");
	check_text(m.t, "a<|im_end|>b<unk>", true, "0 3 1 8");
	check_text(m.t, "a<u>", false, "0 4");
	check_text(m.t, "a<|im_end|>", false,
	    "the vocabulary has no token for byte 0x3C, which the text holds");
	check_text(m.t, "a\xFF", false, "the text is not UTF-8 at byte 1");
	check_text(m.t, "ab\xE2\x82", false, "the text is not UTF-8 at byte 2");
	assert_true(tok_is_control(m.t, 3) && tok_is_control(m.t, 8));
	assert_false(tok_is_control(m.t, 4) || tok_is_control(m.t, 0) ||
		     tok_is_control(m.t, 9));
	assert_false(tok_is_token(m.t, 5) || tok_is_token(m.t, 9));
	assert_true(tok_is_token(m.t, 8));
	assert_memory_equal(tok_bytes(m.t, 6, &n), "\n", 1);
	assert_int_equal(n, 1);
	assert_memory_equal(tok_bytes(m.t, 7, &n), " ", 1);
	assert_memory_equal(tok_bytes(m.t, 3, &n), "<|im_end|>", 10);
	tok_bytes(m.t, 5, &n);
	assert_int_equal(n, 0);
	tok_bytes(m.t, 4000000000, &n);
	assert_int_equal(n, 0);
	assert_int_equal(tok_id(m.t, "<|im_end|>"), 3);
	assert_int_equal(tok_id(m.t, "ab"), 2);
	assert_int_equal(tok_id(m.t, "pad"), -1);
	drop(&m);
}

/* A merge must not forge a special token out of text. */
static void
text_never_becomes_special(void **state)
{
	static const char json[] = HEAD TOKENS("\"a\",\"b\",\"ab\",\"aba\"")
	    TYPES("1,1,3,1") MERGES("\"a b\",\"b a\",[\"a\",\"ba\"]") "}";
	static const char good[] = HEAD TOKENS("\"a\",\"b\",\"ab\",\"ba\"")
	    TYPES("1,1,3,1") MERGES("\"a b\",\"b a\"") "}";
	Made m;

	(void)state;
	make_gguf(&m, json);
	assert_int_equal(tok_open(&m.c, &m.t, &m.err), INGOT_BAD_FILE);
	drop(&m);
	make_gguf(&m, good);
	open_made(&m);
	check_text(m.t, "aba", true, "2 0");
	check_text(m.t, "aba", false, "0 3");
	drop(&m);
}

static void
without_merges(void **state)
{
	Made m;
	uint32_t *ids;
	size_t n;

	(void)state;
	make_gguf(&m, SMALL "}");
	open_made(&m);
	assert_false(tok_can_encode(m.t));
	assert_int_equal(
	    tok_encode(m.t, "a", 1, true, &ids, &n, &m.err), INGOT_UNSUPPORTED);
	assert_non_null(strstr(m.err.text, "no merge list"));
	drop(&m);
	/* No merges at all: bytes, and no pre-tokenizer is needed. */
	make_gguf(&m, "{\"" K "model\":\"gpt2\"," TOKENS("\"a\",\"b\",\"ab\"")
			  TYPES("1,1,1") MERGES("") "}");
	open_made(&m);
	assert_true(tok_can_encode(m.t));
	check_text(m.t, "abba", true, "0 1 1 0");
	check_text(m.t, "", true, "");
	drop(&m);
	make_gguf(&m, "{\"general.architecture\":\"qwen3\"}");
	assert_int_equal(tok_open(&m.c, &m.t, &m.err), INGOT_OK);
	assert_null(m.t);
	drop(&m);
}

static void
check_stops(Made *m, const char *want, int64_t bos)
{
	const uint32_t *ids;
	size_t count, i, n = 0;
	char got[64] = "";

	open_made(m);
	ids = tok_stop_ids(m->t, &count);
	for (i = 0; i < count; i++)
		n += (size_t)snprintf(
		    got + n, sizeof got - n, i ? " %u" : "%u", ids[i]);
	assert_string_equal(got, want);
	assert_int_equal(tok_bos(m->t), bos);
	drop(m);
}

#define FOLDER                                                                 \
	"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"c\":12},"   \
	"\"merges\":[]},\"added_tokens\":[{\"id\":2,\"content\":"              \
	"\"<|im_end|>\",\"special\":true},{\"id\":11,\"content\":\"<s>\","     \
	"\"special\":true}],\"pre_tokenizer\":{\"type\":\"ByteLevel\","        \
	"\"add_prefix_space\":false},\"decoder\":{\"type\":\"ByteLevel\"}"

static void
check_folder_stops(const char *tail, const char *config, const char *generation,
    const char *tokenizer, const char *want, int64_t bos)
{
	Made m = {0};
	char json[1024];

	snprintf(json, sizeof json, "%s%s}", FOLDER, tail);
	make_folder(&m, parse(&m.c.pool, json, strlen(json)), config,
	    generation, tokenizer);
	check_stops(&m, want, bos);
}

static void
stop_ids(void **state)
{
	Made m;

	(void)state;
	make_gguf(&m, SMALL "}");
	check_stops(&m, "3", -1);
	make_gguf(&m,
	    SMALL ",\"" K "eos_token_id\":0,\"" K "eot_token_id\":3,\"" K
		  "eom_token_id\":1,\"" K "bos_token_id\":2}");
	check_stops(&m, "0 3 1", -1);
	make_gguf(
	    &m, SMALL ",\"" K "add_bos_token\":true,\"" K "bos_token_id\":2}");
	check_stops(&m, "3", 2);
	make_gguf(&m, SMALL ",\"" K "add_bos_token\":true}");
	check_stops(&m, "3", -1);
	check_folder_stops("", "{}", NULL, NULL, "2", -1);
	check_folder_stops("",
	    "{\"eos_token_id\":0,\"text_config\":{\"eos_token_id\":[1,0]}}",
	    "{\"eos_token_id\":[12,2]}", NULL, "0 1 12 2", -1);
	check_folder_stops("", "{\"eos_token_id\":null}", "{}",
	    "{\"add_bos_token\":true,\"bos_token\":\"<s>\"}", "2", 11);
	check_folder_stops("", "{}", NULL,
	    "{\"add_bos_token\":true,\"bos_token\":{\"content\":\"a\"}}", "2",
	    0);
	check_folder_stops("", "{\"bos_token_id\":0}", NULL,
	    "{\"add_bos_token\":false,\"bos_token\":\"<s>\"}", "2", -1);
	check_folder_stops(",\"post_processor\":{\"type\":"
			   "\"TemplateProcessing\",\"single\":[{"
			   "\"SpecialToken\":{\"id\":\"<s>\"}},{\"Sequence\":"
			   "{\"id\":\"A\"}}]}",
	    "{}", NULL, NULL, "2", 11);
}

/* ---- refusals ---- */

typedef struct Bad {
	const char *json, *says;
	ingot_status status; /* 0: INGOT_BAD_FILE */
} Bad;

#define ONE TOKENS("\"a\"") TYPES("1")
#define PRE(x) "{\"" K "model\":\"gpt2\"," x

static const Bad bad_gguf[] = {
    {"{\"" K "model\":\"llama\"}", K "model is 'llama'", INGOT_UNSUPPORTED},
    {"{\"" K "model\":1}", K "model is no string", 0},
    {HEAD TYPES("1") "}", K "tokens is missing", 0},
    {HEAD "\"" K "tokens\":3," TYPES("1") "}", K "tokens is no list", 0},
    {HEAD "\"" K "tokens\":[\"a\"]}", K "token_type is missing", 0},
    {HEAD TOKENS("\"a\",\"b\"") TYPES("1") "}",
	"token_type has 1 elements, but " K "tokens has 2", 0},
    {HEAD TOKENS("") TYPES("") "}", "0 elements", 0},
    {HEAD TOKENS("\"a\",7") TYPES("1,1") "}", "token 1 of", 0},
    {HEAD TOKENS("\"a\"") TYPES("7") "}", "token 0 is none of 1 to 6", 0},
    {HEAD TOKENS("\"a\"") TYPES("\"x\"") "}", "none of 1 to 6", 0},
    {HEAD TOKENS("\"a\",\"b\",\"a\"") TYPES("1,1,1") "}",
	"tokens 0 and 2 are the same, 'a'", 0},
    {HEAD TOKENS("\"<x>\",\"<x>\"") TYPES("3,4") "}", "are the same", 0},
    {PRE(ONE MERGES("\"a a\"") "}"), K "pre is missing", INGOT_UNSUPPORTED},
    {PRE("\"" K "pre\":\"llama-bpe\"," ONE MERGES("") "}"),
	K "pre is 'llama-bpe'", INGOT_UNSUPPORTED},
    {PRE("\"" K "pre\":5," ONE MERGES("") "}"), K "pre is no string", 0},
    {HEAD ONE ",\"" K "merges\":true}", K "merges is no list", 0},
    {HEAD ONE MERGES("\"a z\"") "}", "merge 0 names 'z', which is no token", 0},
    {HEAD ONE MERGES("\"z a\"") "}", "merge 0 names 'z'", 0},
    {HEAD ONE MERGES("\"a a\"") "}", "makes no token", 0},
    {HEAD ONE MERGES("\"aa\"") "}", "merge 0 is no pair", 0},
    {HEAD ONE MERGES("\"a \"") "}", "merge 0 is no pair", 0},
    {HEAD ONE MERGES("3") "}", "merge 0 is no pair", 0},
    {HEAD ONE MERGES("[\"a\"]") "}", "merge 0 is no pair", 0},
    {HEAD ONE MERGES("[\"a\",1]") "}", "merge 0 is no pair", 0},
    {HEAD TOKENS("\"a\",\"aa\"") TYPES("1,1") MERGES("\"a a\",\"a a\"") "}",
	"merges 0 and 1 are the same", 0},
    {HEAD ONE ",\"" K "eos_token_id\":1}",
	K "eos_token_id is 1, but the vocabulary has 1 tokens", 0},
    {HEAD ONE ",\"" K "eot_token_id\":-1}", K "eot_token_id is -1", 0},
    {HEAD ONE ",\"" K "eom_token_id\":\"a\"}",
	K "eom_token_id is not a token id", 0},
    {HEAD ONE ",\"" K "add_bos_token\":1}",
	K "add_bos_token is not true or false", 0},
    {HEAD ONE ",\"" K "add_bos_token\":true,\"" K "bos_token_id\":9}",
	K "bos_token_id is 9", 0},
    {HEAD ONE ",\"" K "add_eos_token\":true}", "add_eos_token is true",
	INGOT_UNSUPPORTED},
};

static void
check_refused(Made *m, const Bad *b)
{
	ingot_status want = b->status ? b->status : INGOT_BAD_FILE;
	ingot_status s = tok_open(&m->c, &m->t, &m->err);

	if (s != want || !strstr(m->err.text, b->says))
		fail_msg("%s\ngave %d '%s', not %d '%s'", b->json, s,
		    m->err.text, want, b->says);
	assert_null(m->t);
	drop(m);
}

static void
refused_gguf(void **state)
{
	Made m;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof bad_gguf / sizeof *bad_gguf; i++) {
		make_gguf(&m, bad_gguf[i].json);
		check_refused(&m, &bad_gguf[i]);
	}
}

#define MODEL(x) "{\"model\":{\"type\":\"BPE\"," x "}"
#define VOCAB "\"vocab\":{\"a\":0},\"merges\":[]"
#define LEVEL                                                                  \
	",\"pre_tokenizer\":{\"type\":\"ByteLevel\"},"                         \
	"\"decoder\":{\"type\":\"ByteLevel\"}"
#define ADDED(x) MODEL(VOCAB) LEVEL ",\"added_tokens\":[" x "]}"
#define SPLIT(x)                                                               \
	MODEL(VOCAB)                                                           \
	",\"pre_tokenizer\":{\"type\":\"Sequence\","                           \
	"\"pretokenizers\":[{\"type\":\"Split\"," x                            \
	"},{\"type\":\"ByteLevel\",\"use_regex\":false}]}}"

static const Bad bad_folder[] = {
    {"{}", "model.type ''", INGOT_UNSUPPORTED},
    {"{\"model\":{\"type\":\"Unigram\"}}", "model.type 'Unigram'",
	INGOT_UNSUPPORTED},
    {MODEL("\"dropout\":0.1," VOCAB) "}", "'dropout'", INGOT_UNSUPPORTED},
    {MODEL("\"byte_fallback\":true," VOCAB) "}", "'byte_fallback'",
	INGOT_UNSUPPORTED},
    {MODEL("\"end_of_word_suffix\":\"</w>\"," VOCAB) "}",
	"'end_of_word_suffix'", INGOT_UNSUPPORTED},
    {MODEL("\"ignore_merges\":1," VOCAB) "}",
	"ignore_merges is not true or false", 0},
    {MODEL("\"vocab\":{}") "}", "model.vocab has no tokens", 0},
    {MODEL("\"vocab\":[]") "}", "vocab is no object", 0},
    {MODEL("\"vocab\":{\"a\":-1}") "}", "the id of token 'a'", 0},
    {MODEL("\"vocab\":{\"a\":9999999999}") "}", "the id of token 'a'", 0},
    {MODEL("\"vocab\":{\"a\":\"0\"}") "}", "the id of token 'a'", 0},
    {MODEL("\"vocab\":{\"a\":0,\"b\":0}") "}",
	"tokens 'a' and 'b' have the same id, 0", 0},
    {MODEL("\"vocab\":{\"a\":0},\"merges\":7") LEVEL "}", "merges is no list",
	0},
    {ADDED("{\"content\":\"x\"}"), "the id of token 'x'", 0},
    {ADDED("{\"id\":1}"), "added token 1 has no content", 0},
    {ADDED("{\"id\":0,\"content\":\"x\"}"), "have the same id", 0},
    {ADDED("{\"id\":1,\"content\":\"x\"},{\"id\":1,\"content\":\"y\"}"),
	"have the same id", 0},
    {ADDED("{\"id\":1,\"content\":\"x\"},{\"id\":2,\"content\":\"x\"}"),
	"are the same, 'x'", 0},
    {ADDED("{\"id\":1,\"content\":\"x\",\"single_word\":true}"),
	"single_word of added token 'x'", INGOT_UNSUPPORTED},
    {ADDED("{\"id\":1,\"content\":\"x\",\"special\":2}"),
	"special is not true or false", 0},
    {"{\"normalizer\":{\"type\":\"NFKC\"},\"model\":{}}", "normalizer 'NFKC'",
	INGOT_UNSUPPORTED},
    {"{\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":"
     "\"NFC\"},{\"type\":\"Strip\"}]},\"model\":{}}",
	"normalizer 'Strip'", INGOT_UNSUPPORTED},
    {MODEL(VOCAB) ",\"pre_tokenizer\":{\"type\":\"Metaspace\"}}",
	"pre-tokenizer 'Metaspace'", INGOT_UNSUPPORTED},
    {MODEL(VOCAB) "}", "does not end with ByteLevel", INGOT_UNSUPPORTED},
    {MODEL(VOCAB) ",\"pre_tokenizer\":{\"type\":\"ByteLevel\","
		  "\"add_prefix_space\":true}}",
	"'add_prefix_space'", INGOT_UNSUPPORTED},
    {MODEL(VOCAB) ",\"pre_tokenizer\":{\"type\":\"ByteLevel\"}}", "decoder ''",
	INGOT_UNSUPPORTED},
    {MODEL(VOCAB) ",\"pre_tokenizer\":{\"type\":\"ByteLevel\"},"
		  "\"decoder\":{\"type\":\"Metaspace\"}}",
	"decoder 'Metaspace'", INGOT_UNSUPPORTED},
    {SPLIT("\"pattern\":{\"String\":\" \"}"),
	"pattern of pre-tokenizer 'Split'", INGOT_UNSUPPORTED},
    {SPLIT("\"pattern\":{\"Regex\":\"a\"},\"behavior\":\"Removed\""),
	"behavior of Split 'Removed'", INGOT_UNSUPPORTED},
    {SPLIT("\"pattern\":{\"Regex\":\"a\"},\"behavior\":\"Isolated\","
	   "\"invert\":true"),
	"'invert'", INGOT_UNSUPPORTED},
    {SPLIT("\"pattern\":{\"Regex\":\"\\\\w\"},\"behavior\":\"Isolated\""),
	"uses '\\w' at byte 0", INGOT_UNSUPPORTED},
    {SPLIT("\"pattern\":{\"Regex\":\"(a\"},\"behavior\":\"Isolated\""),
	"does not compile", INGOT_UNSUPPORTED},
    {MODEL(VOCAB) LEVEL ",\"post_processor\":{\"type\":"
			"\"BertProcessing\"}}",
	"post-processor 'BertProcessing'", INGOT_UNSUPPORTED},
};

static void
refused_folder(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < sizeof bad_folder / sizeof *bad_folder; i++) {
		Made m = {0};

		make_folder(&m,
		    parse(&m.c.pool, bad_folder[i].json,
			strlen(bad_folder[i].json)),
		    "{}", NULL, NULL);
		check_refused(&m, &bad_folder[i]);
	}
}

static void
refused_ids(void **state)
{
	static const Bad bad[] = {
	    {"{\"eos_token_id\":13}", "eos_token_id of config.json is 13", 0},
	    {"{\"text_config\":{\"eos_token_id\":[1,\"x\"]}}",
		"eos_token_id of config.json is not a token id", 0},
	};
	size_t i;

	(void)state;
	for (i = 0; i < 2; i++) {
		Made m = {0};

		make_folder(&m,
		    parse(&m.c.pool, FOLDER "}", strlen(FOLDER "}")),
		    bad[i].json, NULL, NULL);
		check_refused(&m, &bad[i]);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(token_types),
	    cmocka_unit_test(text_never_becomes_special),
	    cmocka_unit_test(without_merges),
	    cmocka_unit_test(stop_ids),
	    cmocka_unit_test(refused_gguf),
	    cmocka_unit_test(refused_folder),
	    cmocka_unit_test(refused_ids),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
