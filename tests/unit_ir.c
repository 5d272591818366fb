/* The graph: arenas, inference, verifier, text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../ir/diag.h"
#include "../ir/ir.h"
#include "infer_cases.h"
#include "random_graph.h"

/* ---- arena and diag ---- */

static void
test_arena(void **state)
{
	Arena *a = arena_new();
	char *last = NULL;
	size_t n, i;

	(void)state;
	for (n = 1; n < 200000; n += 997) {
		char *p = arena_alloc(a, n);

		assert_int_equal((uintptr_t)p % _Alignof(max_align_t), 0);
		for (i = 0; i < n; i++)
			assert_int_equal(p[i], 0);
		memset(p, 0xff, n);
		assert_ptr_not_equal(p, last);
		last = p;
	}
	assert_string_equal(arena_strdup(a, "abc"), "abc");
	assert_string_equal(arena_strndup(a, "abc", 2), "ab");
	assert_string_equal(arena_printf(a, "%d-%s", 7, "x"), "7-x");
	assert_non_null(arena_array(a, 0, 8));
	arena_free(a);
	arena_free(NULL);
}

static void
test_err(void **state)
{
	Node n = {.file = "m.lua", .line = 9};
	static Diag d;

	(void)state;
	if (setjmp(d.jump) == 0)
		err(&d, 3, &n, "no kernel for %s", "rope");
	assert_string_equal(d.text, "m.lua:9: no kernel for rope");
	assert_int_equal(d.exit_code, 3);
	if (setjmp(d.jump) == 0)
		err(&d, 1, NULL, "%2000d", 1);
	assert_int_equal(strlen(d.text), sizeof d.text - 1);
}

static void
test_op_table(void **state)
{
	int op;

	(void)state;
	for (op = 0; op < OP_COUNT; op++)
		assert_int_equal(op_by_name(ops[op].name), op);
	assert_int_equal(op_by_name("conv2d"), OP_COUNT);
	assert_int_equal(attr_count, 11);
}

/* ---- inference ---- */

/* The op of a case may be refused before it is known. */
static Op
case_op(const char *node)
{
	char name[32] = {0};

	memcpy(name, node, strcspn(node, " "));
	return op_by_name(name);
}

static Graph *
parse_with(Arena *a, const char *node, char *why)
{
	char *text = node == NULL ? arena_strdup(a, prelude)
				  : arena_printf(a, "%s%%%d = %s\n", prelude,
					PRELUDE_NODES, node);

	return graph_parse(a, text, strlen(text), why);
}

static void
test_infer(void **state)
{
	int accepted[OP_COUNT + 1] = {0}, refused[OP_COUNT + 1] = {0};
	size_t i;
	int op;

	(void)state;
	/* The one delta rule that fits; made by hand for want of [T,4,32]. */
	accepted[OP_DELTA_RULE]++;
	for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		Arena *a = arena_new();
		char why[512] = "";
		Graph *g = parse_with(a, cases[i].node, why);
		const char *got = strstr(why, ": ");

		if (cases[i].why == NULL) {
			if (g == NULL)
				fail_msg("%s: %s", cases[i].node, why);
			accepted[case_op(cases[i].node)]++;
		} else {
			if (g != NULL)
				fail_msg("accepted: %s", cases[i].node);
			assert_string_equal(got + 2, cases[i].why);
			refused[case_op(cases[i].node)]++;
		}
		arena_free(a);
	}
	for (op = 0; op < OP_COUNT; op++)
		if (accepted[op] == 0 || refused[op] == 0)
			fail_msg("%s: a case is missing", ops[op].name);
}

static void
test_infer_delta_rule(void **state)
{
	static const Type want = {DT_F32, 3, {DIM_T, 4, 8}};
	Node q = {.op = OP_EXP, .type = {DT_F32, 3, {DIM_T, 2, 16}}};
	Node v = {.op = OP_EXP, .type = want};
	Node decay = {.op = OP_EXP, .type = {DT_F32, 2, {DIM_T, 4}}};
	Node s = {.op = OP_STATE, .type = {DT_F32, 4, {DIM_B, 4, 16, 8}}};
	Node *in[] = {&q, &q, &v, &decay, &decay, &s};
	char why[512];
	Attrs none = {0};
	Type t;

	(void)state;
	assert_true(infer(OP_DELTA_RULE, in, &none, &t, why));
	assert_true(type_equal(&t, &want));
	v.type.dim[1] = 3;
	assert_false(infer(OP_DELTA_RULE, in, &none, &t, why));
	assert_non_null(strstr(why, "hv a multiple of hk"));
}

