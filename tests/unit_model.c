/* The Lua front end on model files: each mistake ends in one sentence with file
 * and line, each limit holds, and libraries are found. Run in the repository's
 * root: it reads tests/fixtures. */
#include "front_files.h"

#include "../compiler/suggest.h"

static void
refused_model(const char *text, const char *a, const char *b)
{
	write_text("model.lua", text);
	REFUSED(FIXTURE("qwen3"), path_of("model.lua"), "model.lua", a, b);
}

#define X                                                                      \
	"local x = embed(weight('e', {512, 256}, 'token_embd.weight'), "       \
	"input 'tokens')\n"

static void
model_mistakes(void **state)
{
	static const char *const wrong[][3] = {
	    {X "x = silu(rms_nrom(x))",
		"model.lua:2: ", "'rms_nrom' (did you mean 'rms_norm'?)"},
	    {X "x = l2_norm(x, {epz = 1e-6})", "model.lua:2: l2_norm",
		"'epz' (did you mean 'eps'?)"},
	    {X "x = l2_norm(x)", "model.lua:2: l2_norm", "'eps' is missing"},
	    {X "x = l2_norm(x, {eps = 'a'})", "model.lua:2: l2_norm",
		"eps must be a number, but is a"},
	    {X "x = slice(x, {start = -1, count = 2})", "model.lua:2: slice",
		"start must be a count, but is -1"},
	    {X "x = slice(x, {start = 1.5, count = 2})",
		"start must be a count", "1.5"},
	    {X "x = slice(x, {[1] = 2})", "model.lua:2: slice",
		"there is no attribute '1'"},
	    {X "\n\nx = x + reshape(x, {T, 2, 128})", "model.lua:4: add",
		"f32[T,256] but b is f32[T,2,128]"},
	    {X "x = take(x, input 'rows')\nx = x + reshape(x, {R, 2, 128})",
		"model.lua:3: add", "b is f32[R,2,128]"},
	    {X "error(x.shape[1] .. x.shape[2] .. x.dtype)",
		"model.lua:2: ", "T256f32"},
	    {X "x = reshape(x, {T, 'Q'})", "model.lua:2: reshape",
		"axis 2 of the shape is Q"},
	    {X "x = x * 2", "model.lua:2: mul", "argument 2"},
	    {X "x = silu(x, {}, 1)", "model.lua:2: silu", "arguments, not 3"},
	    {X "x = silu(nil)", "model.lua:2: silu", "argument 1"},
	    {X "x = cast(x, 'bf61')", "model.lua:2: cast",
		"bf61 is not a dtype (did you mean 'bf16'?)"},
	    {X "x = x.shap", "model.lua:2: ", "did you mean 'shape'?"},
	    {X "y = x", "model.lua:2: ", "'y' is assigned but not declared"},
	    {X "x = weight('f', {512, 256}, 'tokn_embd.weight')",
		"model.lua:2: ", "(did you mean 'token_embd.weight'?)"},
	    {X "x = weight('f', {512, 128}, 'token_embd.weight')",
		"model.lua:2: ", "must be bf16[512,128]"},
	    {X "x = weight('e', {256}, 'output_norm.weight')",
		"model.lua:2: ", "was bf16[512,256] before"},
	    {X "label(label(x, 'a'), 'b')", "model.lua:2: label",
		"\"a\" already"},
	    {"local c = require('lib.config').read {}\n\nreturn c.hiden",
		"model.lua:3: ", "'hiden' (did you mean 'hidden'?)"},
	    {"local c = require('lib.config').read {}\n"
	     "local l = require('lib.weights').open(c).layer(0)\n"
	     "return l.mixer_nrom",
		"model.lua:3: ", "'mixer_nrom' (did you mean 'mixer_norm'?)"},
	    {"return 1", "returns a number", "logits"},
	    {"return embed", "returns a function", "logits"},
	    {X "return x, 4096", "f32[T,256]", "f32[R,vocab]"},
	    {X "return take(x, input 'rows')", "context", "count"},
	    {X "local k = state('k', 'f32', {C, 4, 64})\n"
	       "local y = reshape(x, {T, 4, 64})\n"
	       "append(k, y)\nappend(k, y)\n"
	       "ignore 'blk.' ignore 'output'\n"
	       "return take(x, input 'rows'), 9",
		"append", "another reader"},
	    {"local x = (", "model.lua:1: ", "unexpected symbol"},
	    {"\nerror({})", "model.lua:2: ", "raised a table"},
	    {"\ninput 'tokns'", "model.lua:2: ", "(did you mean 'tokens'?)"},
	    {"require 'lib.blokcs'",
		"model.lua:1: ", "(did you mean 'lib.blocks'?)"},
	    {"require('lib.blocks').mpl()",
		"model.lua:1: ", "no block 'mpl' (did you mean 'mlp'?)"},
	    {"return checkpoint.confg",
		"model.lua:1: ", "(did you mean 'config'?)"},
	    {"setmetatable(_G, {})", "model.lua:1: ", "protected"}};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
		refused_model(wrong[i][0], wrong[i][1], wrong[i][2]);
	REFUSED(FIXTURE("qwen3"), path_of("none.lua"), "cannot be opened");
	REFUSED(FIXTURE("qwen3"), folder, "cannot be read");
}

