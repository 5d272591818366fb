/* Sessions over the toy model, on its own kernels and on a backend from
 * outside: pages, slots, cuts, ragged steps, failures. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xmmintrin.h>

#include "../runtime/backend.h"
#include "toy_session.h"

#include <cmocka.h> /* its macro fail hides the runtime's function */

/* Any cut of a prompt gives the same logits. */
static void
check_cut(Toy *t, uint32_t cut)
{
	uint64_t seed = 7;
	uint32_t tokens[131], seq, n;

	for (uint32_t i = 0; i < 131; i++)
		tokens[i] = random_token(&seed);
	assert_int_equal(ingot_seq_add(t->s, &seq, NULL), INGOT_OK);
	for (uint32_t at = 0; at < 131; at += n) {
		n = 131 - at < cut ? 131 - at : cut;
		step_one(t, seq, tokens + at, n, INGOT_WANT_ALL);
		for (uint32_t i = 0; i < n; i++)
			assert_row(t, i, tokens, at + i + 1);
		assert_null(ingot_logits(t->s, n));
		assert_int_equal(ingot_seq_length(t->s, seq), at + n);
	}
	assert_int_equal(ingot_seq_remove(t->s, seq, NULL), INGOT_OK);
}

static void
test_cuts(void **state)
{
	(void)state;
	for (int kind = 0; kind < KINDS; kind++) {
		Toy t = toy_session(kind, 1, TOY_CHUNK);

		/* Threads are slow to meet on a busy machine. */
		for (uint32_t cut = kind == CPU_THREADS ? 5 : 1;
		     cut <= TOY_CHUNK; cut += kind == CPU_THREADS ? 11 : 1)
			check_cut(&t, cut);
		toy_close(&t);
	}
}

/* A ragged step of those sequences that have room, with random wants. */
static void
random_step(Toy *t, Shadow *shadow, uint64_t *seed)
{
	ingot_work work[MAX_SLOTS];
	uint32_t n = 0, left = TOY_CHUNK, row = 0;

	for (uint32_t i = 0; i < MAX_SLOTS && left > 0; i++) {
		Shadow *q = &shadow[(i * 5 + 3) % MAX_SLOTS];
		uint32_t count = 1 + next_random(seed) % left;

		if (!q->exists || count > TOY_CTX - q->length ||
		    next_random(seed) % 4 == 0)
			continue;
		for (uint32_t k = 0; k < count; k++)
			q->tokens[q->length + k] = random_token(seed);
		work[n++] = (ingot_work){(uint32_t)(q - shadow), count,
		    q->tokens + q->length, (ingot_want)(next_random(seed) % 3)};
		left -= count;
	}
	if (n == 0)
		return;
	assert_int_equal(ingot_step(t->s, work, n, NULL), INGOT_OK);
	for (uint32_t i = 0; i < n; i++) {
		Shadow *q = &shadow[work[i].seq];
		uint32_t rows = work[i].want == INGOT_WANT_ALL ? work[i].count
				: work[i].want == INGOT_WANT_LAST ? 1
								  : 0;

		q->length += work[i].count;
		for (uint32_t k = 0; k < rows; k++)
			assert_row(
			    t, row++, q->tokens, q->length - rows + k + 1);
	}
	assert_null(ingot_logits(t->s, row));
}

static uint32_t
count_shadows(const Shadow *shadow)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < MAX_SLOTS; i++)
		n += shadow[i].exists;
	return n;
}

/* Adds (from < 0) or copies a sequence, which works while there is room. */
static void
grow(Toy *t, Shadow *shadow, int from)
{
	bool full = count_shadows(shadow) == MAX_SLOTS;
	uint32_t seq;
	ingot_status status =
	    from < 0 ? ingot_seq_add(t->s, &seq, NULL)
		     : ingot_seq_copy(t->s, (uint32_t)from, &seq, NULL);

	assert_int_equal(status, full ? INGOT_FULL : INGOT_OK);
	if (full)
		return;
	assert_true(seq < MAX_SLOTS && !shadow[seq].exists);
	if (from < 0)
		shadow[seq] = (Shadow){.exists = true};
	else
		shadow[seq] = shadow[from];
}

