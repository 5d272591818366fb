/* clang, which makes code for every kind of target without a GPU or a
 * vendor's software. */
#include <stdio.h>
#include <string.h>

#include "scratch.h"

static const char *const programs[] = {"clang-19", "clang", NULL};

/* The first program that is there; *version: "clang 19.1.7". */
static const char *
find_program(Scratch *s, const char **version)
{
	for (int i = 0; programs[i]; i++) {
		const char *argv[] = {programs[i], "-dumpversion", NULL};
		size_t length;
		char *text;

		if (scratch_run(s, argv) != 0)
			continue;
		text = scratch_read(s, "out", &length);
		if (!text)
			continue;
		text[strcspn(text, "\n")] = '\0';
		*version = arena_printf(s->arena, "clang %s", text);
		return programs[i];
	}
	return NULL;
}

/* Why the program failed. */
static void
explain(Scratch *s, const ToolJob *j, const char *program, char *why)
{
	const char *messages = scratch_messages(s);

	/* Kernels know nothing of linkers. */
	if (strstr(messages, "lld"))
		snprintf(why, TOOL_WHY,
		    "%s found no lld; install lld to compile for %s", program,
		    j->to->name);
	else
		snprintf(why, TOOL_WHY,
		    "%s refused the emitted kernels for %s: %s", program,
		    j->to->name, messages);
}

/* Runs clang with flags, which end in NULL, on the source. */
static bool
clang(Scratch *s, const ToolJob *j, const char *const *flags,
    const char *source, ToolResult *out, char *why)
{
	const char *argv[40], *program = find_program(s, &out->toolchain);
	int n = 0;

	if (!program) {
		snprintf(why, TOOL_WHY,
		    "neither clang-19 nor clang is on the PATH; install clang "
		    "and lld to compile for %s",
		    j->to->name);
		return false;
	}
	argv[n++] = program;
	while (*flags)
		argv[n++] = *flags++;
	argv[n++] = "-o";
	argv[n++] = "kernels.out";
	argv[n++] = source;
	argv[n] = NULL;
	if (scratch_run(s, argv) != 0) {
		explain(s, j, program, why);
		return false;
	}
	out->bytes =
	    (unsigned char *)scratch_read(s, "kernels.out", &out->length);
	if (!out->bytes)
		snprintf(why, TOOL_WHY, "%s left no code for %s", program,
		    j->to->name);
	return out->bytes != NULL;
}

/* A shared object without undefined symbols. */
bool
clang_cpu(Scratch *s, const ToolJob *j, ToolResult *out, char *why)
{
	const char *flags[] = {"-std=c11", "-O2",
	    arena_printf(j->arena, "-march=%s", j->to->isa),
	    "-ffp-contract=off", "-ffreestanding", "-fPIC",
	    "-fvisibility=hidden", "-fno-stack-protector", "-shared",
	    "-nostdlib", "-fuse-ld=lld", "-Wl,--no-undefined",
	    "-Wl,--build-id=none", "-Wl,-s", NULL};

	return clang(s, j, flags, tools[TOOL_CLANG_CPU].source, out, why);
}

/* A code object for one chip. Version 4 is read by every HIP from 5.2 on. A
 * cuid would be a hash of paths and of the command line. */
bool
clang_amdgcn(Scratch *s, const ToolJob *j, ToolResult *out, char *why)
{
	const char *flags[] = {"-x", "hip", "-std=c++17", "-O3",
	    arena_printf(j->arena, "--offload-arch=%s", j->to->isa),
	    "--cuda-device-only", "--no-gpu-bundle-output", "-nogpuinc",
	    "-nogpulib", "-ffp-contract=off",
	    "-fno-gpu-flush-denormals-to-zero", "-mno-wavefrontsize64",
	    "-mcode-object-version=4", "-fuse-cuid=none", NULL};

	return clang(s, j, flags, tools[TOOL_CLANG_AMDGCN].source, out, why);
}

/* PTX text. Its version is stated, and no CUDA looked for, because clang
 * otherwise writes the version of the CUDA that it finds. */
bool
clang_ptx(Scratch *s, const ToolJob *j, ToolResult *out, char *why)
{
	const char *flags[] = {"-x", "cuda", "-std=c++17", "-O3", "-S",
	    arena_printf(j->arena, "--cuda-gpu-arch=%s", j->to->isa),
	    "--cuda-path=none", "--cuda-feature=+ptx78", "--cuda-device-only",
	    "-nocudainc", "-nocudalib", "-ffp-contract=off",
	    "-fno-gpu-flush-denormals-to-zero", "-fuse-cuid=none", NULL};

	return clang(s, j, flags, tools[TOOL_CLANG_PTX].source, out, why);
}