static void
limits(void **state)
{
	static const char *const closed[] = {"io", "os", "package", "debug",
	    "load", "loadfile", "dofile", "collectgarbage", "pcall",
	    "coroutine"};
	char text[64], want[64];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof closed / sizeof closed[0]; i++) {
		snprintf(text, sizeof text, "return %s.x", closed[i]);
		snprintf(want, sizeof want,
		    "there is no function or variable '%s'", closed[i]);
		refused_model(text, "model.lua:1: ", want);
	}
	refused_model("while true do end", "model.lua:1: ", "steps");
	refused_model("local s = 'x'\nfor i = 1, 27 do s = s .. s end\n"
		      "error 'enough'",
	    "enough", "");
	refused_model("local s = 'x'\nfor i = 1, 28 do s = s .. s end\n"
		      "error 'enough'",
	    "256 MiB", "");
	refused_model(
	    X "while true do x = silu(x) end", "model.lua:2: ", "ops");
	refused_model(
	    "setmetatable({}, {__gc = print})", "model.lua:1: ", "finalizers");
	refused_model("string.rep('x', 9)", "model.lua:1: ", "'rep'");
	refused_model("math.random()", "model.lua:1: ", "'random'");
	refused_model(
	    "setmetatable({}, {__len = print})", "model.lua:1: ", "__len");
	refused_model(
	    "local s = ''\nfor i = 1, 1e9 do s = s .. 'x' end", "MiB", "");
}

/* The same input gives the same graph: no loop follows a hash. */
static void
order(void **state)
{
	(void)state;
	refused_model("local s = ''\n"
		      "for k in pairs {zeta = 1, [9] = 1, beta = 1, 1, 1, "
		      "alpha = 1, [true] = 1, gamma = 1, [-1] = 1} do\n"
		      "s = s .. ' ' .. tostring(k) end error(s)",
	    "model.lua:3: ", " -1 1 2 9 alpha beta gamma zeta true");
	refused_model("pairs {[{}] = 1}", "model.lua:1: ", "no order");
}

static void
libraries(void **state)
{
	Built b;

	(void)state;
	refused_model("require 'lib.nothing'", "model.lua:1: ", "lib.nothing");
	refused_model("require '../x'", "model.lua:1: ", "not the name");
	refused_model("require 'lib..blocks'", "model.lua:1: ", "not the name");
	mkdir(path_of("lib"), 0777);
	write_text("lib/loop.lua", "return require 'lib.loop'");
	write_text("model.lua", "require 'lib.loop'");
	REFUSED(FIXTURE("qwen3"), path_of("model.lua"),
	    "loop.lua:1: ", "being loaded");
	write_text("lib/blocks.lua", "return {mine = 'from the folder'}");
	refused_model("error('model.lua ' .. require('lib.blocks').mine, 0)",
	    "from the folder", "");
	write_text("lib/blocks.lua", "local x = silu()");
	write_text("model.lua", "require 'lib.blocks'");
	REFUSED(FIXTURE("qwen3"), path_of("model.lua"), "blocks.lua:1: silu");
	unlink(path_of("lib/blocks.lua"));
	build(&b, FIXTURE("qwen3"), "models/qwen3.lua", DT_BF16);
	assert_non_null(b.graph);
	assert_int_equal(b.graph->count, 87);
	release(&b);
}

/* ---- suggestions ---- */

static void
suggestions(void **state)
{
	char text[SUGGEST_TEXT], longest[SUGGEST_LENGTH + 2];
	Suggestion s;

	(void)state;
	assert_int_equal(edit_distance("", "abc"), 3);
	assert_int_equal(edit_distance("abc", ""), 3);
	assert_int_equal(edit_distance("rms_nrom", "rms_norm"), 1);
	assert_int_equal(edit_distance("kitten", "sitting"), 3);
	memset(longest, 'x', sizeof longest - 1);
	longest[sizeof longest - 1] = '\0';
	assert_int_equal(edit_distance(longest, "x"), SUGGEST_LENGTH);
	suggest_start(&s, "norms");
	suggest_offer(&s, "other");
	assert_string_equal(suggest_text(&s, text), "");
	suggest_offer(&s, "normz");
	suggest_offer(&s, "norma");
	suggest_offer(&s, "normy");
	assert_string_equal(suggest_text(&s, text), " (did you mean 'norma'?)");
	suggest_start(&s, "x");
	suggest_offer(&s, "y");
	assert_string_equal(suggest_text(&s, text), "");
}

static bool
stop_now(void)
{
	return true;
}

/* Whoever asked for the model may end it while it runs. */
static void
stops(void **state)
{
	FrontOptions o = {
	    .model = path_of("model.lua"), .kv = DT_BF16, .stop = stop_now};
	Arena *a = arena_new();
	Diag d = {0};
	Checkpoint *c;

	(void)state;
	write_text("model.lua", "for i = 1, 1e18 do end");
	assert_int_equal(ckpt_open(FIXTURE("qwen3"), true, &c, NULL), 0);
	if (setjmp(d.jump) == 0)
		frontend_build(a, c, &o, &d);
	assert_non_null(strstr(d.text, "model.lua:1: interrupted"));
	ckpt_close(c);
	arena_free(a);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(model_mistakes),
	    cmocka_unit_test(limits),
	    cmocka_unit_test(stops),
	    cmocka_unit_test(order),
	    cmocka_unit_test(libraries),
	    cmocka_unit_test(suggestions),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
