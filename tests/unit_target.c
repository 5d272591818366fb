/* The table of targets: lookups, and facts that belong together. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "../lower/lower.h"

static const Target *
get(const char *name)
{
	const Target *t = target_by_name(name);

	if (!t)
		fail_msg("there is no target %s", name);
	return t;
}

static void
by_name(void **state)
{
	(void)state;
	for (size_t i = 0; i < target_count; i++)
		assert_ptr_equal(get(targets[i].name), &targets[i]);
	assert_null(target_by_name(""));
	assert_null(target_by_name("gfx"));
	assert_null(target_by_name("gfx11000"));
	assert_null(target_by_name("GFX1100"));
}

/* A target that can be asked for has kernels; today that is one. */
static void
asked_for(void **state)
{
	uint32_t n = 0;

	(void)state;
	for (size_t i = 0; i < target_count; i++)
		n += targets[i].kernels;
	assert_int_equal(n, 1);
	assert_true(get("cpu")->kernels);
	assert_int_equal(get("cpu")->tool, TARGET_CPU);
	assert_int_equal(get("cpu")->lds, 0);
}

static void
instructions(void **state)
{
	(void)state;
	assert_int_equal(get("gfx1030")->dot, DOT_SDOT4);
	assert_int_equal(get("gfx1030")->matrix, MATRIX_NONE);
	assert_int_equal(get("sm_90")->tool, TARGET_PTX);
	for (size_t i = 0; i < target_count; i++) {
		const Target *t = &targets[i];

		if (strncmp(t->name, "gfx", 3) == 0)
			assert_int_equal(t->tool, TARGET_AMDGCN);
		if (strncmp(t->name, "gfx11", 5) == 0)
			assert_int_equal(t->matrix, MATRIX_WMMA11);
		if (strncmp(t->name, "gfx12", 5) == 0)
			assert_int_equal(t->matrix, MATRIX_WMMA12);
		if (t->tool == TARGET_AMDGCN && t->matrix != MATRIX_NONE)
			assert_int_equal(t->dot, DOT_SUDOT4);
	}
}

/* As the assembler of clang 19 counts them. */
static void
waves(void **state)
{
	static const struct {
		uint32_t regs, small, large; /* 1024 by 16, 1536 by 24 */
	} cases[] = {{0, 16, 16}, {1, 16, 16}, {64, 16, 16}, {65, 12, 16},
	    {80, 12, 16}, {81, 10, 16}, {96, 10, 16}, {97, 9, 12}, {120, 8, 12},
	    {121, 8, 10}, {128, 8, 10}, {144, 7, 10}, {160, 6, 9}, {161, 5, 9},
	    {192, 5, 8}, {193, 4, 7}, {240, 4, 6}, {256, 4, 5}, {257, 0, 0}};
	static const char *const small[] = {"gfx1030", "gfx1102"};
	static const char *const large[] = {
	    "gfx1100", "gfx1101", "gfx1151", "gfx1200", "gfx1201"};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		for (size_t k = 0; k < sizeof small / sizeof *small; k++)
			assert_int_equal(
			    target_waves(get(small[k]), cases[i].regs),
			    cases[i].small);
		for (size_t k = 0; k < sizeof large / sizeof *large; k++)
			assert_int_equal(
			    target_waves(get(large[k]), cases[i].regs),
			    cases[i].large);
	}
	assert_int_equal(target_waves(get("sm_90"), 32), 16);
	assert_int_equal(target_waves(get("sm_90"), 64), 8);
	assert_int_equal(target_waves(get("sm_90"), 128), 4);
	assert_int_equal(target_waves(get("sm_90"), 255), 2);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(by_name),
	    cmocka_unit_test(asked_for),
	    cmocka_unit_test(instructions),
	    cmocka_unit_test(waves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
