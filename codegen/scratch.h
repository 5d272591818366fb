/* A folder for one compilation, and what runs in it. Programs start inside the
 * folder, so that its path cannot get into what they write. */
#ifndef CODEGEN_SCRATCH_H
#define CODEGEN_SCRATCH_H

#include "toolchain.h"

typedef struct Scratch {
	Arena *arena;
	char dir[512];
} Scratch;

/* Makes a folder under tmp; false and why when that fails. */
bool scratch_open(Scratch *s, Arena *a, const char *tmp, char *why);
/* Removes it with its files. */
void scratch_close(Scratch *s);

/* Files are named without the folder. */
bool scratch_write(
    Scratch *s, const char *name, const void *bytes, size_t length);
/* A file's bytes and a 0 behind them; NULL when it is empty or not there. */
char *scratch_read(Scratch *s, const char *name, size_t *length);
/* The start of what the last program said on stderr. */
const char *scratch_messages(Scratch *s);

enum { RUN_NOT_FOUND = 127, RUN_SIGNAL = 128 };

/* Runs a program, with its output in the files "out" and "messages". Exit
 * status; RUN_NOT_FOUND: no such program; RUN_SIGNAL + n: died of signal n. */
int scratch_run(Scratch *s, const char *const *argv);
/* The same for a function, in a process of its own. */
int scratch_child(Scratch *s, int (*body)(void *), void *user);

/* ---- compilers, called by tool_compile with the source written ---- */
bool clang_cpu(Scratch *s, const ToolJob *j, ToolResult *out, char *why);
bool clang_amdgcn(Scratch *s, const ToolJob *j, ToolResult *out, char *why);
bool clang_ptx(Scratch *s, const ToolJob *j, ToolResult *out, char *why);
bool rtc_hip(Scratch *s, const ToolJob *j, ToolResult *out, char *why);
bool rtc_nvidia(Scratch *s, const ToolJob *j, ToolResult *out, char *why);

#endif
