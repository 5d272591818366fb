#include "models.h"

#include "../runtime/json.h"
#include "../runtime/mapping.h"

enum { MAX_PLANS = 256, MAX_CHUNK = 512 };

static void
ok(ingot_status status, const Error *e)
{
	if (status != INGOT_OK)
		fail_msg("%s", e->text);
}

/* Memory, or the end of the test. */
static void *
take_memory(uint64_t count, size_t size)
{
	void *p = calloc(count, size);

	if (!p)
		fail_msg("no memory");
	return p;
}

/* ---- plans ---- */

static struct {
	Build build;
	ingot_plan *plan;
} plans[MAX_PLANS];
static size_t n_plans;

/* The part that mistakes jump out of. */
static bool
compile(Checkpoint *c, const Build *b, void **bytes, size_t *length,
    char why[WHY_TEXT])
{
	CompileOptions o = compile_defaults();
	Diag d = {0};

	o.kv = b->kv;
	o.fusion = b->rules != 0;
	o.rules = b->rules;
	o.max_chunk = MAX_CHUNK;
	if (setjmp(d.jump)) {
		snprintf(why, WHY_TEXT, "%s", d.text);
		return false;
	}
	compile_plan(c, &o, &d, bytes, length);
	return true;
}

ingot_plan *
plan_try(const Build *b, char why[WHY_TEXT])
{
	ingot_plan *plan;
	Checkpoint *c;
	Error e;
	void *bytes;
	size_t length;
	bool made;

	if (ckpt_open(b->path, false, &c, &e)) {
		snprintf(why, WHY_TEXT, "%s", e.text);
		return NULL;
	}
	made = compile(c, b, &bytes, &length, why);
	ckpt_close(c);
	if (!made)
		return NULL;
	ok(ingot_plan_read(bytes, length, &plan, &e), &e);
	free(bytes);
	return plan;
}

ingot_plan *
plan_of(const Build *b)
{
	char why[WHY_TEXT];
	ingot_plan *plan;
	size_t i;

	for (i = 0; i < n_plans; i++)
		if (strcmp(plans[i].build.path, b->path) == 0 &&
		    plans[i].build.kv == b->kv &&
		    plans[i].build.rules == b->rules)
			return plans[i].plan;
	plan = plan_try(b, why);
	if (!plan)
		fail_msg("%s: %s", b->path, why);
	assert_true(n_plans < MAX_PLANS);
	plans[n_plans].build = *b;
	plans[n_plans].build.path = strdup(b->path);
	plans[n_plans++].plan = plan;
	return plan;
}

int
plans_close(void **state)
{
	(void)state;
	while (n_plans > 0) {
		ingot_plan_close(plans[--n_plans].plan);
		free((char *)plans[n_plans].build.path);
	}
	return 0;
}

/* ---- models ---- */

ingot_model *
model_watched(const Build *b, OracleWatch *watch)
{
	BackendFactory oracle = oracle_factory(watch);
	ingot_model *m;
	Error e;

	ok(model_open_custom(plan_of(b), b->path, &oracle, NULL, &m, &e), &e);
	return m;
}

ingot_model *
model_of(const Build *b, uint32_t threads)
{
	ingot_model_options o = {
	    .size = sizeof o, .device = "cpu", .threads = threads};
	ingot_model *m;
	Error e;

	if (threads == ORACLE)
		return model_watched(b, NULL);
	ok(ingot_model_open(plan_of(b), b->path, &o, &m, &e), &e);
	return m;
}

uint32_t
vocab_of(const ingot_model *m)
{
	return ingot_model_get_info(m).vocab;
}

/* ---- running ---- */

/* A run of prompts that is under way. */
typedef struct Run {
	ingot_session *session;
	const Prompt *prompts;
	uint32_t n;
	uint32_t seq[MAX_PROMPTS], done[MAX_PROMPTS];
	float *logits;
	uint32_t vocab;
} Run;