static void
random_life(Toy *t, uint64_t seed, int rounds)
{
	static Shadow shadow[MAX_SLOTS];

	memset(shadow, 0, sizeof shadow);
	for (int round = 0; round < rounds; round++) {
		uint32_t what = next_random(&seed) % 16;
		uint32_t seq = next_random(&seed) % MAX_SLOTS;

		if (what == 0)
			grow(t, shadow, -1);
		else if (what < 3 && shadow[seq].exists)
			grow(t, shadow, (int)seq);
		else if (what == 4 && shadow[seq].exists) {
			assert_int_equal(
			    ingot_seq_remove(t->s, seq, NULL), INGOT_OK);
			shadow[seq].exists = false;
		} else
			random_step(t, shadow, &seed);
		assert_int_equal(ingot_seq_length(t->s, seq),
		    shadow[seq].exists ? shadow[seq].length : 0);
	}
	for (uint32_t i = 0; i < MAX_SLOTS; i++)
		if (shadow[i].exists)
			ingot_seq_remove(t->s, i, NULL);
}

static void
test_random_life(void **state)
{
	(void)state;
	for (int kind = 0; kind < KINDS; kind++) {
		Toy t = toy_session(kind, MAX_SLOTS, TOY_CHUNK);

		for (uint64_t seed = 1; seed <= 5; seed++)
			random_life(&t, seed, kind == CPU_THREADS ? 40 : 600);
		toy_close(&t);
	}
}

/* A copy made inside a page and at its edge goes its own way. */
static void
test_copy(void **state)
{
	uint32_t tokens[TOY_CTX], other = 3, a, b;
	Toy t = toy_session(CPU, 2, 1);

	(void)state;
	for (uint32_t i = 0; i < TOY_CTX; i++)
		tokens[i] = i % 11;
	for (uint32_t n = 62; n < 67; n++) {
		assert_int_equal(ingot_seq_add(t.s, &a, NULL), INGOT_OK);
		for (uint32_t i = 0; i < n; i++)
			step_one(&t, a, &tokens[i], 1, INGOT_WANT_NONE);
		assert_int_equal(ingot_seq_copy(t.s, a, &b, NULL), INGOT_OK);
		assert_int_equal(ingot_seq_length(t.s, b), n);
		step_one(&t, b, &other, 1, INGOT_WANT_LAST);
		step_one(&t, a, &tokens[n], 1, INGOT_WANT_LAST);
		assert_row(&t, 0, tokens, n + 1);
		ingot_seq_remove(t.s, a, NULL);
		step_one(&t, b, &other, 1, INGOT_WANT_LAST);
		tokens[n] = tokens[n + 1] = other;
		assert_row(&t, 0, tokens, n + 2);
		tokens[n] = n % 11;
		tokens[n + 1] = (n + 1) % 11;
		ingot_seq_remove(t.s, b, NULL);
	}
	toy_close(&t);
}

/* A copy of a sequence whose last page is full to the end of its context. */
static void
test_copy_full(void **state)
{
	ingot_session_options o = {sizeof o, 2 * KV_PAGE, 2, 1};
	uint32_t tokens[2 * KV_PAGE] = {0}, a, b;
	Toy t = toy_session(CPU, 1, 1);

	(void)state;
	ingot_session_close(t.s);
	assert_int_equal(ingot_session_open(t.model, &o, &t.s, NULL), INGOT_OK);
	for (int round = 0; round < 3; round++) {
		assert_int_equal(ingot_seq_add(t.s, &a, NULL), INGOT_OK);
		for (uint32_t i = 0; i < 2 * KV_PAGE; i++)
			step_one(&t, a, &tokens[i], 1, INGOT_WANT_LAST);
		assert_row(&t, 0, tokens, 2 * KV_PAGE);
		assert_int_equal(ingot_seq_copy(t.s, a, &b, NULL), INGOT_OK);
		assert_int_equal(ingot_seq_length(t.s, b), 2 * KV_PAGE);
		ingot_seq_remove(t.s, a, NULL);
		ingot_seq_remove(t.s, b, NULL);
	}
	toy_close(&t);
}

