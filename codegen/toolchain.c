#include "toolchain.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "scratch.h"

const Tool tools[TOOL_COUNT] = {
#define TOOL(NAME, name, makes, source, compile)                               \
	{name, TARGET_##makes, source, compile},
#include "tools.def"
#undef TOOL
};

const Tool *
tool_for(const Target *t)
{
	const Tool *tool = tools;

	while (tool->makes != t->tool)
		tool++;
	return tool;
}

bool
tool_compile(const Tool *tool, const ToolJob *job, ToolResult *out, char *why)
{
	Scratch s;
	bool ok = false;

	if (tool->makes != job->to->tool) {
		snprintf(why, TOOL_WHY, "%s does not compile for %s",
		    tool->name, job->to->name);
		return false;
	}
	if (!scratch_open(&s, job->arena, job->tmp, why))
		return false;
	if (scratch_write(&s, tool->source, job->text, job->length))
		ok = tool->compile(&s, job, out, why);
	else
		snprintf(why, TOOL_WHY, "cannot write %s/%s: %s", s.dir,
		    tool->source, strerror(errno));
	scratch_close(&s);
	return ok;
}

/* Cuts what follows "//" off each line, in place. */
static void
cut_comments(char *text)
{
	char *to = text, *line_end;

	for (; *text; text = line_end) {
		char *comment = strstr(text, "//");
		char *end;

		line_end = text + strcspn(text, "\n");
		end = comment && comment < line_end ? comment : line_end;
		while (end > text && (end[-1] == ' ' || end[-1] == '\t'))
			end--;
		memmove(to, text, (size_t)(end - text));
		to += end - text;
		if (*line_end)
			line_end++;
		*to++ = '\n';
	}
	*to = '\0';
}

const char *
disassemble(
    Arena *a, const void *code, size_t length, const char *tmp, char *why)
{
	static const char *const programs[] = {
	    "llvm-objdump-19", "llvm-objdump", NULL};
	int status = RUN_NOT_FOUND;
	char *text = NULL;
	size_t n;
	Scratch s;

	if (!scratch_open(&s, a, tmp, why))
		return NULL;
	if (scratch_write(&s, "kernels", code, length))
		for (int i = 0; programs[i] && status == RUN_NOT_FOUND; i++)
			status = scratch_run(
			    &s, (const char *[]){programs[i], "-d",
				    "--no-show-raw-insn", "--no-leading-addr",
				    "kernels", NULL});
	if (status == 0)
		text = scratch_read(&s, "out", &n);
	if (text)
		cut_comments(text);
	else if (status == RUN_NOT_FOUND)
		snprintf(why, TOOL_WHY,
		    "llvm-objdump is not on the PATH; install llvm to see "
		    "instructions");
	else
		snprintf(why, TOOL_WHY, "llvm-objdump cannot read the code: %s",
		    scratch_messages(&s));
	scratch_close(&s);
	return text;
}
