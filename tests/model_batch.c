/* Batches of 1 to 17 sequences at every stage of their lives: each gets the
 * bits that it gets alone. Sequences join when a slot is free, some as copies
 * of others in the middle of theirs, bring their prompts in pieces of random
 * lengths beside others that decode, skip steps, and leave. */
#include "models.h"

#define DEMO "models/demo/kjv-moe-9m-Q4_K_M.gguf"
#define QUANTS "build/fixtures/quants/"

enum { MOST = 17, ROOTS = MOST + 3, LENGTH = 150, MOST_THREADS = 4 };

/* What a sequence is fed, and its logits when it is alone, [n][vocab]. */
typedef struct Script {
	uint32_t ids[LENGTH], n;
	uint32_t prompt; /* ids of n that need not come one by one */
	float *logits;
} Script;

/* A sequence in a session. */
typedef struct Live {
	Script script; /* a copy's own, else a copy of a root */
	bool is_copy;
	uint32_t seq, done;
} Live;

/* A session under way. */
typedef struct Run {
	ingot_model *alone; /* for scripts that come up */
	ingot_session *session;
	uint32_t vocab, most; /* sequences at once */
	const Script *roots;
	uint32_t joined, copied; /* so far */
	Live live[MOST];
	uint32_t n, widest;
	uint64_t seed, rows; /* rows compared */
} Run;

static void
ok(ingot_status status, const Error *e)
{
	if (status != INGOT_OK)
		fail_msg("%s", e->text);
}

/* 0 .. n-1 */
static uint32_t
draw(Run *r, uint32_t n)
{
	r->seed = r->seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(r->seed >> 33) % n;
}

/* ---- joining and leaving ---- */

/* Every fifth sequence needs two spans of keys and three pages. */
static void
make_roots(Script *roots, ingot_model *alone)
{
	uint32_t i;

	for (i = 0; i < ROOTS; i++) {
		Script *s = &roots[i];

		s->n = i % 5 == 2 ? LENGTH - i : 1 + i * 29 % 50;
		s->prompt = s->n - s->n / 4;
		make_ids(s->ids, s->n, vocab_of(alone), 100 + i);
		s->logits = run_cut(alone, s->ids, s->n, 0);
	}
}

static void
join(Run *r)
{
	Live *l = &r->live[r->n++];
	Error e;

	*l = (Live){.script = r->roots[r->joined++]};
	ok(ingot_seq_add(r->session, &l->seq, &e), &e);
}

/* One more sequence with the past of live[i] and a future of its own. */
static void
copy(Run *r, uint32_t i)
{
	const Live *from = &r->live[i];
	Live *l = &r->live[r->n++];
	Script *s = &l->script;
	Error e;

	*l = *from;
	l->is_copy = true;
	s->n = from->done + 1 + draw(r, 20);
	if (s->n > LENGTH)
		s->n = LENGTH;
	make_ids(
	    s->ids + l->done, s->n - l->done, r->vocab, 1000 + r->copied++);
	s->prompt = l->done + (s->n - l->done) / 2;
	s->logits = run_cut(r->alone, s->ids, s->n, 0);
	ok(ingot_seq_copy(r->session, from->seq, &l->seq, &e), &e);
}

static void
leave(Run *r, uint32_t i)
{
	Error e;

	ok(ingot_seq_remove(r->session, r->live[i].seq, &e), &e);
	if (r->live[i].is_copy)
		free(r->live[i].script.logits);
	r->live[i] = r->live[--r->n];
}

static bool
over(const Run *r, uint32_t i)
{
	return r->live[i].done == r->live[i].script.n;
}

/* Who has nothing left leaves; free slots are taken, not always at once. */
static void
change_members(Run *r)
{
	uint32_t i, chosen;

	for (i = r->n; i-- > 0;)
		if (over(r, i) && draw(r, 3) > 0)
			leave(r, i);
	while (r->n < r->most && draw(r, 4) > 0) {
		chosen = r->n > 0 ? draw(r, r->n) : 0;
		if (r->n > 0 && r->live[chosen].done > 0 &&
		    r->copied < r->most && draw(r, 2) > 0)
			copy(r, chosen);
		else if (r->joined < r->most + 3)
			join(r);
		else
			break;
	}
}

/* ---- steps ---- */