static void
test_full(void **state)
{
	uint32_t token = 5, seq[2], tokens[TOY_CHUNK] = {1};
	Toy t = toy_session(CPU, 2, 2);
	Error err;

	(void)state;
	for (int i = 0; i < 2; i++)
		assert_int_equal(ingot_seq_add(t.s, &seq[i], NULL), INGOT_OK);
	for (uint32_t i = 0; i < TOY_CTX - 1; i++)
		step_one(&t, seq[0], &token, 1, INGOT_WANT_LAST);
	const float before = ingot_logits(t.s, 0)[0];
	ingot_work both[2] = {{seq[1], 1, &token, INGOT_WANT_LAST},
	    {seq[0], 2, tokens, INGOT_WANT_LAST}};
	assert_int_equal(ingot_step(t.s, both, 2, &err), INGOT_FULL);
	assert_non_null(strstr(err.text, "holds 199 tokens"));
	/* Nothing was done: no length moved, the logits are there. */
	assert_int_equal(ingot_seq_length(t.s, seq[1]), 0);
	assert_int_equal(ingot_seq_length(t.s, seq[0]), TOY_CTX - 1);
	assert_true(ingot_logits(t.s, 0)[0] == before);
	both[1].count = 1;
	assert_int_equal(ingot_step(t.s, both, 2, &err), INGOT_OK);
	assert_int_equal(ingot_seq_length(t.s, seq[0]), TOY_CTX);
	assert_int_equal(ingot_step(t.s, both, 2, &err), INGOT_FULL);
	toy_close(&t);
}

static void
assert_bad_step(Toy *t, const ingot_work *work, size_t n, const char *part)
{
	Error err = {0};
	ingot_status status = ingot_step(t->s, work, n, &err);

	assert_int_equal(status, INGOT_BAD_ARG);
	assert_int_equal(err.status, INGOT_BAD_ARG);
	if (!strstr(err.text, part))
		fail_msg("wanted \"%s\", got: %s", part, err.text);
	assert_int_equal(ingot_seq_length(t->s, 0), 0);
}

static void
test_bad_steps(void **state)
{
	uint32_t seq, tokens[TOY_CHUNK + 1] = {0}, bad = TOY_VOCAB;
	Toy t = toy_session(CPU, 2, 1);
	ingot_work w = {0, 1, tokens, INGOT_WANT_LAST};
	ingot_work twice[2] = {w, w};

	(void)state;
	assert_bad_step(&t, &w, 1, "no sequence 0");
	assert_int_equal(ingot_seq_add(t.s, &seq, NULL), INGOT_OK);
	assert_bad_step(&t, NULL, 0, "no work");
	assert_bad_step(&t, twice, 2, "twice");
	w.seq = 7;
	assert_bad_step(&t, &w, 1, "no sequence 7");
	w = (ingot_work){0, 0, tokens, INGOT_WANT_LAST};
	assert_bad_step(&t, &w, 1, "without a token");
	w = (ingot_work){0, 1, NULL, INGOT_WANT_LAST};
	assert_bad_step(&t, &w, 1, "without a token");
	w = (ingot_work){0, 1, &bad, INGOT_WANT_LAST};
	assert_bad_step(&t, &w, 1, "id 40");
	w = (ingot_work){0, 1, tokens, (ingot_want)9};
	assert_bad_step(&t, &w, 1, "no ingot_want");
	w = (ingot_work){0, TOY_CHUNK + 1, tokens, INGOT_WANT_LAST};
	assert_bad_step(&t, &w, 1, "has 17 tokens");
	w = (ingot_work){0, 2, tokens, INGOT_WANT_ALL};
	assert_bad_step(&t, &w, 1, "2 rows");
	assert_int_equal(ingot_seq_remove(t.s, 1, NULL), INGOT_BAD_ARG);
	assert_int_equal(ingot_seq_copy(t.s, 1, &seq, NULL), INGOT_BAD_ARG);
	step_one(&t, 0, tokens, 2, INGOT_WANT_LAST);
	assert_row(&t, 0, tokens, 2);
	toy_close(&t);
}

