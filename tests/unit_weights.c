/* Binding weights: the checkpoint here is a table of tensors. */
#include "../numerics/arith.h"
#include "../numerics/quant.h"
#include "../runtime/pack.h"
#include "../runtime/weights.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h> /* after error.h: it has a macro called fail */
#include <stdlib.h>
#include <string.h>

/* ---- the checkpoint ---- */

struct Checkpoint {
	bool header_only;
	size_t count;
	CkptTensor tensors[4];
};

const CkptTensor *
ckpt_find(const Checkpoint *c, const char *name)
{
	for (size_t i = 0; i < c->count; i++)
		if (strcmp(c->tensors[i].name, name) == 0)
			return &c->tensors[i];
	return NULL;
}

bool
ckpt_header_only(const Checkpoint *c)
{
	return c->header_only;
}

const char *
ckpt_path(const Checkpoint *c)
{
	(void)c;
	return "model.gguf";
}

enum { LAYOUT = 11, DATA = 12 };

uint64_t
fingerprint_layout(const Checkpoint *c)
{
	(void)c;
	return LAYOUT;
}

uint64_t
fingerprint_data(const Checkpoint *c)
{
	(void)c;
	return DATA;
}

/* ---- a plan of one target ---- */

enum { T_QUANT, T_BF16, T_F16, T_F32 };

static const char names[] = "\0quant\0bf16\0f16\0f32\0stacked";

/* Experts of 5 rows of 256, cut across experts and tiles. */
static const PlanPiece pieces[] = {
    {T_QUANT, 0, 4, 7}, /* stacked */
    {T_QUANT, 0, 0, 3},
    {T_BF16, 0, 1, 2}, /* mapped or widened */
    {T_F16, 0, 0, 9},
    {T_F32, 0, 3, 1},
    {T_QUANT, 0, 0, 12}, /* whole */
    {T_BF16, 0, 0, 3},
};
static const PlanWeight weights[] = {
    {20, DT_Q4_K, 0, 3, {2, 5, 256, 1}, 0, 2},
    {20, DT_F32, 1, 2, {12, 64, 1, 1}, 2, 3},
    {20, DT_F32, 2, 2, {12, 64, 1, 1}, 2, 3},
    {20, DT_F32, 0, 2, {12, 64, 1, 1}, 2, 3},
    {20, DT_Q4_K, 0, 2, {12, 256, 1, 1}, 5, 1},
    {20, DT_BF16, 0, 1, {192, 1, 1, 1}, 6, 1},
};
enum { N_WEIGHTS = sizeof weights / sizeof *weights };

typedef struct Fixture {
	PlanMeta meta;
	PlanTensor tensors[4];
	PlanPack packs[2 + N_WEIGHTS];
	PlanTarget target;
	Plan plan;
	Checkpoint ckpt;
	/* Data: aligned but for the first byte skipped of bf16. */
	_Alignas(64) uint8_t quant[12 * 144];
	uint8_t bf16[3 * 128 + 1];
	uint8_t f16[9 * 128];
	float f32[4 * 64];
} Fixture;

static void
add_tensor(Fixture *f, int i, uint32_t name, DType t, uint64_t rows, uint64_t k,
    const void *data)
{
	PlanTensor *p = &f->tensors[i];
	CkptTensor *c = &f->ckpt.tensors[i];

	*p = (PlanTensor){name, t, 2, 0, {rows, k, 1, 1}};
	c->name = names + name;
	c->type = t;
	c->type_name = dtypes[t].name;
	c->n_dims = 2;
	c->dims[0] = rows;
	c->dims[1] = k;
	c->bytes = dtype_bytes(t, rows * k);
	c->data = data;
}

static void
fill(void *data, size_t n)
{
	static uint32_t state = 7;
	uint8_t *p = data;

	for (size_t i = 0; i < n; i++) {
		state = state * 1664525 + 1013904223;
		p[i] = state >> 24 & 0xBB; /* no exponent of all ones */
	}
}

