/* Reading msgpack and the notes of code objects, damaged ones too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "../codegen/emit.h"
#include "../codegen/msgpack.h"
#include "../codegen/resources.h"

/* A reader over a literal, without the 0 at its end. */
#define MSG(text)                                                              \
	((Msg){(const unsigned char *)(text),                                  \
	    (const unsigned char *)(text) + sizeof(text) - 1, false})

static void
numbers(void **state)
{
	Msg m = MSG("\x07\xcc\xff\xcd\x01\x02\xce\x01\x02\x03\x04"
		    "\xcf\x01\x02\x03\x04\x05\x06\x07\x08");

	(void)state;
	assert_int_equal(msg_uint(&m), 7);
	assert_int_equal(msg_uint(&m), 255);
	assert_int_equal(msg_uint(&m), 0x0102);
	assert_int_equal(msg_uint(&m), 0x01020304);
	assert_true(msg_uint(&m) == 0x0102030405060708);
	assert_false(m.bad);
	assert_int_equal(msg_uint(&m), 0);
	assert_true(m.bad);
}

static void
containers(void **state)
{
	Msg m = MSG("\x82\xa3key\x92\x01\x02\xd9\x03two\xdc\x00\x01\x05\xdf"
		    "\x00\x00\x00\x00");
	size_t length;

	(void)state;
	assert_int_equal(msg_map(&m), 2);
	assert_memory_equal(msg_text(&m, &length), "key", 3);
	assert_int_equal(length, 3);
	assert_int_equal(msg_array(&m), 2);
	assert_int_equal(msg_uint(&m), 1);
	assert_int_equal(msg_uint(&m), 2);
	assert_memory_equal(msg_text(&m, &length), "two", 3);
	assert_int_equal(msg_array(&m), 1);
	assert_int_equal(msg_uint(&m), 5);
	assert_int_equal(msg_map(&m), 0);
	assert_false(m.bad);
	assert_ptr_equal(m.at, m.end);
}

/* One of every kind is passed over as a whole. */
static void
skipping(void **state)
{
	Msg m = MSG("\xdc\x00\x14\x05\xff\xc0\xc2\xc3\xc4\x02..\xc7\x01t."
		    "\xca....\xcb........\xcc.\xd0.\xd1..\xd4t.\xd8t"
		    "................\xd9\x01.\x81\xa1.\x91\x00\x90\x80\xa0"
		    "\xcd..\x2a");

	(void)state;
	msg_skip(&m);
	assert_false(m.bad);
	assert_int_equal(msg_uint(&m), 0x2a);
	assert_ptr_equal(m.at, m.end);
}

static void
wrong(void **state)
{
	static const struct {
		const char *bytes;
		size_t length;
	} cases[] = {{"", 0},
	    {"\xa5"
	     "four",
		5},
	    {"\x92\x01", 2}, {"\xdd\xff\xff\xff\xff\x01", 6},
	    {"\xc6\xff\xff\xff\xff.", 6}, {"\x81\xa1k", 3}, {"\xcd\x01", 2},
	    {"\xc1", 1}, {"\xd8t..", 4}, {"\xdf\xff\xff\xff\xff\x01", 6}};
	Msg m;
	size_t n;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		m.at = (const unsigned char *)cases[i].bytes;
		m.end = m.at + cases[i].length;
		m.bad = false;
		msg_skip(&m);
		if (!m.bad)
			fail_msg("case %zu passed", i);
		assert_string_equal(msg_text(&m, &n), "");
		assert_int_equal(n, 0);
	}
	m = MSG("\xa1k");
	assert_int_equal(msg_uint(&m), 0);
	assert_true(m.bad);
	m = MSG("\xff");
	assert_int_equal(msg_uint(&m), 0);
	assert_true(m.bad);
}

/* ---- a code object ---- */

typedef struct Built {
	Arena *arena;
	ToolResult o;
} Built;

static const char source[] =
    "extern \"C\" __global__ void __launch_bounds__(64)\n"
    "one(float *x, uint16_t n)\n"
    "{\n"
    "	IG_LDS(float, y, 64);\n"
    "	y[threadIdx.x] = x[threadIdx.x];\n"
    "	__syncthreads();\n"
    "	x[threadIdx.x] = y[63 - threadIdx.x] * (float)n;\n"
    "}\n"
    "extern \"C\" __global__ void __launch_bounds__(32)\n"
    "two(float *x, int n)\n"
    "{\n"
    "	float y[256];\n"
    "	for (int i = 0; i < 256; i++)\n"
    "		y[i] = x[i];\n"
    "	x[0] = y[n];\n"
    "}\n";

