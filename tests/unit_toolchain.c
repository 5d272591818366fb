/* What the compilers make of tests/gpu/selftest.hip behind the GPU prelude, and
 * what is said when one is missing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <regex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../codegen/emit.h"
#include "../codegen/resources.h"

static const char *const amd[] = {"gfx1030", "gfx1100", "gfx1200"};
static const char *const kernels[] = {
    "selftest_arith", "selftest_dot4", "selftest_shuffle", "selftest_last"};

enum { AMD = 3, KERNELS = 4 };

static Arena *arena;

/* ---- compiling ---- */

static const char *
read_text(const char *path)
{
	FILE *f = fopen(path, "rb");
	char *text = arena_alloc(arena, 1 << 16);

	if (!f)
		fail_msg("%s is not there", path);
	text[fread(text, 1, (1 << 16) - 1, f)] = '\0';
	fclose(f);
	return text;
}

static ToolJob
job_of(const Target *t, const char *kernel_text, const char *tmp)
{
	const char *text =
	    arena_printf(arena, "%s%s", prelude_gpu_text, kernel_text);

	return (ToolJob){arena, t, text, strlen(text), tmp};
}

/* The self-test compiled for a target by a tool. */
static ToolResult
build(ToolId tool, const char *target, const char *tmp)
{
	ToolJob j = job_of(
	    target_by_name(target), read_text("tests/gpu/selftest.hip"), tmp);
	char why[TOOL_WHY];
	ToolResult out;

	if (!tool_compile(&tools[tool], &j, &out, why))
		fail_msg("%s", why);
	return out;
}

/* The sentence for a text that does not compile. */
static const char *
complaint(ToolId tool, const Target *t, const char *text)
{
	ToolJob j = job_of(t, text, "/tmp");
	char *why = arena_alloc(arena, TOOL_WHY);
	ToolResult out;

	if (tool_compile(&tools[tool], &j, &out, why))
		fail_msg("%s compiled", text);
	return why;
}

static const Resources *
resources_of(const char *target, const ToolResult *o)
{
	const Resources *r;
	char why[TOOL_WHY];
	uint32_t n;

	if (!resources_read(arena, target_by_name(target), o->bytes, o->length,
		&r, &n, why))
		fail_msg("%s", why);
	assert_int_equal(n, KERNELS);
	return r;
}

static const char *
isa_of(const ToolResult *o)
{
	char why[TOOL_WHY];
	const char *text = disassemble(arena, o->bytes, o->length, "/tmp", why);

	if (!text)
		fail_msg("%s", why);
	return text;
}

/* The instructions of one kernel. */
static const char *
kernel_isa(const char *isa, const char *kernel)
{
	const char *label = arena_printf(arena, "<%s>:", kernel), *at, *end;

	at = strstr(isa, label);
	if (!at)
		fail_msg("there is no %s", label);
	end = strstr(at + strlen(label), ">:\n");
	return end ? arena_strndup(arena, at, (size_t)(end - at)) : at;
}

/* ---- looking at text ---- */

/* The first match of an extended expression, or NULL. */
static const char *
match(const char *text, const char *expression)
{
	regmatch_t m;
	regex_t re;
	int found;

	assert_int_equal(
	    regcomp(&re, expression, REG_EXTENDED | REG_NEWLINE), 0);
	found = regexec(&re, text, 1, &m, 0) == 0;
	regfree(&re);
	return found ? text + m.rm_so : NULL;
}

/* Where the expression is matched at or behind from; fails without. */
static const char *
need(const char *from, const char *expression, const char *target)
{
	const char *at = match(from, expression);

	if (!at)
		fail_msg("%s: no %s in: %.600s", target, expression, from);
	return at;
}

static void
refuse(const char *text, const char *expression, const char *target)
{
	const char *at = match(text, expression);

	if (at)
		fail_msg("%s: %.60s", target, at);
}

static void
says(const char *sentence, const char *part)
{
	if (!strstr(sentence, part))
		fail_msg("'%s' is not in: %s", part, sentence);
}

/* ---- AMD by clang ---- */

static void
amd_resources(void **state)
{
	(void)state;
	for (int i = 0; i < AMD; i++) {
		ToolResult o = build(TOOL_CLANG_AMDGCN, amd[i], "/tmp");
		const Resources *r = resources_of(amd[i], &o);

		for (int k = 0; k < KERNELS; k++) {
			assert_string_equal(r[k].name, kernels[k]);
			assert_int_equal(r[k].scratch, 0);
			assert_int_equal(r[k].vgpr_spill, 0);
			assert_int_equal(r[k].sgpr_spill, 0);
			assert_int_equal(r[k].wave, 32);
			assert_int_equal(r[k].group, 256);
			assert_int_equal(r[k].waves, 16);
			assert_true(r[k].denormals);
			assert_in_range(r[k].vgpr, 1, 95);
			assert_in_range(r[k].sgpr, 1, 106);
		}
		/* 8 floats and the flag of ig_last_arriver. */
		assert_int_equal(r[3].lds, 36);
		assert_int_equal(r[2].lds, 0);
		assert_int_equal(r[2].n_args, 2);
		assert_int_equal(r[3].n_args, 5);
		assert_int_equal(r[3].args[4].offset, 32);
		assert_int_equal(r[3].args[4].size, 4);
	}
}