/* A fault names the region; the sequences of the step are then unusable. */
static void
check_not_finite(uint32_t token, const char *part)
{
	uint32_t good = 4, seq[2];
	Toy t = toy_session(CPU, 2, 2);
	Error err;

	for (int i = 0; i < 2; i++)
		assert_int_equal(ingot_seq_add(t.s, &seq[i], NULL), INGOT_OK);
	ingot_work w = {seq[0], 1, &token, INGOT_WANT_LAST};
	assert_int_equal(ingot_step(t.s, &w, 1, &err), INGOT_NOT_FINITE);
	assert_non_null(strstr(err.text, part));
	assert_null(ingot_logits(t.s, 0));
	w.tokens = &good;
	assert_int_equal(ingot_step(t.s, &w, 1, &err), INGOT_BAD_ARG);
	assert_non_null(strstr(err.text, "remove it"));
	step_one(&t, seq[1], &good, 1, INGOT_WANT_LAST);
	assert_row(&t, 0, &good, 1);
	assert_int_equal(ingot_seq_remove(t.s, seq[0], NULL), INGOT_OK);
	assert_int_equal(ingot_seq_add(t.s, &seq[0], NULL), INGOT_OK);
	step_one(&t, seq[0], &good, 1, INGOT_WANT_LAST);
	assert_row(&t, 0, &good, 1);
	toy_close(&t);
}

static void
test_not_finite(void **state)
{
	(void)state;
	check_not_finite(TOY_FAULT, "region scan");
	check_not_finite(TOY_NAN, "row 0 of the logits");
}

/* Launch 0 has ceil(3*T/4) + 1 workgroups. */
static void
test_workgroups(void **state)
{
	uint32_t seq, tokens[TOY_CHUNK] = {0};
	Toy t = toy_session(CPU_THREADS, 1, 1);

	(void)state;
	for (uint32_t n = 1; n <= TOY_CHUNK; n++) {
		assert_int_equal(ingot_seq_add(t.s, &seq, NULL), INGOT_OK);
		step_one(&t, seq, tokens, n, INGOT_WANT_LAST);
		assert_int_equal((int)ingot_logits(t.s, 0)[TOY_COL_COUNT],
		    (3 * n + 3) / 4 + 1);
		ingot_seq_remove(t.s, seq, NULL);
	}
	toy_close(&t);
}

static void
test_no_allocation(void **state)
{
	ingot_sampling how = {.size = sizeof how, .temp = 1, .top_k = 5};
	uint32_t seq, token = 1;

	(void)state;
	for (int kind = CPU; kind <= CPU_THREADS; kind++) {
		Toy t = toy_session(kind, 1, 1);

		assert_int_equal(ingot_seq_add(t.s, &seq, NULL), INGOT_OK);
		step_one(&t, seq, &token, 1, INGOT_WANT_LAST);
		unsigned before = allocations;
		for (how.position = 1; how.position < 190; how.position++) {
			step_one(&t, seq, &token, 1, INGOT_WANT_LAST);
			ingot_sample(t.s, 0, &how, &token, NULL);
			token = token % TOY_FAULT;
		}
		assert_int_equal(allocations, before);
		assert_true(before > 0);
		toy_close(&t);
	}
}

static void
test_float_state(void **state)
{
	const unsigned odd = 0xFFC0; /* flush, zero denormals, truncate */
	uint32_t seq, token = 1;
	unsigned old = _mm_getcsr();

	(void)state;
	for (int kind = CPU; kind <= CPU_THREADS; kind++) {
		_mm_setcsr(odd);
		Toy t = toy_session(kind, 1, 1);
		ingot_seq_add(t.s, &seq, NULL);
		step_one(&t, seq, &token, 1, INGOT_WANT_LAST);
		unsigned after = _mm_getcsr();
		_mm_setcsr(old);
		assert_int_equal(after & 0xFFC0, odd);
		assert_true(ingot_logits(t.s, 0)[TOY_COL_DENORMAL] == 1.0f);
		assert_row(&t, 0, &token, 1);
		toy_close(&t);
	}
}

/* Two plans whose kernels have the same names keep their own code. */
static void
test_two_models(void **state)
{
	uint32_t seq, token = 1;
	float zero;
	Toy t = toy_session(CPU, 1, 1), u = {toy_open(1), NULL, NULL};

	(void)state;
	assert_int_equal(
	    ingot_model_open(u.plan, "toy", NULL, &u.model, NULL), INGOT_OK);
	assert_int_equal(
	    ingot_session_open(u.model, NULL, &u.s, NULL), INGOT_OK);
	ingot_seq_add(t.s, &seq, NULL);
	ingot_seq_add(u.s, &seq, NULL);
	step_one(&t, 0, &token, 1, INGOT_WANT_LAST);
	zero = ingot_logits(t.s, 0)[0];
	step_one(&u, 0, &token, 1, INGOT_WANT_LAST);
	assert_true(ingot_logits(u.s, 0)[0] == zero + 1.0f);
	ingot_session_close(u.s);
	ingot_model_close(u.model);
	ingot_plan_close(u.plan);
	step_one(&t, 0, &token, 1, INGOT_WANT_LAST);
	toy_close(&t);
}