/* A norm's weight must not match x by two symbols being equal. */
static void
test_infer_symbols(void **state)
{
	Node x = {.op = OP_EXP, .type = {DT_F32, 1, {DIM_T}}};
	Node *in[] = {&x, &x};
	Attrs a = {.eps = 1};
	char why[512];
	Type t;

	(void)state;
	assert_false(infer(OP_RMS_NORM, in, &a, &t, why));
	assert_false(infer(OP_L2_NORM, in, &a, &t, why));
	assert_false(infer(OP_QUANTISE, in, &a, &t, why));
}

/* The longest sentence: no overflow, and it still ends in its reason. */
static void
test_longest_sentence(void **state)
{
	const int64_t big = 1000000000;
	Node x = {.op = OP_EXP, .type = {DT_F32, 4, {big, big, big, big}}};
	Node *in[] = {&x, &x, &x, &x, &x, &x};
	Attrs none = {0};
	char why[512];
	Type t;

	(void)state;
	assert_false(infer(OP_DELTA_RULE, in, &none, &t, why));
	assert_non_null(strstr(why, "q must have 3 axes"));
}

/* ---- verifier ---- */

static const char *
verdict(Graph *g)
{
	const char *why = verify(g);

	return why != NULL ? why : "valid";
}

static Graph *
valid_graph(Arena *a)
{
	char why[512];
	Graph *g = parse_with(a, "linear %31 %9 : f32[R,4]", why);

	assert_non_null(g);
	g->result = g->nodes[PRELUDE_NODES];
	assert_string_equal(verdict(g), "valid");
	return g;
}

/* Node id of the prelude's graph, made wrong one way at a time. */
#define WRONG(id, sentence, ...)                                               \
	do {                                                                   \
		Arena *a = arena_new();                                        \
		Graph *g = valid_graph(a);                                     \
		Node *n = g->nodes[id];                                        \
                                                                               \
		(void)n;                                                       \
		__VA_ARGS__;                                                   \
		assert_string_equal(verdict(g), sentence);                     \
		arena_free(a);                                                 \
	} while (0)

static void
test_verify_order(void **state)
{
	(void)state;
	WRONG(5, "node 5 of the list calls itself 6", n->id = 6);
	WRONG(5, "%5 has no op", n->op = OP_COUNT);
	WRONG(13, "%13 linear: an input is missing", n->in[1] = NULL);
	WRONG(13, "%13 linear: too many inputs", n->in[2] = n->in[1]);
	WRONG(13, "%13 linear: an input does not come before it",
	    n->in[0] = g->nodes[31]);
	WRONG(13, "%13 linear: an input does not come before it",
	    n->in[0] = memcpy(arena_alloc(a, sizeof *n), n->in[0], sizeof *n));
}

static void
test_verify_types(void **state)
{
	(void)state;
	WRONG(13, "%13 linear: typed f32[T,5] but is f32[T,4]",
	    n->type.dim[1] = 5);
	WRONG(14,
	    "%14 top_k: logits is f32[T,4]: k must be 1 to the length of the "
	    "last axis",
	    n->attr.k = 9);
	WRONG(13, "%13 linear: it has no attribute k", n->attr.k = 2);
	WRONG(14, "%14 top_k: it has no attribute renormalise",
	    n->attr.renormalise = true);
}

static void
test_verify_leaves(void **state)
{
	(void)state;
	WRONG(1, "%1 input: its name is taken", n->name = "tokens");
	WRONG(1, "%1 input: it has no name", n->name = NULL);
	WRONG(5, "%5 weight: no weight has its name", n->name = "lost");
	WRONG(22, "%22 state: its name is taken", n->name = "k");
	WRONG(5,
	    "%5 weight: \"vector\" is declared bf16[64] but used as f32[64]",
	    g->weights[1].type.dtype = DT_BF16);
	WRONG(5, "weight \"router\": made of nothing",
	    g->weights[5].n_pieces = 0);
	WRONG(5, "weight \"quant\": mapped, but not f32",
	    g->weights[4].map = MAP_NEG_EXP);
	WRONG(5, "weight \"table\": an unknown map",
	    g->weights[0].map = (WeightMap)9);
	WRONG(5, "weight \"vector\": declared twice",
	    graph_add_weight(g, &g->weights[1]));
}

