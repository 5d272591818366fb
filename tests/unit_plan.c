/* Writing plans, opening them, and refusing damaged ones. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../runtime/plan_open.h"
#include "plan_sign.h"
#include "toy_plan.h"

#include <cmocka.h> /* its macro fail hides the runtime's function */

static const char object[] = "no code";

/* The toy plan in memory of its own. */
static unsigned char *
make(size_t *n)
{
	PlanWriter *pw = toy_plan(object, sizeof object);
	const unsigned char *bytes = pw_bytes(pw, n);
	unsigned char *copy = malloc(*n);

	assert_non_null(copy);
	memcpy(copy, bytes, *n);
	plan_writer_free(pw);
	return copy;
}

/* Opens bytes from an allocation of exactly their length. */
static ingot_status
open_exact(const unsigned char *bytes, size_t n, Plan **p, Error *err)
{
	unsigned char *tight = malloc(n ? n : 1);
	ingot_status status;

	assert_non_null(tight);
	memcpy(tight, bytes, n);
	memset(err, 0, sizeof *err);
	status = ingot_plan_read(tight, n, p, err);
	free(tight);
	return status;
}

/* Refused, with a sentence that has part in it. */
static void
assert_refused(const unsigned char *bytes, size_t n, const char *part)
{
	Plan *p;
	Error err;
	ingot_status status = open_exact(bytes, n, &p, &err);

	if (status == INGOT_OK || !strstr(err.text, part))
		fail_msg("wanted a refusal with \"%s\", got %d: %s", part,
		    (int)status, err.text);
	assert_null(p);
	assert_int_equal(err.status, status);
}

static void
test_open(void **state)
{
	size_t n;
	unsigned char *bytes = make(&n);
	Plan *p;
	Error err;

	(void)state;
	assert_int_equal(open_exact(bytes, n, &p, &err), INGOT_OK);
	assert_int_equal(n % PLAN_ALIGN, 0);
	assert_string_equal(plan_string(p, p->meta->arch), "toy");
	assert_int_equal(p->n_weights, 2);
	assert_string_equal(plan_string(p, p->weights[0].name), "bias");
	assert_int_equal(p->weights[0].dim[0], 5);
	assert_int_equal(p->n_launches, 3);
	assert_int_equal(p->launches[0].mul, 3);
	assert_int_equal(p->n_args, 20);
	assert_memory_equal(
	    p->objects + p->targets[0].object, object, sizeof object);
	assert_memory_equal(p->graph, "toy\n", 4);
	assert_int_equal(plan_target(p, "cpu"), 0);
	assert_int_equal(plan_target(p, "gfx1100"), -1);
	ingot_plan_close(p);
	free(bytes);
}

static void
test_deterministic(void **state)
{
	size_t n, m;
	unsigned char *a = make(&n), *b = make(&m);

	(void)state;
	assert_int_equal(n, m);
	assert_memory_equal(a, b, n);
	free(a);
	free(b);
}

static void
test_strings(void **state)
{
	PlanWriter *pw = plan_writer_new();
	uint32_t at[3000];
	char text[16];
	size_t n;

	(void)state;
	assert_int_equal(pw_string(pw, ""), 0);
	for (int i = 0; i < 3000; i++) {
		snprintf(text, sizeof text, "s%d", i);
		at[i] = pw_string(pw, text);
	}
	assert_int_equal(at[0], 1);
	for (int i = 2999; i >= 0; i--) {
		snprintf(text, sizeof text, "s%d", i);
		assert_int_equal(pw_string(pw, text), at[i]);
		assert_int_equal(pw_text(pw, "s1234567", i < 10 ? 2 : 3),
		    at[i < 10 ? 1 : 12]);
	}
	pw_bytes(pw, &n);
	assert_int_equal(pw_count(pw, SEC_STRINGS), at[2999] + 6);
	plan_writer_free(pw);
}