/* One thread's session and what came of it. */
typedef struct Worker {
	ingot_session *s;
	uint32_t token;
	ingot_status status;
	float logits[TOY_COL_DENORMAL];
} Worker;

static void *
work(void *user)
{
	Worker *w = user;
	uint32_t seq, tokens[TOY_CHUNK];
	ingot_work job = {0, TOY_CHUNK, tokens, INGOT_WANT_LAST};

	for (uint32_t i = 0; i < TOY_CHUNK; i++)
		tokens[i] = w->token;
	w->status = ingot_seq_add(w->s, &seq, NULL);
	for (int i = 0; i < 12 && !w->status; i++)
		w->status = ingot_step(w->s, &job, 1, NULL);
	if (!w->status)
		memcpy(w->logits, ingot_logits(w->s, 0), sizeof w->logits);
	return NULL;
}

/* Sessions of one model on threads of their own do not disturb each other. */
static void
test_sessions_at_once(void **state)
{
	Toy t = toy_session(CPU_THREADS, 1, 1);
	Worker at_once[2] = {{.token = 3}, {.token = 7}}, alone;
	pthread_t thread[2];

	(void)state;
	for (int i = 0; i < 2; i++)
		assert_int_equal(
		    ingot_session_open(t.model, NULL, &at_once[i].s, NULL),
		    INGOT_OK);
	for (int i = 0; i < 2; i++)
		assert_int_equal(
		    pthread_create(&thread[i], NULL, work, &at_once[i]), 0);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	for (int i = 0; i < 2; i++) {
		alone = (Worker){.s = t.s, .token = at_once[i].token};
		work(&alone);
		assert_int_equal(at_once[i].status, INGOT_OK);
		assert_int_equal(alone.status, INGOT_OK);
		assert_memory_equal(
		    at_once[i].logits, alone.logits, sizeof alone.logits);
		ingot_seq_remove(t.s, 0, NULL);
		ingot_session_close(at_once[i].s);
	}
	toy_close(&t);
}

/* Sampling through a session: the tokenizer says which ids are tokens. */
static void
test_sample(void **state)
{
	static const int odd_ids;
	ingot_sampling how = {.size = sizeof how};
	uint32_t seq, token = 1, best = 0, odd = 1, got;
	Toy t = toy_session(CPU, 1, 1);
	const float *x;

	(void)state;
	assert_int_equal(ingot_sample(t.s, 0, &how, &got, NULL), INGOT_BAD_ARG);
	ingot_seq_add(t.s, &seq, NULL);
	step_one(&t, seq, &token, 1, INGOT_WANT_LAST);
	x = ingot_logits(t.s, 0);
	for (uint32_t i = 0; i < TOY_VOCAB; i++) {
		best = x[i] > x[best] ? i : best;
		odd = i % 2 == 1 && x[i] > x[odd] ? i : odd;
	}
	assert_int_equal(ingot_sample(t.s, 0, &how, &got, NULL), INGOT_OK);
	assert_int_equal(got, best);
	assert_int_equal(ingot_sample(t.s, 0, NULL, &got, NULL), INGOT_OK);
	assert_int_equal(got, best);
	how.tokens = (const ingot_tokenizer *)(const void *)&odd_ids;
	assert_int_equal(ingot_sample(t.s, 0, &how, &got, NULL), INGOT_OK);
	assert_int_equal(got, odd);
	toy_close(&t);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_cuts),
	    cmocka_unit_test(test_random_life),
	    cmocka_unit_test(test_copy),
	    cmocka_unit_test(test_copy_full),
	    cmocka_unit_test(test_full),
	    cmocka_unit_test(test_bad_steps),
	    cmocka_unit_test(test_not_finite),
	    cmocka_unit_test(test_workgroups),
	    cmocka_unit_test(test_no_allocation),
	    cmocka_unit_test(test_float_state),
	    cmocka_unit_test(test_two_models),
	    cmocka_unit_test(test_sessions_at_once),
	    cmocka_unit_test(test_sample),
	};

	toy_main(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