static uint32_t
next_count(Run *r, const Live *l)
{
	if (l->done >= l->script.prompt)
		return 1;
	return 1 + draw(r, l->script.prompt - l->done);
}

/* The work of a step; of is whose it is. Every third step has everybody. */
static uint32_t
collect(Run *r, ingot_work *work, uint32_t *of)
{
	bool all = draw(r, 3) == 0;
	uint32_t i, n = 0, room = 400;

	for (i = 0; i < r->n; i++) {
		const Live *l = &r->live[i];
		uint32_t count;

		if (over(r, i) || (!all && draw(r, 4) == 0))
			continue;
		count = next_count(r, l);
		if (count > room)
			count = 1;
		room -= count < room ? count : room;
		work[n] = (ingot_work){l->seq, count, l->script.ids + l->done,
		    draw(r, 4) > 0 ? INGOT_WANT_ALL : (ingot_want)draw(r, 2)};
		of[n++] = i;
	}
	return n;
}

static void
check_rows(Run *r, const ingot_work *work, const uint32_t *of, uint32_t n)
{
	uint32_t i, row = 0;

	for (i = 0; i < n; i++) {
		Live *l = &r->live[of[i]];
		uint32_t rows = work[i].want == INGOT_WANT_ALL ? work[i].count
							       : work[i].want;

		l->done += work[i].count;
		assert_int_equal(ingot_seq_length(r->session, l->seq), l->done);
		if (rows > 0)
			same_bits(ingot_logits(r->session, row),
			    l->script.logits +
				(uint64_t)(l->done - rows) * r->vocab,
			    rows, r->vocab,
			    "sequence %u of %u, %u tokens up to %u%s", i, n,
			    work[i].count, l->done,
			    l->is_copy ? ", a copy" : "");
		row += rows;
	}
	r->rows += row;
}

static void
step(Run *r)
{
	ingot_work work[MOST];
	uint32_t of[MOST], n = collect(r, work, of);
	Error e;

	if (n == 0)
		return;
	if (n > r->widest)
		r->widest = n;
	ok(ingot_step(r->session, work, n, &e), &e);
	check_rows(r, work, of, n);
}

/* Sequences come and go, at most most at once, until all have been there. */
static uint64_t
check_batch(
    ingot_model *m, ingot_model *alone, const Script *roots, uint32_t most)
{
	ingot_session_options o = {
	    .size = sizeof o, .ctx = LENGTH, .max_seqs = most, .max_rows = 512};
	Run *r = calloc(1, sizeof *r);
	uint64_t rows;
	Error e;

	assert_non_null(r);
	*r = (Run){.alone = alone,
	    .vocab = vocab_of(m),
	    .most = most,
	    .roots = roots,
	    .seed = most};
	ok(ingot_session_open(m, &o, &r->session, &e), &e);
	do {
		change_members(r);
		step(r);
	} while (r->n > 0 || r->joined < most + 3);
	assert_int_equal(r->widest, most);
	assert_true(most == 1 || r->copied > 0);
	ingot_session_close(r->session);
	rows = r->rows;
	free(r);
	return rows;
}

/* Each width with one number of threads, the widest with all. */
static void
test_batches(void **state)
{
	Build b = {*state, DT_BF16, FUSE_ALL};
	ingot_model *alone = model_of(&b, 1);
	Script *roots = calloc(ROOTS, sizeof *roots);
	uint32_t threads, most, i;
	uint64_t rows = 0;

	assert_non_null(roots);
	make_roots(roots, alone);
	for (threads = 1; threads <= MOST_THREADS; threads++) {
		ingot_model *m = model_of(&b, threads);

		for (most = 1; most <= MOST; most++)
			if (most == MOST || most % MOST_THREADS + 1 == threads)
				rows += check_batch(m, alone, roots, most);
		ingot_model_close(m);
	}
	print_message(
	    "%s: %llu rows of logits\n", b.path, (unsigned long long)rows);
	for (i = 0; i < ROOTS; i++)
		free(roots[i].logits);
	free(roots);
	ingot_model_close(alone);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    {"demo", test_batches, NULL, NULL, DEMO},
	    {"q4_k_m", test_batches, NULL, NULL, QUANTS "qwen3moe-q4_k_m.gguf"},
	    {"f16", test_batches, NULL, NULL, QUANTS "qwen3moe-f16.gguf"},
	};

	return cmocka_run_group_tests_name("batch", tests, NULL, plans_close);
}