static ingot_session *
open_session(ingot_model *m, const Prompt *p, uint32_t n)
{
	ingot_session_options o = {
	    .size = sizeof o, .max_seqs = n, .max_rows = MAX_CHUNK};
	ingot_session *s;
	Error e;
	uint32_t i;

	for (i = 0; i < n; i++)
		if (p[i].n > o.ctx)
			o.ctx = p[i].n;
	ok(ingot_session_open(m, &o, &s, &e), &e);
	return s;
}

/* How many tokens of p come next when done are behind it. */
static uint32_t
next_chunk(const Prompt *p, uint32_t done)
{
	uint32_t left = p->n - done;
	uint32_t want = done == 0 && p->first ? p->first : p->chunk;

	return want == 0 || want > left ? left : want;
}

/* Where the logits of prompt i start. */
static float *
logits_at(const Run *r, uint32_t i)
{
	uint64_t rows = 0;

	while (i-- > 0)
		rows += r->prompts[i].n;
	return r->logits + rows * r->vocab;
}

static void
join(Run *r, uint32_t i, uint32_t step)
{
	Error e;

	if (r->prompts[i].delay == step)
		ok(ingot_seq_add(r->session, &r->seq[i], &e), &e);
}

/* The work of a step, and which prompt each piece is of. */
static uint32_t
collect(Run *r, uint32_t step, ingot_work *work, uint32_t *of)
{
	uint32_t i, n = 0;

	for (i = 0; i < r->n; i++) {
		const Prompt *p = &r->prompts[i];

		join(r, i, step);
		if (step < p->delay || r->done[i] == p->n)
			continue;
		work[n] = (ingot_work){r->seq[i], next_chunk(p, r->done[i]),
		    p->ids + r->done[i], INGOT_WANT_ALL};
		of[n++] = i;
	}
	return n;
}

/* Keeps the logits of a step, whose row numbers run through its work. */
static void
keep(Run *r, const ingot_work *work, const uint32_t *of, uint32_t n)
{
	uint32_t i, j, row = 0;

	for (i = 0; i < n; i++) {
		float *to =
		    logits_at(r, of[i]) + (uint64_t)r->done[of[i]] * r->vocab;

		for (j = 0; j < work[i].count; j++)
			memcpy(to + (uint64_t)j * r->vocab,
			    ingot_logits(r->session, row++),
			    r->vocab * sizeof *to);
		r->done[of[i]] += work[i].count;
	}
	assert_null(ingot_logits(r->session, row));
}

static bool
finished(const Run *r)
{
	uint32_t i;

	for (i = 0; i < r->n && r->done[i] == r->prompts[i].n; i++)
		;
	return i == r->n;
}

float *
run_prompts(ingot_model *m, const Prompt *p, uint32_t n)
{
	Run r = {open_session(m, p, n), p, n, {0}, {0}, NULL, vocab_of(m)};
	ingot_work work[MAX_PROMPTS];
	uint32_t of[MAX_PROMPTS], i, step, n_work;
	uint64_t rows = 0;
	Error e;

	assert_in_range(n, 1, MAX_PROMPTS);
	for (i = 0; i < n; i++)
		rows += p[i].n;
	r.logits = take_memory(rows * r.vocab, sizeof *r.logits);
	for (step = 0; !finished(&r); step++) {
		n_work = collect(&r, step, work, of);
		if (n_work == 0)
			continue;
		ok(ingot_step(r.session, work, n_work, &e), &e);
		keep(&r, work, of, n_work);
	}
	ingot_session_close(r.session);
	return r.logits;
}

float *
run_cut(ingot_model *m, const uint32_t *ids, uint32_t n, uint32_t chunk)
{
	Prompt p = {ids, n, 0, chunk, 0};

	return run_prompts(m, &p, 1);
}

void
run_greedy(ingot_model *m, uint32_t *ids, uint32_t n, uint32_t total)
{
	Prompt p = {ids, total, 0, 0, 0};
	ingot_session *s = open_session(m, &p, 1);
	ingot_sampling greedy = {.size = sizeof greedy};
	ingot_work work = {0, n, ids, INGOT_WANT_LAST};
	Error e;

	ok(ingot_seq_add(s, &work.seq, &e), &e);
	for (; n < total; n++) {
		ok(ingot_step(s, &work, 1, &e), &e);
		ok(ingot_sample(s, 0, &greedy, &ids[n], &e), &e);
		work = (ingot_work){work.seq, 1, &ids[n], INGOT_WANT_LAST};
	}
	ingot_session_close(s);
}

