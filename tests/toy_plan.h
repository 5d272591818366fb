/* A small plan made by hand, with something in every section. As a model it
 * computes sums over the history of a sequence, so that each logit tells
 * whether tokens, positions, pages and slots were right: tests/unit_session.c
 * has its kernels. */
#ifndef TESTS_TOY_PLAN_H
#define TESTS_TOY_PLAN_H

#include "../codegen/plan_write.h"
#include "../numerics/types.h"

enum { TOY_VOCAB = 40, TOY_CTX = 200, TOY_CHUNK = 16, TOY_ROT = 4 };

enum { TOY_CACHE, TOY_SCAN, TOY_COUNT };     /* states */
enum { TOY_H, TOY_TMP, TOY_G, TOY_OLD };     /* buffers */
enum { TOY_K_MARK, TOY_K_SCAN, TOY_K_HEAD }; /* kernels and launches */

static inline void
toy_model(PlanWriter *pw)
{
	*(PlanMeta *)pw_add(pw, SEC_META, 1) =
	    (PlanMeta){.arch = pw_string(pw, "toy"),
		.model_file = pw_string(pw, "toy.lua"),
		.compiler = pw_string(pw, "0"),
		.numerics = pw_string(pw, "exact"),
		.kv_dtype = DT_F32,
		.vocab = TOY_VOCAB,
		.ctx = TOY_CTX,
		.max_chunk = TOY_CHUNK};
	*(PlanTensor *)pw_add(pw, SEC_TENSORS, 1) =
	    (PlanTensor){pw_string(pw, "a"), DT_F32, 2, 0, {3, 8, 1, 1}};
	*(PlanTensor *)pw_add(pw, SEC_TENSORS, 1) =
	    (PlanTensor){pw_string(pw, "b"), DT_BF16, 2, 0, {2, 8, 1, 1}};
	*(PlanWeight *)pw_add(pw, SEC_WEIGHTS, 1) = (PlanWeight){
	    pw_string(pw, "bias"), DT_F32, 0, 2, {5, 8, 1, 1}, 0, 2};
	*(PlanWeight *)pw_add(pw, SEC_WEIGHTS, 1) =
	    (PlanWeight){pw_string(pw, "b"), DT_BF16, 0, 2, {2, 8, 1, 1}, 2, 1};
	*(PlanPiece *)pw_add(pw, SEC_PIECES, 1) = (PlanPiece){0, 0, 0, 3};
	*(PlanPiece *)pw_add(pw, SEC_PIECES, 1) = (PlanPiece){1, 0, 0, 2};
	*(PlanPiece *)pw_add(pw, SEC_PIECES, 1) = (PlanPiece){1, 0, 0, 2};
	*(PlanState *)pw_add(pw, SEC_STATES, 1) =
	    (PlanState){pw_string(pw, "cache"), STATE_PAGED, KV_PAGE * 4};
	*(PlanState *)pw_add(pw, SEC_STATES, 1) =
	    (PlanState){pw_string(pw, "scan"), STATE_SLOT, 4};
	*(PlanState *)pw_add(pw, SEC_STATES, 1) =
	    (PlanState){pw_string(pw, "count"), STATE_SLOT, 64};
	*(PlanTable *)pw_add(pw, SEC_TABLES, 1) =
	    (PlanTable){TOY_ROT, 0, 10000.0};
	pw_blob(pw, SEC_GRAPH, "toy\n", 4, 1);
}

static inline void
toy_arg(PlanWriter *pw, uint32_t kind, uint32_t index)
{
	*(PlanArg *)pw_add(pw, SEC_ARGS, 1) = (PlanArg){kind, index};
}