/* Every single bit is covered by a checksum or a rule. */
static void
test_bit_flips(void **state)
{
	size_t n;
	unsigned char *bytes = make(&n);
	Plan *p;
	Error err;

	(void)state;
	for (size_t i = 0; i < n * 8; i++) {
		bytes[i / 8] ^= (unsigned char)(1u << i % 8);
		if (open_exact(bytes, n, &p, &err) == INGOT_OK)
			fail_msg(
			    "bit %zu of byte %zu is not covered", i % 8, i / 8);
		bytes[i / 8] ^= (unsigned char)(1u << i % 8);
	}
	free(bytes);
}

/* Damage to a section is told under the section's name. */
static void
test_section_names(void **state)
{
	static const char *const names[] = {
#define SECTION(NAME, element) "section " #NAME " of the plan is damaged",
	    PLAN_SECTIONS(SECTION)
#undef SECTION
	};
	size_t n;
	unsigned char *bytes = make(&n);
	PlanHeader h;
	PlanSection s;

	(void)state;
	memcpy(&h, bytes, sizeof h);
	assert_true(h.n_sections > 8);
	for (uint32_t i = 0; i < h.n_sections; i++) {
		memcpy(&s, bytes + sizeof h + i * sizeof s, sizeof s);
		bytes[s.offset] ^= 1;
		assert_refused(bytes, n, names[s.kind]);
		bytes[s.offset] ^= 1;
	}
	free(bytes);
}

static void
test_lengths(void **state)
{
	size_t n;
	unsigned char *bytes = make(&n);

	(void)state;
	bytes = realloc(bytes, n + 64);
	assert_non_null(bytes);
	memset(bytes + n, 0, 64);
	for (size_t i = 0; i < n; i++)
		assert_refused(bytes, i, "plan");
	assert_refused(bytes, n + 1, "should have");
	/* The same with right checksums, from long to short. */
	for (size_t i = n - 1; i > sizeof(PlanHeader); i--) {
		plan_sign(bytes, i);
		assert_refused(bytes, i, "plan");
	}
	free(bytes);
	bytes = make(&n);
	bytes = realloc(bytes, n + 64);
	assert_non_null(bytes);
	memset(bytes + n, 0, 64);
	plan_sign(bytes, n + 64);
	assert_refused(bytes, n + 64, "follows");
	free(bytes);
}

/* Walks over all that readers follow. */
static size_t
walk(const Plan *p)
{
	size_t sum = strlen(plan_string(p, p->meta->arch));

	for (uint64_t i = 0; i < p->n_weights; i++)
		for (uint32_t k = 0; k < p->weights[i].n_pieces; k++)
			sum +=
			    p->tensors[p->pieces[p->weights[i].first_piece + k]
					   .tensor]
				.name;
	for (uint64_t i = 0; i < p->n_targets; i++) {
		const PlanTarget *t = &p->targets[i];

		for (uint32_t k = 0; k < t->n_launches; k++) {
			const PlanLaunch *l = &p->launches[t->first_launch + k];

			sum += p->kernels[t->first_kernel + l->kernel].name;
			sum += p->regions[l->region].name;
			for (uint32_t a = 0; a < l->n_args; a++)
				sum += p->args[l->first_arg + a].index;
		}
		for (uint64_t k = 0; k < t->object_bytes; k++)
			sum += (unsigned char)p->objects[t->object + k];
	}
	return sum;
}

/* With checksums put right: refused or harmless, never a crash. */
static void
test_signed_damage(void **state)
{
	static const unsigned char masks[] = {0x01, 0x40, 0x80, 0xFF};
	size_t n, refused = 0;
	unsigned char *bytes = make(&n);
	unsigned char *damaged = malloc(n);
	Plan *p;
	Error err;

	(void)state;
	assert_non_null(damaged);
	for (size_t i = 0; i < n * sizeof masks; i++) {
		memcpy(damaged, bytes, n);
		damaged[i / sizeof masks] ^= masks[i % sizeof masks];
		plan_sign(damaged, n);
		if (open_exact(damaged, n, &p, &err) == INGOT_OK) {
			assert_true(walk(p) > 0);
			ingot_plan_close(p);
		} else {
			assert_true(strlen(err.text) > 10);
			refused++;
		}
	}
	assert_true(refused > n);
	free(damaged);
	free(bytes);
}