static int
build(void **state)
{
	static Built b;
	ToolJob j = {.to = target_by_name("gfx1100"), .tmp = "/tmp"};
	char why[TOOL_WHY];

	b.arena = j.arena = arena_new();
	j.text = arena_printf(j.arena, "%s%s", prelude_gpu_text, source);
	j.length = strlen(j.text);
	*state = &b;
	if (tool_compile(tool_for(j.to), &j, &b.o, why))
		return 0;
	print_error("%s\n", why);
	return -1;
}

static int
release(void **state)
{
	arena_free(((Built *)*state)->arena);
	return 0;
}

static bool
read_it(Built *b, const void *code, size_t length, const Resources **r,
    uint32_t *n, char *why)
{
	return resources_read(
	    b->arena, target_by_name("gfx1100"), code, length, r, n, why);
}

static void
reported(void **state)
{
	Built *b = *state;
	const Resources *r;
	char why[TOOL_WHY];
	uint32_t n;

	assert_true(read_it(b, b->o.bytes, b->o.length, &r, &n, why));
	assert_int_equal(n, 2);
	assert_string_equal(r[0].name, "one");
	assert_int_equal(r[0].lds, 256);
	assert_int_equal(r[0].scratch, 0);
	assert_int_equal(r[0].group, 64);
	assert_int_equal(r[0].n_args, 2);
	assert_int_equal(r[0].args[0].size, 8);
	assert_int_equal(r[0].args[1].offset, 8);
	assert_int_equal(r[0].args[1].size, 2);
	assert_string_equal(r[1].name, "two");
	assert_int_equal(r[1].lds, 0);
	assert_int_equal(r[1].group, 32);
	assert_true(r[1].scratch >= 1024);
}

/* The descriptor's bit for denormals is what is read: cleared, it shows. */
static void
denormals(void **state)
{
	Built *b = *state;
	unsigned char *copy = arena_alloc(b->arena, b->o.length);
	const Resources *r;
	char why[TOOL_WHY];
	uint32_t n, changed = 0;

	for (size_t i = 0x200; i < b->o.length && changed == 0; i++) {
		memcpy(copy, b->o.bytes, b->o.length);
		copy[i] &= 0xFC;
		if (memcmp(copy, b->o.bytes, b->o.length) == 0 ||
		    !read_it(b, copy, b->o.length, &r, &n, why) || n != 2)
			continue;
		changed += !r[0].denormals && r[1].denormals;
	}
	assert_int_equal(changed, 1);
	assert_true(read_it(b, b->o.bytes, b->o.length, &r, &n, why));
	assert_true(r[0].denormals && r[1].denormals);
}

/* Every length and every damaged byte: an answer or a sentence. */
static void
damaged(void **state)
{
	Built *b = *state;
	Arena *outer = b->arena;
	const Resources *r;
	char why[TOOL_WHY];
	uint32_t n, refused = 0;

	for (size_t i = 0; i < b->o.length; i++) {
		unsigned char *copy;

		b->arena = arena_new();
		copy = arena_alloc(b->arena, b->o.length);
		memcpy(copy, b->o.bytes, b->o.length);
		copy[i] ^= (unsigned char)(i % 255 + 1);
		refused += !read_it(b, copy, b->o.length, &r, &n, why);
		copy = arena_alloc(b->arena, i);
		memcpy(copy, b->o.bytes, i);
		refused += !read_it(b, copy, i, &r, &n, why);
		arena_free(b->arena);
	}
	b->arena = outer;
	assert_true(refused > 500);
}

static void
not_code(void **state)
{
	Built *b = *state;
	const Resources *r;
	char why[TOOL_WHY];
	uint32_t n;

	assert_false(read_it(b, "", 0, &r, &n, why));
	assert_string_equal(why, "this is no code object for gfx1100");
	assert_false(read_it(b, source, sizeof source, &r, &n, why));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(numbers),
	    cmocka_unit_test(containers),
	    cmocka_unit_test(skipping),
	    cmocka_unit_test(wrong),
	    cmocka_unit_test(reported),
	    cmocka_unit_test(denormals),
	    cmocka_unit_test(damaged),
	    cmocka_unit_test(not_code),
	};

	return cmocka_run_group_tests(tests, build, release);
}