static void
test_verify_states(void **state)
{
	char why[512];

	(void)state;
	WRONG(28, "%28 append: the state it writes has another reader",
	    assert_non_null(
		graph_add(g, OP_APPEND, n->in, NULL, NULL, NULL, why)));
	WRONG(28, "%28 append: the state it writes has another reader",
	      Attrs scale = {.scale = 1};
	      Node * in[3] = {g->nodes[16], g->nodes[21], g->nodes[21]};
	      assert_non_null(
		  graph_add(g, OP_ATTENTION, in, &scale, NULL, NULL, why)));
	WRONG(22, "valid", Attrs scale = {.scale = 1};
	      Node * in[3] = {g->nodes[16], n, n}; assert_non_null(
		  graph_add(g, OP_ATTENTION, in, &scale, NULL, NULL, why)));
}

static void
test_verify_result(void **state)
{
	(void)state;
	WRONG(0, "the graph has no result", g->result = NULL);
	WRONG(PRELUDE_NODES, "the result is not a node of the graph",
	    g->result = memcpy(arena_alloc(a, sizeof *n), n, sizeof *n));
	WRONG(13, "%13 linear: the result is f32[T,4], not f32[R,4]",
	    g->result = n);
	WRONG(13, "%33 linear: the result is f32[R,4], not f32[R,5]",
	    g->vocab = 5);
}

/* ---- text ---- */

static char *
text_of(const Graph *g)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	graph_print(g, out);
	assert_int_equal(fclose(out), 0);
	return text;
}

static void
test_round_trip(void **state)
{
	int used[OP_COUNT] = {0};
	char why[512] = "";
	uint64_t seed;
	uint32_t i;

	(void)state;
	for (seed = 1; seed <= 60; seed++) {
		Arena *a = arena_new();
		Graph *g = random_graph(a, seed, 2000), *h;
		char *once = text_of(g), *twice;

		for (i = 0; i < g->count; i++)
			used[g->nodes[i]->op]++;
		assert_string_equal(verdict(g), "valid");
		h = graph_parse(a, once, strlen(once), why);
		assert_string_equal(why, "");
		twice = text_of(h);
		assert_string_equal(once, twice);
		assert_string_equal(verdict(h), "valid");
		free(once);
		free(twice);
		arena_free(a);
	}
	for (i = 0; i < OP_COUNT; i++)
		if (used[i] == 0 && i != OP_DELTA_RULE)
			fail_msg("no random graph has %s", ops[i].name);
}

/* Attributes come back to the bit, names and pieces to the byte. */
static void
test_exact_text(void **state)
{
	static const float floats[] = {1e-6f, 0.1f, -0.0f, 0x1.fffffep+127f,
	    0x1p-149f, 0.088388346f, 16777217.0f};
	char why[512] = "";
	size_t i;

	(void)state;
	for (i = 0; i < sizeof floats / sizeof floats[0]; i++) {
		Arena *a = arena_new();
		Graph *g = valid_graph(a), *h;
		Attrs attr = {.factor = floats[i]};
		char *text;
		Node *n;

		g->arch = "a \"b\" \\ \n";
		n = graph_add(
		    g, OP_SCALE, &g->nodes[4], &attr, NULL, "\t\x7f;%", why);
		n->file = " odd \"file\\: name";
		n->line = UINT32_MAX;
		text = text_of(g);
		h = graph_parse(a, text, strlen(text), why);
		assert_string_equal(why, "");
		assert_memory_equal(
		    &h->nodes[n->id]->attr.factor, &floats[i], 4);
		assert_string_equal(h->arch, g->arch);
		assert_string_equal(h->nodes[n->id]->name, n->name);
		assert_string_equal(h->nodes[n->id]->file, n->file);
		assert_int_equal(h->nodes[n->id]->line, UINT32_MAX);
		free(text);
		arena_free(a);
	}
}