static Fixture *
open_fixture(uint32_t pack)
{
	Fixture *f = aligned_alloc(64, (sizeof *f + 63) / 64 * 64);

	assert_non_null(f);
	memset(f, 0, sizeof *f);
	fill(f->quant, sizeof f->quant);
	fill(f->bf16, sizeof f->bf16);
	fill(f->f16, sizeof f->f16);
	fill(f->f32, sizeof f->f32);
	add_tensor(f, T_QUANT, 1, DT_Q4_K, 12, 256, f->quant);
	add_tensor(f, T_BF16, 7, DT_BF16, 3, 64, f->bf16 + 1);
	add_tensor(f, T_F16, 12, DT_F16, 9, 64, f->f16);
	add_tensor(f, T_F32, 16, DT_F32, 4, 64, f->f32);
	f->ckpt.count = 4;
	f->target.first_pack = 2;
	for (int i = 0; i < N_WEIGHTS; i++) {
		const PlanWeight *w = &weights[i];
		uint64_t experts = w->n_dims == 3 ? w->dim[0] : 1;
		uint64_t rows = w->n_dims > 1 ? w->dim[w->n_dims - 2] : 1;
		PlanPack *p = &f->packs[2 + i];

		p->pack = w->n_dims == 1 ? (uint32_t)PACK_PLAIN : pack;
		p->bytes = pack_bytes(p->pack, (DType)w->dtype, experts, rows,
		    w->dim[w->n_dims - 1]);
	}
	f->meta.layout = LAYOUT;
	f->meta.data = DATA;
	f->plan.meta = &f->meta;
	f->plan.strings = names;
	f->plan.tensors = f->tensors;
	f->plan.n_tensors = 4;
	f->plan.weights = weights;
	f->plan.n_weights = N_WEIGHTS;
	f->plan.pieces = pieces;
	f->plan.n_pieces = sizeof pieces / sizeof *pieces;
	f->plan.packs = f->packs;
	f->plan.n_packs = 2 + N_WEIGHTS;
	f->plan.targets = &f->target;
	f->plan.n_targets = 1;
	return f;
}

/* ---- what must come out ---- */

/* Row r of weight i as the definition has it, in the weight's type. */
static void
expected_row(const Fixture *f, int i, uint64_t r, void *out)
{
	const PlanWeight *w = &weights[i];
	const PlanPiece *p = &pieces[w->first_piece];
	uint64_t k = w->n_dims == 1 ? 64 : w->dim[w->n_dims - 1];
	const CkptTensor *t;
	const uint8_t *row;
	float *x = out;

	for (; r >= p->rows; p++)
		r -= p->rows;
	t = &f->ckpt.tensors[p->tensor];
	row = (const uint8_t *)t->data + (p->row + r) * dtype_bytes(t->type, k);
	if (w->dtype != DT_F32) {
		memcpy(out, row, dtype_bytes(t->type, k));
		return;
	}
	dequant_row(t->type, row, k, x);
	for (uint64_t e = 0; e < k && w->map; e++)
		x[e] = w->map == 1 ? 1.0f + x[e] : -ig_exp(x[e]);
}

static void
check_plain(const Fixture *f, const Weights *w, int i)
{
	uint64_t k =
	    weights[i].n_dims == 1 ? 64 : weights[i].dim[weights[i].n_dims - 1];
	uint64_t bytes = dtype_bytes((DType)weights[i].dtype, k);
	uint8_t row[256];

	for (uint64_t r = 0; r * bytes < w->bytes[i]; r++) {
		expected_row(f, i, r, row);
		assert_memory_equal(
		    (uint8_t *)w->data[i] + r * bytes, row, bytes);
	}
}

static void
check_packed(const Fixture *f, const Weights *w, int i)
{
	const PlanWeight *pw = &weights[i];
	DType t = (DType)pw->dtype;
	uint64_t experts = pw->n_dims == 3 ? pw->dim[0] : 1;
	uint64_t rows = pw->dim[pw->n_dims - 2], k = pw->dim[pw->n_dims - 1];
	uint64_t bytes = pack_tile_bytes(t, k);
	uint8_t *at = w->data[i], row[8][256], *tile = malloc(bytes);
	const void *src[8];

	for (int r = 0; r < 8; r++)
		src[r] = row[r];
	for (uint64_t e = 0; e < experts; e++)
		for (uint64_t r = 0; r < rows; r += 8, at += bytes) {
			int n = rows - r < 8 ? (int)(rows - r) : 8;

			for (int j = 0; j < n; j++)
				expected_row(
				    f, i, e * rows + r + (uint64_t)j, row[j]);
			pack_tile(t, k, src, n, tile);
			assert_memory_equal(at, tile, bytes);
		}
	assert_int_equal(at - (uint8_t *)w->data[i], w->bytes[i]);
	free(tile);
}

static void
watch(void *user, uint64_t done, uint64_t total)
{
	uint64_t *last = user;

	assert_true(done > *last && done <= total);
	*last = done;
}