/* ---- versions ---- */

/* The toy plan with its last section (OBJECTS) called kind. */
static void
versions(
    int major, int minor, uint32_t kind, uint32_t flags, const char *refusal)
{
	size_t n;
	unsigned char *bytes = make(&n);
	PlanHeader h;
	PlanSection s;
	unsigned char *last;
	Plan *p;
	Error err;

	memcpy(&h, bytes, sizeof h);
	h.major = (uint16_t)major;
	h.minor = (uint16_t)minor;
	memcpy(bytes, &h, sizeof h);
	last = bytes + sizeof h + (h.n_sections - 1) * sizeof s;
	memcpy(&s, last, sizeof s);
	assert_int_equal(s.kind, SEC_OBJECTS);
	s.kind = kind;
	s.flags = flags;
	memcpy(last, &s, sizeof s);
	/* The target's object is then empty. */
	memcpy(&s, bytes + sizeof h + 8 * sizeof s, sizeof s);
	assert_int_equal(s.kind, SEC_TARGETS);
	if (kind != SEC_OBJECTS)
		memset(bytes + s.offset + offsetof(PlanTarget, object), 0, 16);
	plan_sign(bytes, n);
	if (refusal) {
		assert_refused(bytes, n, refusal);
	} else {
		assert_int_equal(open_exact(bytes, n, &p, &err), INGOT_OK);
		ingot_plan_close(p);
	}
	free(bytes);
}

static void
test_versions(void **state)
{
	(void)state;
	versions(PLAN_MAJOR, PLAN_MINOR, SEC_OBJECTS, 0, NULL);
	versions(PLAN_MAJOR, PLAN_MINOR + 1, SEC_OBJECTS, 0, NULL);
	versions(PLAN_MAJOR, PLAN_MINOR + 1, 99, 0, NULL);
	versions(PLAN_MAJOR, PLAN_MINOR + 1, 99, SECTION_REQUIRED, "needs");
	versions(PLAN_MAJOR, PLAN_MINOR, 99, 0, "unknown kind 99");
	versions(PLAN_MAJOR, PLAN_MINOR, SEC_GRAPH, 0, "GRAPH twice");
	versions(PLAN_MAJOR + 1, 0, SEC_OBJECTS, 0, "version 2.0");
	versions(PLAN_MAJOR - 1, 0, SEC_OBJECTS, 0, "version 0.0");
}

/* ---- one wrong field at a time ---- */

typedef struct Wrong {
	uint32_t section, item;
	size_t offset, size; /* of the field */
	uint64_t value;
	const char *part; /* of the sentence */
} Wrong;

#define WRONG(KIND, type, item, field, value, part)                            \
	{                                                                      \
		SEC_##KIND, item, offsetof(type, field) + item * sizeof(type), \
		    sizeof(((type *)0)->field), value, part                    \
	}
/* Element i of an array field. */
#define WRONG_AT(KIND, type, item, field, i, value, part)                      \
	{                                                                      \
		SEC_##KIND, item,                                              \
		    offsetof(type, field) + item * sizeof(type) +              \
			i * sizeof(((type *)0)->field[0]),                     \
		    sizeof(((type *)0)->field[0]), value, part                 \
	}