static void
amd_instructions(void **state)
{
	static const char *const dot[] = {
	    "\tv_dot4c?_i32_i8", "\tv_dot4_i32_iu8", "\tv_dot4_i32_iu8"};
	static const char *const load[] = {"\tglobal_load_dwordx4",
	    "\tglobal_load_b128", "\tglobal_load_b128"};

	(void)state;
	for (int i = 0; i < AMD; i++) {
		ToolResult o = build(TOOL_CLANG_AMDGCN, amd[i], "/tmp");
		const char *isa = isa_of(&o), *at;

		at = kernel_isa(isa, "selftest_dot4");
		need(at, dot[i], amd[i]);
		need(at, load[i], amd[i]);
		need(kernel_isa(isa, "selftest_shuffle"), "\tds_bpermute_b32",
		    amd[i]);
		refuse(isa, "\tv_(s_)?(sqrt|rsq|rcp|exp|log|div|sin|cos)_",
		    amd[i]);
		refuse(isa, "\tv_permlane", amd[i]);
		refuse(isa, "\tscratch_", amd[i]);
		refuse(isa, "_f64", amd[i]);
	}
}

/* What is written as fma is one instruction, a product and a sum are two. */
static void
amd_contraction(void **state)
{
	static const char text[] = "extern \"C\" __global__ void f(float *x)\n"
				   "{ x[0] = ig_fma(x[1], x[2], x[3]); }\n"
				   "extern \"C\" __global__ void g(float *x)\n"
				   "{ x[0] = x[1] * x[2] + x[3]; }\n";
	static const char fused[] = "[sv]_(pk_|dual_)?(fma|mad|mac)";

	(void)state;
	for (int i = 0; i < AMD; i++) {
		ToolJob j = job_of(target_by_name(amd[i]), text, "/tmp");
		char why[TOOL_WHY];
		const char *isa;
		ToolResult o;

		if (!tool_compile(&tools[TOOL_CLANG_AMDGCN], &j, &o, why))
			fail_msg("%s", why);
		isa = isa_of(&o);
		need(kernel_isa(isa, "f"), fused, amd[i]);
		refuse(kernel_isa(isa, "g"), fused, amd[i]);
		need(kernel_isa(isa, "g"), "[sv]_(dual_)?mul_f32", amd[i]);
		need(kernel_isa(isa, "g"), "[sv]_(dual_)?add_f32", amd[i]);
	}
}

/* In front of the barrier each thread waits until its stores are done; behind
 * the second one it drops what its caches hold. */
static void
amd_last_arriver(void **state)
{
	static const char *const wait[] = {"\ts_waitcnt_vscnt null, 0x0",
	    "\ts_waitcnt_vscnt null, 0x0", "\ts_wait_storecnt 0x0"};
	static const char *const drop[] = {"\tbuffer_gl1_inv\n\tbuffer_gl0_inv",
	    "\tbuffer_gl1_inv\n\tbuffer_gl0_inv",
	    "\tglobal_inv scope:SCOPE_DEV"};
	static const char barrier[] = "\ts_barrier";

	(void)state;
	for (int i = 0; i < AMD; i++) {
		ToolResult o = build(TOOL_CLANG_AMDGCN, amd[i], "/tmp");
		const char *at = kernel_isa(isa_of(&o), "selftest_last");
		const char *count, *wall;

		at = need(at, "\tglobal_store", amd[i]);
		at = need(at + 1, wait[i], amd[i]);
		wall = need(at + 1, barrier, amd[i]);
		count = need(at, "\tglobal_atomic_inc", amd[i]);
		assert_true(wall < count);
		assert_null(match(arena_strndup(arena, at, (size_t)(wall - at)),
		    "\tglobal_(store|load)"));
		at = need(count, barrier, amd[i]);
		at = need(at, drop[i], amd[i]);
		need(at, "\tglobal_load", amd[i]);
		if (i == 2)
			need(kernel_isa(isa_of(&o), "selftest_last"),
			    "\tglobal_wb scope:SCOPE_DEV\n\ts_wait_storecnt 0",
			    amd[i]);
	}
}

/* ---- NVIDIA by clang ---- */