/* Whatever becomes of a text by one wrong byte or a cut: no crash, and what is
 * read prints. */
static void
test_broken_text(void **state)
{
	Arena *first = arena_new();
	char *text = text_of(random_graph(first, 7, 500)), why[512];
	size_t length = strlen(text), i;
	Random r = {3};

	(void)state;
	for (i = 0; i < 4000; i++) {
		Arena *a = arena_new();
		char *broken = arena_strdup(a, text);
		size_t at = random_below(&r, (uint32_t)length);
		size_t n = i % 2 == 0 ? length : at;
		Graph *g;

		broken[at] = (char)random_below(&r, 256);
		why[0] = '\0';
		g = graph_parse(a, broken, n, why);
		if (g == NULL)
			assert_memory_equal(why, "line ", 5);
		else
			free(text_of(g));
		arena_free(a);
	}
	free(text);
	arena_free(first);
}

static void
test_lines(void **state)
{
	static const char *const texts[][2] = {
	    {"", "line 0: the text is empty"},
	    {"digraph", "line 1: \"graph\" is missing before \"digraph\""},
	    {"graph \"x\" vocab=1 ctx=99999999999",
		"line 1: a count is missing before \"99999999999\""},
	    {"graph \"x vocab=1", "line 1: a quote is not closed"},
	    {"graph \"\\x00\" vocab=1",
		"line 1: a bad escape in \"\\x00\" vocab=1\""},
	    {"graph \"x\" vocab=1 ctx=1\n%1 = input",
		"line 2: the next node is %0"},
	    {"graph \"x\" vocab=1 ctx=1\nweight \"w\" : f32[1] = twice \"w\"",
		"line 2: \"twice\" is not a map"},
	    {"graph \"x\" vocab=1 ctx=1\nresult %0",
		"line 2: %0 is not defined before"},
	    {"graph \"x\" vocab=1 ctx=1\nwait", "line 2: not a line of a "
						"graph: \"wait\""},
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		Arena *a = arena_new();
		char why[512] = "";

		assert_null(
		    graph_parse(a, texts[i][0], strlen(texts[i][0]), why));
		assert_string_equal(why, texts[i][1]);
		arena_free(a);
	}
}

/* ---- passes ---- */

static void
test_count_uses(void **state)
{
	Arena *a = arena_new();
	Graph *g = valid_graph(a);

	(void)state;
	count_uses(g);
	assert_int_equal(g->result->mark, 1);
	assert_int_equal(g->nodes[14]->mark, 2);
	assert_int_equal(g->nodes[6]->mark, 0);
	arena_free(a);
}

static void
test_passes_keep_graphs_valid(void **state)
{
	void (*const passes[])(Graph *) = {simplify, cse, dce, legalise, dce};
	uint64_t seed;
	size_t i;

	(void)state;
	for (seed = 1; seed <= 60; seed++) {
		Arena *a = arena_new();
		Graph *g = random_graph(a, seed, 2000);
		uint32_t before = g->count;

		for (i = 0; i < sizeof passes / sizeof passes[0]; i++) {
			passes[i](g);
			assert_string_equal(verdict(g), "valid");
		}
		assert_true(g->count < before);
		arena_free(a);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_arena),
	    cmocka_unit_test(test_err),
	    cmocka_unit_test(test_op_table),
	    cmocka_unit_test(test_infer),
	    cmocka_unit_test(test_infer_delta_rule),
	    cmocka_unit_test(test_infer_symbols),
	    cmocka_unit_test(test_longest_sentence),
	    cmocka_unit_test(test_verify_order),
	    cmocka_unit_test(test_verify_types),
	    cmocka_unit_test(test_verify_leaves),
	    cmocka_unit_test(test_verify_states),
	    cmocka_unit_test(test_verify_result),
	    cmocka_unit_test(test_round_trip),
	    cmocka_unit_test(test_exact_text),
	    cmocka_unit_test(test_broken_text),
	    cmocka_unit_test(test_lines),
	    cmocka_unit_test(test_count_uses),
	    cmocka_unit_test(test_passes_keep_graphs_valid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
