/* Builds a plan file, section by section. The same calls give the same bytes.
 *
 * Like the arena, these functions end the program with a message when memory
 * runs out. Elements are appended in zeroed form and filled in by the caller;
 * checksums and places are made at the end. Nothing is checked here: the
 * runtime verifies what it opens, and the compiler opens what it wrote. */
#ifndef CODEGEN_PLAN_WRITE_H
#define CODEGEN_PLAN_WRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../runtime/plan.h"

enum { PLAN_WHY = 512 };

typedef struct PlanWriter PlanWriter;

PlanWriter *plan_writer_new(void);
void plan_writer_free(PlanWriter *pw);

/* The offset of s in SEC_STRINGS; equal strings are stored once, "" is 0. */
uint32_t pw_string(PlanWriter *pw, const char *s);
/* The same for the length bytes at s, which hold no NUL. */
uint32_t pw_text(PlanWriter *pw, const char *s, size_t length);

/* Appends n zeroed elements to a section of structs and returns the first of
 * them; valid until the next pw_add to that section. */
void *pw_add(PlanWriter *pw, PlanSectionKind kind, size_t n);
/* Elements that the section has: the index of the next one. */
uint32_t pw_count(const PlanWriter *pw, PlanSectionKind kind);
/* Element i, which was added; valid as above. */
void *pw_at(PlanWriter *pw, PlanSectionKind kind, uint32_t i);
/* Appends bytes to GRAPH, SOURCES or OBJECTS, aligned to align (a power of
 * two, at most 64) within the section, and returns their offset. */
uint64_t pw_blob(PlanWriter *pw, PlanSectionKind kind, const void *bytes,
    size_t n, size_t align);

/* The whole file; owned by pw, valid until the next call with pw. */
const unsigned char *pw_bytes(PlanWriter *pw, size_t *n);
/* Writes the file under a temporary name beside path, then renames it: path is
 * either as before or whole, and a regular file. On failure the sentence is in
 * why (PLAN_WHY bytes) and no file is left behind. */
bool pw_write(PlanWriter *pw, const char *path, char *why);

#endif