static void
ptx(void **state)
{
	ToolResult o = build(TOOL_CLANG_PTX, "sm_90", "/tmp");
	const char *text =
	    arena_strndup(arena, (const char *)o.bytes, o.length);

	(void)state;
	need(text, "^\\.version 7\\.8$", "sm_90");
	need(text, "^\\.target sm_90$", "sm_90");
	for (int k = 0; k < KERNELS; k++)
		need(text, arena_printf(arena, "\\.entry %s\\(", kernels[k]),
		    "sm_90");
	need(text, "\tmul\\.rn\\.f32", "sm_90");
	need(text, "\tadd\\.rn\\.f32", "sm_90");
	need(text, "\tfma\\.rn\\.f32", "sm_90");
	need(text, "\tdp4a\\.s32\\.s32", "sm_90");
	need(text, "\tld\\.global\\.v4\\.", "sm_90");
	need(text, "fence\\.acq_rel\\.gpu;", "sm_90");
	refuse(text, "\t(mul|add|sub|fma|mad)\\.([^r][a-z]*\\.)?f32", "sm_90");
	refuse(text, "\\.(ftz|approx|f64)|\t(div|sqrt|rcp)\\.", "sm_90");
	refuse(text, "\\.local", "sm_90");
}

/* ---- the same bytes ---- */

static void
same_bytes(void **state)
{
	static const struct {
		ToolId tool;
		const char *target;
	} cases[] = {{TOOL_CLANG_AMDGCN, "gfx1030"},
	    {TOOL_CLANG_AMDGCN, "gfx1200"}, {TOOL_CLANG_PTX, "sm_90"},
	    {TOOL_HIPRTC, "gfx1030"}};
	char folder[] = "/tmp/a-longer-name-XXXXXX";

	(void)state;
	assert_non_null(mkdtemp(folder));
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		ToolResult a = build(cases[i].tool, cases[i].target, "/tmp");
		ToolResult b = build(cases[i].tool, cases[i].target, folder);

		assert_int_equal(a.length, b.length);
		assert_memory_equal(a.bytes, b.bytes, a.length);
		for (size_t k = 0; k + 6 < a.length; k++)
			if (memcmp(a.bytes + k, "ingot-", 6) == 0 ||
			    memcmp(a.bytes + k, "/tmp", 4) == 0)
				fail_msg("%s: there is a path in the code",
				    cases[i].target);
	}
	/* Nothing stays behind: the folder is empty. */
	assert_int_equal(rmdir(folder), 0);
}

/* ---- compilers in libraries ---- */

static void
hiprtc(void **state)
{
	ToolResult o = build(TOOL_HIPRTC, "gfx1030", "/tmp");
	ToolResult c = build(TOOL_CLANG_AMDGCN, "gfx1030", "/tmp");
	const Resources *r = resources_of("gfx1030", &o);
	const Resources *want = resources_of("gfx1030", &c);

	(void)state;
	assert_memory_equal(o.toolchain, "hiprtc ", 7);
	for (int k = 0; k < KERNELS; k++) {
		assert_string_equal(r[k].name, want[k].name);
		assert_int_equal(r[k].lds, want[k].lds);
		assert_int_equal(r[k].wave, 32);
		assert_int_equal(r[k].scratch, 0);
		assert_true(r[k].denormals);
		assert_int_equal(r[k].n_args, want[k].n_args);
		for (uint32_t i = 0; i < r[k].n_args; i++) {
			assert_int_equal(
			    r[k].args[i].offset, want[k].args[i].offset);
			assert_int_equal(
			    r[k].args[i].size, want[k].args[i].size);
		}
	}
	refuse(isa_of(&o), "\tv_(s_)?(sqrt|rsq|rcp|exp|log|div|sin|cos)_",
	    "hiprtc");
	need(kernel_isa(isa_of(&o), "selftest_dot4"), "\tv_dot4c?_i32_i8",
	    "hiprtc");
}

static void
hiprtc_unknown(void **state)
{
	Target t = *target_by_name("gfx1100");
	const char *why;

	(void)state;
	t.name = t.isa = "gfx999";
	why = complaint(TOOL_HIPRTC, &t, "");
	says(why, "does not know gfx999");
	says(why, "hiprtc");
}

/* NVRTC is no package of Debian's: where it is missing, a sentence says so. */
static void
nvrtc(void **state)
{
	ToolJob j = job_of(target_by_name("sm_90"),
	    read_text("tests/gpu/selftest.hip"), "/tmp");
	ToolResult a, b = {0};
	char why[TOOL_WHY];

	(void)state;
	if (!tool_compile(&tools[TOOL_NVRTC], &j, &a, why)) {
		says(why, "nvrtc");
		says(why, "is not there; install it to compile for sm_90");
		return;
	}
	assert_memory_equal(a.bytes, "\177ELF", 4);
	assert_memory_equal(a.toolchain, "nvrtc ", 6);
	assert_true(tool_compile(&tools[TOOL_NVRTC], &j, &b, why));
	assert_int_equal(a.length, b.length);
	assert_memory_equal(a.bytes, b.bytes, a.length);
}

