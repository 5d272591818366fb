/* For tests of whole models: checkpoints compiled once, prompts run on the
 * oracle or on the CPU, goldens, comparisons. What goes wrong fails the
 * running test with a sentence. Run in the repository's root. */
#ifndef TESTS_MODELS_H
#define TESTS_MODELS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../compiler/compile.h"
#include "../compiler/oracle.h"
#include "../lower/lower.h"
#include "../runtime/plan_open.h"

/* Last: it defines a macro fail. */
#include <cmocka.h>

/* ---- plans and models ---- */

/* A checkpoint, and how it is compiled. */
typedef struct Build {
	const char *path;
	DType kv;
	uint32_t rules; /* fusion rules that may apply; 0: none */
} Build;

enum { WHY_TEXT = 1024 };

/* The plan of b, made outside the cache; NULL, and the sentence in why, when
 * the checkpoint is refused. */
ingot_plan *plan_try(const Build *b, char why[WHY_TEXT]);
/* The plan of b, made on first use and kept until plans_close. It serves the
 * CPU and the oracle. */
ingot_plan *plan_of(const Build *b);
/* A group teardown. */
int plans_close(void **state);

enum { ORACLE = 0 };

/* b on the CPU with so many threads, or on the oracle. */
ingot_model *model_of(const Build *b, uint32_t threads);
/* b on the oracle, which calls watch. */
ingot_model *model_watched(const Build *b, OracleWatch *watch);
uint32_t vocab_of(const ingot_model *m);

/* ---- running ---- */

enum { MAX_PROMPTS = 20 };

/* A sequence and how it is cut: a first chunk, then equal ones; 0 stands for
 * all that is left. It joins after delay steps. */
typedef struct Prompt {
	const uint32_t *ids;
	uint32_t n, first, chunk, delay;
} Prompt;

/* Logits of every token, from malloc: prompts in order, [n][vocab] each. In
 * each step every prompt that has joined advances by a chunk. */
float *run_prompts(ingot_model *m, const Prompt *p, uint32_t n);
/* The same for one prompt in equal chunks. */
float *run_cut(ingot_model *m, const uint32_t *ids, uint32_t n, uint32_t chunk);
/* Continues ids[0..n) greedily to total ids, in place. */
void run_greedy(ingot_model *m, uint32_t *ids, uint32_t n, uint32_t total);

/* n ids below vocab that repeat after a long while only. */
void make_ids(uint32_t *ids, uint32_t n, uint32_t vocab, uint32_t seed);

/* ---- comparing ---- */

#if defined(__GNUC__)
__attribute__((format(printf, 5, 6)))
#endif
/* Fails unless both hold the same bits; the rest says what was computed. */
void
same_bits(const float *got, const float *want, uint64_t rows, uint64_t columns,
    const char *what, ...);
/* Sum of squared differences over sum of want's squares. */
double nmse(const float *got, const float *want, uint64_t n);

/* ---- goldens ---- */

typedef struct Golden Golden;

/* golden.safetensors of tests/fixtures/folder. */
Golden *golden_open(const char *folder);
void golden_close(Golden *g);
/* An f32 or i32 tensor, [rows] or [rows, columns] (columns is then 1 or more);
 * NULL when there is none of this name. */
const void *golden_find(
    const Golden *g, const char *name, uint64_t *rows, uint64_t *columns);
/* The ids of "tokens" or "greedy", which must be there. */
const uint32_t *golden_ids(const Golden *g, const char *name, uint32_t *n);

#endif