static const Wrong wrongs[] = {
    WRONG(META, PlanMeta, 0, arch, 0, "meta 0: a string"),
    WRONG(META, PlanMeta, 0, arch, 1 << 20, "meta 0: a string"),
    WRONG(META, PlanMeta, 0, numerics, 1, "neither exact nor fast"),
    WRONG(META, PlanMeta, 0, kv_dtype, DT_Q4_K, "float type"),
    WRONG(META, PlanMeta, 0, kv_dtype, DT_COUNT, "float type"),
    WRONG(META, PlanMeta, 0, vocab, 0, "vocab"),
    WRONG(META, PlanMeta, 0, ctx, 0, "vocab"),
    WRONG(META, PlanMeta, 0, max_chunk, 0, "vocab"),
    WRONG(META, PlanMeta, 0, max_chunk, UINT32_MAX, "vocab"),
    WRONG(TENSORS, PlanTensor, 1, name, 0, "tensor 1: its name"),
    WRONG(TENSORS, PlanTensor, 1, dtype, DT_Q8A, "tensor 1: its name"),
    WRONG(TENSORS, PlanTensor, 0, n_dims, 0, "tensor 0: its shape"),
    WRONG(TENSORS, PlanTensor, 0, n_dims, 5, "tensor 0: its shape"),
    WRONG(TENSORS, PlanTensor, 0, pad, 1, "tensor 0"),
    WRONG_AT(TENSORS, PlanTensor, 0, dim, 0, 0, "tensor 0: its shape"),
    WRONG_AT(TENSORS, PlanTensor, 0, dim, 0, 1ull << 62, "its shape"),
    WRONG_AT(TENSORS, PlanTensor, 0, dim, 3, 2, "tensor 0: its shape"),
    WRONG_AT(TENSORS, PlanTensor, 0, dim, 0, 2, "beyond its tensor"),
    WRONG(TENSORS, PlanTensor, 0, dtype, DT_Q4_K, "its shape"),
    WRONG(TENSORS, PlanTensor, 0, dtype, DT_I32, "type or row length"),
    WRONG(WEIGHTS, PlanWeight, 0, dtype, DT_BF16, "type or row length"),
    WRONG(WEIGHTS, PlanWeight, 0, map, 3, "map is out of range"),
    WRONG(WEIGHTS, PlanWeight, 1, map, 1, "map is out of range"),
    WRONG_AT(WEIGHTS, PlanWeight, 0, dim, 0, 6, "do not make its rows"),
    WRONG_AT(WEIGHTS, PlanWeight, 0, dim, 1, 4, "type or row length"),
    WRONG(WEIGHTS, PlanWeight, 0, first_piece, 2, "out of range"),
    WRONG(WEIGHTS, PlanWeight, 0, first_piece, UINT32_MAX, "out of range"),
    WRONG(WEIGHTS, PlanWeight, 0, n_pieces, 0, "out of range"),
    WRONG(WEIGHTS, PlanWeight, 0, n_pieces, 3, "do not make its rows"),
    WRONG(PIECES, PlanPiece, 0, tensor, 2, "names no tensor"),
    WRONG(PIECES, PlanPiece, 0, row, 1, "beyond its tensor"),
    WRONG(PIECES, PlanPiece, 0, row, UINT64_MAX, "beyond its tensor"),
    WRONG(PIECES, PlanPiece, 0, rows, 0, "beyond its tensor"),
    WRONG(PIECES, PlanPiece, 0, rows, 2, "do not make its rows"),
    WRONG(STATES, PlanState, 0, kind, 2, "state 0: its name or kind"),
    WRONG(STATES, PlanState, 1, bytes, 0, "state 1: its size"),
    WRONG(STATES, PlanState, 1, bytes, UINT64_MAX, "state 1: its size"),
    WRONG(TABLES, PlanTable, 0, rot, 3, "table 0: its width"),
    WRONG(TABLES, PlanTable, 0, rot, 0, "table 0: its width"),
    WRONG(TABLES, PlanTable, 0, theta, 0, "its theta"),
    WRONG(TABLES, PlanTable, 0, theta, 0x7FF0000000000000, "its theta"),
    WRONG(TARGETS, PlanTarget, 0, name, 0, "target 0: its name"),
    WRONG(TARGETS, PlanTarget, 0, n_packs, 1, "each weight once"),
    WRONG(TARGETS, PlanTarget, 0, first_pack, 1, "beyond its section"),
    WRONG(TARGETS, PlanTarget, 0, n_buffers, 5, "beyond its section"),
    WRONG(TARGETS, PlanTarget, 0, n_kernels, 4, "beyond its section"),
    WRONG(TARGETS, PlanTarget, 0, n_kernels, 2, "kernel or region"),
    WRONG(TARGETS, PlanTarget, 0, n_launches, 4, "beyond its section"),
    WRONG(TARGETS, PlanTarget, 0, n_launches, 2, "beyond the last launch"),
    WRONG(TARGETS, PlanTarget, 0, n_buffers, 2, "does not exist"),
    WRONG(TARGETS, PlanTarget, 0, source, 1, "beyond its section"),
    WRONG(TARGETS, PlanTarget, 0, object_bytes, UINT64_MAX, "beyond its"),
    WRONG(PACKS, PlanPack, 0, pack, 2, "pack 0: its kind"),
    WRONG(PACKS, PlanPack, 0, bytes, 159, "pack 0: its size"),
    WRONG(PACKS, PlanPack, 1, bytes, 0, "pack 1: its size"),
    WRONG(BUFFERS, PlanBuffer, 0, sym, SYM_B, "buffer 0: its name or"),
    WRONG(BUFFERS, PlanBuffer, 0, pad, 1, "buffer 0: its padding"),
    WRONG(BUFFERS, PlanBuffer, 0, row_bytes, 32, "multiple of 64"),
    WRONG(BUFFERS, PlanBuffer, 0, row_bytes, 0, "multiple of 64"),
    WRONG(BUFFERS, PlanBuffer, 0, row_bytes, 1ull << 62, "too large"),
    WRONG(BUFFERS, PlanBuffer, 0, offset, 8, "multiple of 64"),
    WRONG(BUFFERS, PlanBuffer, 0, offset, 1ull << 63, "too large"),
    WRONG(BUFFERS, PlanBuffer, 0, first_launch, 3, "beyond the last"),
    WRONG(BUFFERS, PlanBuffer, 0, last_launch, 3, "beyond the last"),
    WRONG(BUFFERS, PlanBuffer, 3, last_launch, 1, "shares memory"),
    WRONG(BUFFERS, PlanBuffer, 2, sym, SYM_T, "shares memory"),
    WRONG(BUFFERS, PlanBuffer, 0, first_launch, 2, "outside of its"),
    WRONG(BUFFERS, PlanBuffer, 0, last_launch, 1, "outside of its"),
    WRONG(KERNELS, PlanKernel, 2, name, 0, "kernel 2: its name"),
    WRONG(KERNELS, PlanKernel, 2, source_bytes, 5, "its source"),
    WRONG(LAUNCHES, PlanLaunch, 0, kernel, 3, "kernel or region"),
    WRONG(LAUNCHES, PlanLaunch, 0, region, 3, "kernel or region"),
    WRONG(LAUNCHES, PlanLaunch, 0, sym, SYM_COUNT, "its size has no"),
    WRONG(LAUNCHES, PlanLaunch, 0, div, 0, "its size has no"),
    WRONG(LAUNCHES, PlanLaunch, 0, mul, UINT32_MAX, "too many work"),
    WRONG(LAUNCHES, PlanLaunch, 0, add, UINT32_MAX, "too many work"),
    WRONG(LAUNCHES, PlanLaunch, 2, first_arg, 10, "arguments are out"),
    WRONG(LAUNCHES, PlanLaunch, 2, n_args, 12, "arguments are out"),
    WRONG(ARGS, PlanArg, 0, kind, ARG_LOGITS + 1, "does not exist"),
    WRONG(ARGS, PlanArg, 0, index, 3, "does not exist"),
    WRONG(ARGS, PlanArg, 1, index, TOY_H, "outside of its"),
    WRONG(ARGS, PlanArg, 2, index, IN_COUNT, "does not exist"),
    WRONG(ARGS, PlanArg, 15, index, 1, "does not exist"),
    WRONG(ARGS, PlanArg, 16, index, 2, "does not exist"),
    WRONG(ARGS, PlanArg, 19, index, 1, "does not exist"),
    WRONG(REGIONS, PlanRegion, 1, name, 0, "region 1: a string"),
    WRONG(REGIONS, PlanRegion, 1, why, 1 << 20, "region 1: a string"),
};

