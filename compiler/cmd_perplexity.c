/* ingot perplexity */
#include <jansson.h>
#include <stdlib.h>

#include "ids.h"
#include "open.h"
#include "perplexity.h"

enum { DEFAULT_WINDOW = 256 };

/* A window's first half is read for its state alone; logits are wanted from
 * its token number half on, but not of the last one. Several windows go through
 * the model side by side, so that each half of them fills a step. */
typedef struct Measure {
	const Options *o;
	const char *checkpoint;
	Opened m;
	ingot_session *session;
	Ids ids;
	uint32_t window, half;
	uint32_t together; /* windows in a step, at most */
	uint32_t chunk;    /* tokens of a window in a step, at most */
	uint32_t vocab;
	size_t windows;
	ingot_work *work; /* [together] */
	Perplexity p;
} Measure;

/* ---- before loading ---- */

static int
check_usage(Measure *m)
{
	if (!m->o->file)
		return usage_error(m->o, "perplexity needs -f FILE");
	m->window = m->o->window ? m->o->window : DEFAULT_WINDOW;
	m->half = m->window / 2;
	if (m->o->ctx && m->o->ctx < m->window)
		return usage_error(
		    m->o, "a window does not fit into --ctx; see --window");
	return open_check(m->o, &m->checkpoint);
}

/* Where the checkpoint puts a token first, every window begins with it. */
static void
put_first(Measure *m, int64_t bos)
{
	size_t i;

	for (i = 0; i < m->windows && bos >= 0; i++)
		m->ids.at[i * m->window] = (uint32_t)bos;
}

static int
read_text(Measure *m)
{
	ingot_tokenizer *t = NULL;
	char *text = NULL;
	size_t length;
	Error e;
	bool ok;

	if (ingot_tokenizer_open(m->checkpoint, &t, &e))
		return library_error(&e);
	ok = read_file(m->o->file, &text, &length) &&
	     ids_of_text(tokenizer_of(t), text, length, &m->ids);
	m->windows = m->ids.count / m->window;
	if (ok)
		put_first(m, tok_bos(tokenizer_of(t)));
	free(text);
	ingot_tokenizer_close(t);
	if (!ok)
		return EXIT_USER;
	if (m->windows == 0)
		return user_error("%s has %zu tokens, less than one window of "
				  "%u; see --window",
		    m->o->file, m->ids.count, m->window);
	return EXIT_DONE;
}

static int
load(Measure *m)
{
	return open_model(m->o, NULL, &m->m);
}

static int
open_measure(Measure *m)
{
	ingot_model_info info = ingot_model_get_info(m->m.model);
	ingot_session_options so = {sizeof so, m->window, 0, 0};

	if (!ids_check(&m->ids, m->o->file, info.vocab))
		return EXIT_USER;
	m->vocab = info.vocab;
	m->together = info.max_chunk / m->half;
	if (m->together > m->windows)
		m->together = (uint32_t)m->windows;
	if (m->together == 0)
		m->together = 1;
	m->chunk = info.max_chunk / m->together;
	if (m->chunk > m->half)
		m->chunk = m->half;
	so.max_seqs = m->together;
	so.max_rows = m->together * m->chunk;
	m->work = calloc(m->together, sizeof *m->work);
	if (!m->work)
		return user_error("no memory for %u windows", m->together);
	return open_session(&m->m, &so, &m->session);
}

/* ---- measuring ---- */

/* The rows of the last step are those of n windows, the first of them number
 * first, from their token at on. */
static void
count_rows(Measure *m, size_t first, uint32_t n, uint32_t at)
{
	uint32_t row = 0, i, k;

	for (i = 0; i < n; i++) {
		const uint32_t *next =
		    m->ids.at + (first + i) * m->window + at + 1;

		for (k = 0; k < m->work[i].count; k++)
			perplexity_add(&m->p, ingot_logits(m->session, row++),
			    m->vocab, next[k]);
	}
}

/* Takes tokens at .. at+count-1 of n windows through the model. */
static int
step(Measure *m, size_t first, uint32_t n, uint32_t at, uint32_t count)
{
	bool counted = at >= m->half;
	uint32_t i;
	Error e;

	for (i = 0; i < n; i++) {
		m->work[i].count = count;
		m->work[i].tokens = m->ids.at + (first + i) * m->window + at;
		m->work[i].want = counted ? INGOT_WANT_ALL : INGOT_WANT_NONE;
	}
	if (ingot_step(m->session, m->work, n, &e))
		return library_error(&e);
	if (counted)
		count_rows(m, first, n, at);
	return interrupted() ? EXIT_INTERRUPTED : EXIT_DONE;
}

static int
run_windows(Measure *m, size_t first, uint32_t n)
{
	uint32_t at, count, i;
	int code = EXIT_DONE;
	Error e;

	for (i = 0; i < n; i++)
		if (ingot_seq_add(m->session, &m->work[i].seq, &e))
			return library_error(&e);
	for (at = 0; at < m->window - 1 && !code; at += count) {
		count = at < m->half ? m->half - at : m->window - 1 - at;
		if (count > m->chunk)
			count = m->chunk;
		code = step(m, first, n, at, count);
	}
	for (i = 0; i < n; i++)
		ingot_seq_remove(m->session, m->work[i].seq, NULL);
	return code;
}

static int
measure(Measure *m)
{
	char label[] = "reading";
	size_t first = 0;
	int code = EXIT_DONE;

	while (first < m->windows && !code) {
		size_t left = m->windows - first;
		uint32_t n = left < m->together ? (uint32_t)left : m->together;

		show_progress(label, first, m->windows);
		code = run_windows(m, first, n);
		first += n;
	}
	show_progress(label, m->windows, m->windows);
	return code;
}

/* ---- the result ---- */

static int
report(Measure *m)
{
	double value = perplexity_value(&m->p), error = perplexity_error(&m->p);
	json_t *j;
	bool ok;

	if (!m->o->json) {
		printf("perplexity %.4f +/- %.5f (%zu windows, %llu tokens)\n",
		    value, error, m->windows, (unsigned long long)m->p.count);
		return EXIT_DONE;
	}
	j = json_pack("{s:f, s:f, s:I, s:I}", "perplexity", value, "error",
	    error, "windows", (json_int_t)m->windows, "tokens",
	    (json_int_t)m->p.count);
	ok = j && json_dumpf(j, stdout, JSON_REAL_PRECISION(9)) == 0;
	json_decref(j);
	putchar('\n');
	return ok ? EXIT_DONE : user_error("no memory for the result");
}

static void
close_measure(Measure *m)
{
	ingot_session_close(m->session);
	open_close(&m->m);
	ids_free(&m->ids);
	free(m->work);
}

int
cmd_perplexity(const Options *o)
{
	static int (*const phases[])(Measure *) = {
	    check_usage, read_text, load, open_measure, measure, report};
	Measure m = {.o = o};
	int code = EXIT_DONE;
	size_t i;

	for (i = 0; i < sizeof phases / sizeof phases[0] && !code; i++)
		code = phases[i](&m);
	close_measure(&m);
	return code;
}
