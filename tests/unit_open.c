/* Opening models and sessions, and what refuses to be opened. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../runtime/backend.h"
#include "toy_session.h"

#include <cmocka.h> /* its macro fail hides the runtime's function */

static void
assert_no_model(ingot_plan *p, const ingot_model_options *o, ingot_status want,
    const char *part)
{
	ingot_model *m;
	Error err = {0};
	ingot_status status = ingot_model_open(p, "toy", o, &m, &err);

	if (status != want || !strstr(err.text, part))
		fail_msg("wanted %d \"%s\", got %d: %s", (int)want, part,
		    (int)status, err.text);
	assert_null(m);
}

static void
damage_object(const char *kernel, const char *part)
{
	PlanWriter *pw = toy_plan("none", 4);
	const unsigned char *bytes;
	ingot_plan *p, *whole = toy_open(0);
	PlanTarget *t = pw_at(pw, SEC_TARGETS, 0);
	const PlanTarget *from = whole->targets;
	size_t n;

	if (kernel) {
		t->object = pw_blob(pw, SEC_OBJECTS,
		    whole->objects + from->object, from->object_bytes, 64);
		t->object_bytes = from->object_bytes;
		((PlanKernel *)pw_at(pw, SEC_KERNELS, 1))->name =
		    pw_string(pw, kernel);
	}
	bytes = pw_bytes(pw, &n);
	assert_int_equal(ingot_plan_read(bytes, n, &p, NULL), INGOT_OK);
	assert_no_model(p, NULL, INGOT_BAD_FILE, part);
	ingot_plan_close(p);
	ingot_plan_close(whole);
	plan_writer_free(pw);
}

static void
test_no_model(void **state)
{
	ingot_model_options o = {.size = sizeof o, .device = "hip:0"};
	struct {
		ingot_model_options o;
		uint64_t newer;
	} big = {.o = {.size = sizeof big}, .newer = 1};
	ingot_plan *p = toy_open(0);

	(void)state;
	assert_no_model(p, &o, INGOT_NO_DEVICE, "device hip:0");
	o.device = "sim:gfx1100";
	assert_no_model(p, &o, INGOT_NO_DEVICE, "device sim:gfx1100");
	o.device = "cpu";
	o.threads = 100000;
	assert_no_model(p, &o, INGOT_BAD_ARG, "100000 threads");
	o.size = 0;
	assert_no_model(p, &o, INGOT_BAD_ARG, "size is 0");
	assert_no_model(p, &big.o, INGOT_BAD_ARG, "too old");
	assert_int_equal(ckpt_is_open, 0);
	damage_object(NULL, "cannot be loaded");
	damage_object("scam", "lacks kernel scam");
	ingot_plan_close(p);
}

/* Descriptors of the process, that of the listing included. */
static int
count_descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* What is opened and closed leaves no descriptor behind. Sanitizers open files
 * of their own in threads that are starting or ending, so it gets a while. */
static void
test_descriptors(void **state)
{
	const struct timespec pause = {0, 10 * 1000 * 1000};
	int before = count_descriptors();
	Toy t = toy_session(CPU, 1, 1);

	(void)state;
	toy_close(&t);
	for (int i = 0; i < 100 && count_descriptors() != before; i++)
		nanosleep(&pause, NULL);
	assert_int_equal(count_descriptors(), before);
}

static void
test_other_target(void **state)
{
	PlanWriter *pw = toy_plan("x", 1);
	PlanTarget *t = pw_at(pw, SEC_TARGETS, 0);
	const unsigned char *bytes;
	ingot_plan *p;
	size_t n;

	(void)state;
	t->name = pw_string(pw, "gfx1100");
	bytes = pw_bytes(pw, &n);
	assert_int_equal(ingot_plan_read(bytes, n, &p, NULL), INGOT_OK);
	assert_no_model(p, NULL, INGOT_MISMATCH, "code for gfx1100");
	ingot_plan_close(p);
	plan_writer_free(pw);
}