void
make_ids(uint32_t *ids, uint32_t n, uint32_t vocab, uint32_t seed)
{
	uint32_t i, x = seed;

	for (i = 0; i < n; i++) {
		x = x * 1664525u + 1013904223u;
		ids[i] = (x >> 8) % vocab;
	}
}

/* ---- comparing ---- */

void
same_bits(const float *got, const float *want, uint64_t rows, uint64_t columns,
    const char *what, ...)
{
	char text[256];
	va_list args;
	uint64_t i, wrong = 0, first = 0;

	if (memcmp(got, want, rows * columns * sizeof *got) == 0)
		return;
	for (i = rows * columns; i-- > 0;)
		if (memcmp(&got[i], &want[i], sizeof *got) != 0) {
			wrong++;
			first = i;
		}
	va_start(args, what);
	vsnprintf(text, sizeof text, what, args);
	va_end(args);
	fail_msg("%s: %llu of %llu x %llu logits differ, the first in row "
		 "%llu, column %llu: %a, not %a (NMSE %.1e)",
	    text, (unsigned long long)wrong, (unsigned long long)rows,
	    (unsigned long long)columns, (unsigned long long)(first / columns),
	    (unsigned long long)(first % columns), (double)got[first],
	    (double)want[first], nmse(got, want, rows * columns));
}

double
nmse(const float *got, const float *want, uint64_t n)
{
	double error = 0, power = 0;
	uint64_t i;

	for (i = 0; i < n; i++) {
		double d = (double)got[i] - (double)want[i];

		error += d * d;
		power += (double)want[i] * (double)want[i];
	}
	return error / power;
}

/* ---- goldens ---- */

struct Golden {
	Mapping file;
	Pool pool;
	const Value *header;
	const unsigned char *data; /* behind the header */
};

Golden *
golden_open(const char *folder)
{
	Golden *g = take_memory(1, sizeof *g);
	char path[256];
	uint64_t length;
	Error e;

	snprintf(
	    path, sizeof path, "tests/fixtures/%s/golden.safetensors", folder);
	ok(map_file(path, &g->file, &e), &e);
	assert_true(g->file.size > sizeof length);
	memcpy(&length, g->file.data, sizeof length);
	assert_true(length < g->file.size - sizeof length && length % 8 == 0);
	g->data = g->file.data + sizeof length + length;
	ok(json_read(&g->pool, path, (const char *)g->file.data + sizeof length,
	       length, &g->header, &e),
	    &e);
	return g;
}

void
golden_close(Golden *g)
{
	unmap_file(&g->file);
	pool_free(&g->pool);
	free(g);
}

const void *
golden_find(
    const Golden *g, const char *name, uint64_t *rows, uint64_t *columns)
{
	const Value *t = value_get(g->header, name);
	const Value *shape = value_get(t, "shape");
	const Value *span = value_get(t, "data_offsets");
	const Value *axis;
	int64_t first, end;

	if (!t)
		return NULL;
	assert_in_range(shape->u.list.count, 1, 2);
	axis = shape->u.list.items;
	*rows = (uint64_t)axis[0].u.integer;
	*columns = shape->u.list.count == 2 ? (uint64_t)axis[1].u.integer : 1;
	first = span->u.list.items[0].u.integer;
	end = span->u.list.items[1].u.integer;
	assert_true(end - first == (int64_t)(*rows * *columns * 4));
	assert_true(first % 4 == 0);
	assert_true(g->data + end <=
		    (const unsigned char *)g->file.data + g->file.size);
	return g->data + first;
}

const uint32_t *
golden_ids(const Golden *g, const char *name, uint32_t *n)
{
	uint64_t rows, columns;
	const uint32_t *ids = golden_find(g, name, &rows, &columns);

	assert_non_null(ids);
	assert_int_equal(columns, 1);
	*n = (uint32_t)rows;
	return ids;
}