static inline void
toy_launches(PlanWriter *pw)
{
	toy_arg(pw, ARG_STATE, TOY_COUNT);
	toy_arg(pw, ARG_BUFFER, TOY_OLD);
	*(PlanLaunch *)pw_add(pw, SEC_LAUNCHES, 1) =
	    (PlanLaunch){TOY_K_MARK, 0, SYM_T, 3, 4, 1, 0, 2};
	toy_arg(pw, ARG_INPUT, IN_TOKENS);
	toy_arg(pw, ARG_INPUT, IN_SEQS);
	toy_arg(pw, ARG_INPUT, IN_BLOCKS);
	toy_arg(pw, ARG_STATE, TOY_CACHE);
	toy_arg(pw, ARG_STATE, TOY_SCAN);
	toy_arg(pw, ARG_BUFFER, TOY_H);
	toy_arg(pw, ARG_BUFFER, TOY_TMP);
	*(PlanLaunch *)pw_add(pw, SEC_LAUNCHES, 1) =
	    (PlanLaunch){TOY_K_SCAN, 1, SYM_B, 1, 1, 0, 2, 7};
	toy_arg(pw, ARG_BUFFER, TOY_H);
	toy_arg(pw, ARG_INPUT, IN_BLOCKS);
	toy_arg(pw, ARG_STATE, TOY_CACHE);
	toy_arg(pw, ARG_INPUT, IN_ROWS);
	toy_arg(pw, ARG_INPUT, IN_POSITIONS);
	toy_arg(pw, ARG_INPUT, IN_ROW_SLOT);
	toy_arg(pw, ARG_TABLE, 0);
	toy_arg(pw, ARG_WEIGHT, 0);
	toy_arg(pw, ARG_STATE, TOY_COUNT);
	toy_arg(pw, ARG_BUFFER, TOY_G);
	toy_arg(pw, ARG_LOGITS, 0);
	*(PlanLaunch *)pw_add(pw, SEC_LAUNCHES, 1) =
	    (PlanLaunch){TOY_K_HEAD, 2, SYM_R, 1, 1, 0, 9, 11};
}

static inline void
toy_target(PlanWriter *pw, const void *object, size_t n)
{
	static const char *const names[] = {"mark", "scan", "head"};
	static const char source[] = "mark scan head";

	*(PlanTarget *)pw_add(pw, SEC_TARGETS, 1) = (PlanTarget){
	    pw_string(pw, "cpu"), pw_string(pw, "by hand"), 0, 2, 0, 4, 0, 3, 0,
	    3, pw_blob(pw, SEC_SOURCES, source, sizeof source - 1, 1),
	    sizeof source - 1, pw_blob(pw, SEC_OBJECTS, object, n, 64), n};
	*(PlanPack *)pw_add(pw, SEC_PACKS, 1) =
	    (PlanPack){PACK_PLAIN, 0, TOY_VOCAB * 4};
	*(PlanPack *)pw_add(pw, SEC_PACKS, 1) =
	    (PlanPack){PACK_ROWS8, 0, 8 * 8 * 2};
	*(PlanBuffer *)pw_add(pw, SEC_BUFFERS, 1) =
	    (PlanBuffer){pw_string(pw, "h"), SYM_T, 0, 0, 64, 64, 1, 2};
	*(PlanBuffer *)pw_add(pw, SEC_BUFFERS, 1) =
	    (PlanBuffer){pw_string(pw, "tmp"), SYM_T, 1, 0, 64, 0, 0, 2};
	*(PlanBuffer *)pw_add(pw, SEC_BUFFERS, 1) =
	    (PlanBuffer){pw_string(pw, "g"), SYM_R, 2, 0, 64, 0, 2, 2};
	*(PlanBuffer *)pw_add(pw, SEC_BUFFERS, 1) =
	    (PlanBuffer){pw_string(pw, "old"), SYM_T, 3, 0, 128, 64, 0, 0};
	for (uint32_t i = 0; i < 3; i++) {
		*(PlanKernel *)pw_add(pw, SEC_KERNELS, 1) = (PlanKernel){
		    pw_string(pw, names[i]), pw_string(pw, "toy"), 5 * i, 4};
		*(PlanRegion *)pw_add(pw, SEC_REGIONS, 1) =
		    (PlanRegion){.name = pw_string(pw, names[i])};
	}
	toy_launches(pw);
}

/* The plan with object (a shared object, or anything when it is not run). */
static inline PlanWriter *
toy_plan(const void *object, size_t n)
{
	PlanWriter *pw = plan_writer_new();

	toy_model(pw);
	toy_target(pw, object, n);
	return pw;
}

#endif