static void
assert_no_session(ingot_model *m, ingot_session_options o, const char *part)
{
	ingot_session *s;
	Error err = {0};

	assert_int_not_equal(ingot_session_open(m, &o, &s, &err), INGOT_OK);
	assert_null(s);
	if (!strstr(err.text, part))
		fail_msg("wanted \"%s\", got: %s", part, err.text);
}

static void
test_no_session(void **state)
{
	const size_t size = sizeof(ingot_session_options);
	Toy t = toy_session(CPU, 1, 1);
	ingot_session *s;

	(void)state;
	assert_no_session(t.model,
	    (ingot_session_options){size, 1u << 21, 1, 1}, "ctx is 2097152");
	assert_no_session(t.model,
	    (ingot_session_options){size, 64, 1u << 17, 1}, "max_seqs is");
	assert_no_session(t.model, (ingot_session_options){size, 64, 1, 17},
	    "max_rows is 17");
	assert_int_equal(
	    ingot_session_open(
		t.model, &(ingot_session_options){size, 300, 20, 0}, &s, NULL),
	    INGOT_OK);
	ingot_session_close(s);
	toy_close(&t);
}

static ingot_status
open_nothing(void *user, const Plan *plan, const Weights *w,
    const BackendLimits *limits, Backend **out, Error *err)
{
	(void)user;
	(void)plan;
	(void)w;
	(void)limits;
	(void)err;
	*out = NULL;
	return INGOT_OK;
}

static void
test_no_backend(void **state)
{
	const BackendFactory factory = {open_nothing, NULL, "nothing"};
	Toy t = {toy_open(0), NULL, NULL};
	Error err;

	(void)state;
	assert_int_equal(
	    model_open_custom(t.plan, "toy", &factory, NULL, &t.model, &err),
	    INGOT_OK);
	assert_int_equal(
	    ingot_session_open(t.model, NULL, &t.s, &err), INGOT_INTERNAL);
	assert_null(t.s);
	toy_close(&t);
}

/* Each allocation of model and session fails once: a sentence, no leak. */
static void
test_no_memory(void **state)
{
	ingot_plan *p = toy_open(0);
	ingot_model *m;
	ingot_session *s;
	Error err;
	ingot_status status = INGOT_NO_MEMORY;

	(void)state;
	for (unsigned i = 1; status != INGOT_OK; i++) {
		m = NULL;
		s = NULL;
		allocations = 0;
		refuse_from = i;
		status = ingot_model_open(p, "toy", NULL, &m, &err);
		if (!status)
			status = ingot_session_open(m, NULL, &s, &err);
		refuse_from = 0;
		assert_true(status == INGOT_OK || status == INGOT_NO_MEMORY);
		if (status)
			assert_non_null(strstr(err.text, "no memory"));
		else
			assert_true(i > 10);
		ingot_session_close(s);
		ingot_model_close(m);
		assert_int_equal(ckpt_is_open, 0);
	}
	ingot_plan_close(p);
}

static void
test_info(void **state)
{
	ingot_model_info i;

	(void)state;
	for (int kind = 0; kind < KINDS; kind++) {
		Toy t = toy_session(kind, 1, 1);

		i = ingot_model_get_info(t.model);
		assert_int_equal(i.vocab, TOY_VOCAB);
		assert_int_equal(i.ctx, TOY_CTX);
		assert_int_equal(i.max_chunk, TOY_CHUNK);
		assert_int_equal(i.weight_bytes, 160);
		assert_string_equal(
		    i.device, kind == OUTSIDE ? "outside" : "cpu");
		toy_close(&t);
	}
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_info),
	    cmocka_unit_test(test_no_model),
	    cmocka_unit_test(test_descriptors),
	    cmocka_unit_test(test_other_target),
	    cmocka_unit_test(test_no_session),
	    cmocka_unit_test(test_no_backend),
	    cmocka_unit_test(test_no_memory),
	};

	toy_main(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