static uint64_t
section_offset(const unsigned char *bytes, uint32_t kind)
{
	PlanSection s;
	const unsigned char *at = bytes + sizeof(PlanHeader);

	do {
		memcpy(&s, at, sizeof s);
		at += sizeof s;
	} while (s.kind != kind);
	return s.offset;
}

static void
test_wrong_fields(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof wrongs / sizeof *wrongs; i++) {
		const Wrong *w = &wrongs[i];
		size_t n;
		unsigned char *bytes = make(&n);

		memcpy(bytes + section_offset(bytes, w->section) + w->offset,
		    &w->value, w->size);
		plan_sign(bytes, n);
		assert_refused(bytes, n, w->part);
		free(bytes);
	}
}

static void
test_two_targets(void **state)
{
	PlanWriter *pw = toy_plan(object, sizeof object);
	PlanTarget *t = pw_add(pw, SEC_TARGETS, 1);
	const unsigned char *bytes;
	Plan *p;
	Error err;
	size_t n;

	(void)state;
	*t = *(PlanTarget *)pw_at(pw, SEC_TARGETS, 0);
	bytes = pw_bytes(pw, &n);
	assert_refused(bytes, n, "target 1: it is there twice");
	t = pw_at(pw, SEC_TARGETS, 1);
	t->name = pw_string(pw, "gfx1100");
	bytes = pw_bytes(pw, &n);
	assert_int_equal(open_exact(bytes, n, &p, &err), INGOT_OK);
	assert_int_equal(plan_target(p, "gfx1100"), 1);
	ingot_plan_close(p);
	plan_writer_free(pw);
}