/* ---- mistakes ---- */

static void
mistakes(void **state)
{
	static const ToolId by[] = {
	    TOOL_CLANG_AMDGCN, TOOL_CLANG_PTX, TOOL_HIPRTC};
	static const char *const target[] = {"gfx1100", "sm_90", "gfx1030"};
	const char *why;
	Target t;

	(void)state;
	for (int i = 0; i < 3; i++) {
		why = complaint(by[i], target_by_name(target[i]), "nonsense;");
		says(why, "refused the emitted kernels");
		says(why, target[i]);
		says(why, "nonsense");
	}
	t = *target_by_name("gfx1100");
	t.name = t.isa = "gfx999";
	says(complaint(TOOL_CLANG_AMDGCN, &t, ""), "gfx999");
	says(complaint(TOOL_CLANG_PTX, &t, ""),
	    "clang does not compile for gfx999");
	assert_ptr_equal(tool_for(&t), &tools[TOOL_CLANG_AMDGCN]);
	assert_ptr_equal(
	    tool_for(target_by_name("sm_90")), &tools[TOOL_CLANG_PTX]);
	assert_ptr_equal(
	    tool_for(target_by_name("cpu")), &tools[TOOL_CLANG_CPU]);
}

/* Without clang, without lld, without llvm-objdump on the PATH. */
static void
missing_programs(void **state)
{
	const Target *t = target_by_name("gfx1100");
	char *path = arena_strdup(arena, getenv("PATH")), why[TOOL_WHY];
	char folder[] = "/tmp/empty-XXXXXX", *script;
	FILE *f;

	(void)state;
	assert_non_null(mkdtemp(folder));
	assert_int_equal(setenv("PATH", folder, 1), 0);
	says(complaint(TOOL_CLANG_AMDGCN, t, ""), "neither clang-19 nor clang");
	says(complaint(TOOL_CLANG_AMDGCN, t, ""), "to compile for gfx1100");
	assert_null(disassemble(arena, "", 0, "/tmp", why));
	says(why, "llvm-objdump is not on the PATH");

	script = arena_printf(arena, "%s/clang", folder);
	f = fopen(script, "w");
	assert_non_null(f);
	fputs("#!/bin/sh\n[ $# = 1 ] && echo 19 && exit\n"
	      "echo 'cannot run ld.lld' >&2; exit 1\n",
	    f);
	fclose(f);
	assert_int_equal(chmod(script, 0700), 0);
	says(complaint(TOOL_CLANG_AMDGCN, t, ""),
	    "install lld to compile for gfx1100");
	assert_int_equal(setenv("PATH", path, 1), 0);
	remove(script);
	rmdir(folder);
	says(complaint(TOOL_CLANG_AMDGCN, t, "nonsense;"), "nonsense");
}

static void
no_folder(void **state)
{
	ToolJob j = job_of(target_by_name("gfx1100"), "", "/nowhere");
	char why[TOOL_WHY];
	ToolResult out;

	(void)state;
	assert_false(tool_compile(&tools[TOOL_CLANG_AMDGCN], &j, &out, why));
	says(why, "cannot make a folder in /nowhere");
}

/* ---- the self-test itself ---- */

/* No function of arith.h is left out of it. */
static void
complete(void **state)
{
	const char *arith = read_text("numerics/arith.h");
	const char *test = read_text("tests/gpu/selftest.hip");
	int n = 0;

	(void)state;
	while ((arith = strstr(arith, "IG_FN "))) {
		const char *name = strchr(arith, '\n') + 1;
		size_t length = strcspn(name, "(");

		arith = name;
		if (strncmp(name, "ig_", 3) != 0)
			continue;
		n++;
		if (!strstr(test, arena_strndup(arena, name, length + 1)))
			fail_msg("%.*s is not tested", (int)length, name);
	}
	assert_in_range(n, 20, 100);
}

static int
start(void **state)
{
	(void)state;
	arena = arena_new();
	return 0;
}

static int
stop(void **state)
{
	(void)state;
	arena_free(arena);
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(amd_resources),
	    cmocka_unit_test(amd_instructions),
	    cmocka_unit_test(amd_contraction),
	    cmocka_unit_test(amd_last_arriver),
	    cmocka_unit_test(ptx),
	    cmocka_unit_test(same_bytes),
	    cmocka_unit_test(hiprtc),
	    cmocka_unit_test(hiprtc_unknown),
	    cmocka_unit_test(nvrtc),
	    cmocka_unit_test(mistakes),
	    cmocka_unit_test(missing_programs),
	    cmocka_unit_test(no_folder),
	    cmocka_unit_test(complete),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