static void
check_bound(uint32_t pack, bool plain)
{
	Fixture *f = open_fixture(pack);
	uint64_t last = 0;
	WeightProgress progress = {watch, &last};
	Error err = {0};
	Weights w;

	assert_int_equal(
	    weights_bind(&f->plan, 0, &f->ckpt, plain, progress, &w, &err),
	    INGOT_OK);
	assert_int_equal(w.count, N_WEIGHTS);
	assert_int_equal(last, w.total);
	for (int i = 0; i < N_WEIGHTS; i++) {
		last -= w.bytes[i];
		assert_int_equal((uintptr_t)w.data[i] % 64, 0);
		if (plain || f->packs[2 + i].pack == PACK_PLAIN)
			check_plain(f, &w, i);
		else
			check_packed(f, &w, i);
	}
	assert_int_equal(last, 0);
	assert_false(w.other_data);
	if (plain)
		assert_ptr_equal(w.data[4], f->quant);
	weights_free(&w);
	weights_free(&w);
	free(f);
}

static void
test_bind(void **unused)
{
	(void)unused;
	check_bound(PACK_ROWS8, false);
	check_bound(PACK_PLAIN, false);
	check_bound(PACK_ROWS8, true);
}

/* Other weights of the same layout are bound, and told. A plan that recorded
 * nothing compares nothing. */
static void
test_other_data(void **unused)
{
	static const struct {
		uint64_t layout, data;
		bool other;
	} cases[] = {
	    {LAYOUT, DATA + 1, true}, {LAYOUT, 0, false}, {0, DATA, false}};

	(void)unused;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		Fixture *f = open_fixture(PACK_PLAIN);
		Error err = {0};
		Weights w;

		f->meta.layout = cases[i].layout;
		f->meta.data = cases[i].data;
		assert_int_equal(weights_bind(&f->plan, 0, &f->ckpt, true,
				     (WeightProgress){0}, &w, &err),
		    INGOT_OK);
		assert_int_equal(w.other_data, cases[i].other);
		weights_free(&w);
		free(f);
	}
}

/* ---- what is refused ---- */

static void
check_refused(Fixture *f, ingot_status status, const char *sentence)
{
	Error err = {0};
	Weights w;

	assert_int_equal(weights_bind(&f->plan, 0, &f->ckpt, false,
			     (WeightProgress){0}, &w, &err),
	    status);
	assert_int_equal(err.status, status);
	assert_string_equal(err.text, sentence);
	assert_null(w.data);
	assert_null(w.memory);
	free(f);
}

static void
test_refused(void **unused)
{
	Fixture *f = open_fixture(PACK_ROWS8);

	(void)unused;
	f->ckpt.tensors[T_F16].dims[1] = 65;
	check_refused(f, INGOT_MISMATCH,
	    "model.gguf: tensor f16 is f16 [9, 65] but the plan was compiled "
	    "for f16 [9, 64]");
	f = open_fixture(PACK_ROWS8);
	f->ckpt.tensors[T_F16].type = DT_COUNT;
	f->ckpt.tensors[T_F16].type_name = "iq1_s";
	check_refused(f, INGOT_MISMATCH,
	    "model.gguf: tensor f16 is iq1_s [9, 64] but the plan was compiled "
	    "for f16 [9, 64]");
	f = open_fixture(PACK_ROWS8);
	f->ckpt.tensors[T_F32].n_dims = 1;
	check_refused(f, INGOT_MISMATCH,
	    "model.gguf: tensor f32 is f32 [4] but the plan was compiled for "
	    "f32 [4, 64]");
	f = open_fixture(PACK_ROWS8);
	f->ckpt.count = 3;
	check_refused(f, INGOT_MISMATCH,
	    "model.gguf: the plan needs tensor f32, f32 [4, 64], which this "
	    "checkpoint does not have; bind the one the plan was compiled for");
	f = open_fixture(PACK_ROWS8);
	f->ckpt.header_only = true;
	check_refused(f, INGOT_BAD_FILE,
	    "model.gguf: this file holds only a header; weights need the whole "
	    "checkpoint");
	f = open_fixture(PACK_ROWS8);
	f->meta.layout = LAYOUT + 1;
	check_refused(f, INGOT_MISMATCH,
	    "model.gguf has the plan's tensors but another configuration: "
	    "compile a plan for it");
	f = open_fixture(PACK_ROWS8);
	f->packs[2].bytes += 64;
	check_refused(f, INGOT_BAD_FILE,
	    "the plan gives weight stacked 2432 bytes, but its layout takes "
	    "2368; compile it again");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_bind),
	    cmocka_unit_test(test_other_data),
	    cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