/* ---- files ---- */

static int
count_files(const char *folder)
{
	DIR *d = opendir(folder);
	int n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n - 2;
}

static void
test_file(void **state)
{
	PlanWriter *pw = toy_plan(object, sizeof object);
	char folder[] = "/tmp/unit_planXXXXXX", path[64], why[PLAN_WHY];
	Plan *p;
	Error err;

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof path, "%s/x.plan", folder);
	for (int i = 0; i < 2; i++)
		assert_true(pw_write(pw, path, why));
	assert_int_equal(count_files(folder), 1);
	assert_int_equal(ingot_plan_open(path, &p, &err), INGOT_OK);
	assert_true(walk(p) > 0);
	ingot_plan_close(p);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink("nothing", path), 0);
	assert_false(pw_write(pw, path, why));
	assert_non_null(strstr(why, "/x.plan: it is a link"));
	assert_int_equal(count_files(folder), 1);
	assert_int_equal(unlink(path), 0);

	snprintf(path, sizeof path, "%s/no/x.plan", folder);
	assert_false(pw_write(pw, path, why));
	assert_non_null(strstr(why, path));
	assert_int_equal(ingot_plan_open(path, &p, &err), INGOT_IO);
	assert_non_null(strstr(err.text, path));
	/* A folder is in the way of the name. */
	assert_false(pw_write(pw, folder, why));
	assert_int_equal(count_files(folder), 0);
	assert_int_equal(rmdir(folder), 0);
	plan_writer_free(pw);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_open),
	    cmocka_unit_test(test_deterministic),
	    cmocka_unit_test(test_strings),
	    cmocka_unit_test(test_bit_flips),
	    cmocka_unit_test(test_section_names),
	    cmocka_unit_test(test_lengths),
	    cmocka_unit_test(test_signed_damage),
	    cmocka_unit_test(test_versions),
	    cmocka_unit_test(test_wrong_fields),
	    cmocka_unit_test(test_two_targets),
	    cmocka_unit_test(test_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
