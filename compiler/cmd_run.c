/* ingot run */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ids.h"
#include "open.h"
#include "stream.h"

typedef struct Run {
	const Options *o;
	const char *checkpoint;
	ingot_tokenizer *tokenizer; /* NULL when the checkpoint has none */
	Error no_tokenizer;         /* why */
	Opened m;
	ingot_session *session;
	uint32_t seq, ctx;
	Ids prompt, generated;
	TextStream stream;
	char *text; /* what stream wrote, for --json */
	size_t text_length;
	const char *finish;
	uint32_t decode_steps;
	double prefill_s, decode_s;
} Run;

/* ---- before loading ---- */

static int
check_usage(Run *r)
{
	const Options *o = r->o;
	size_t i;

	if ((o->prompt != NULL) == (o->tokens.count > 0))
		return usage_error(o, "either -p TEXT or --tokens is needed");
	if (o->tokens.count > 1)
		return usage_error(o, "one --tokens is enough");
	if (o->chat && !o->prompt)
		return usage_error(o, "--chat needs -p TEXT");
	for (i = 0; i < o->stop.count; i++)
		if (o->stop.at[i][0] == '\0')
			return usage_error(o, "--stop needs a text");
	if (o->temp == 0 && (o->given.top_k || o->given.top_p ||
				o->given.min_p || o->given.seed))
		note("generation is greedy without --temp: --top-k, --top-p, "
		     "--min-p and --seed do nothing");
	return open_check(o, &r->checkpoint);
}

/* Without a tokenizer ids can still go in and, with --json, come out. */
static int
open_tokenizer(Run *r)
{
	Error *e = &r->no_tokenizer;
	ingot_status s = ingot_tokenizer_open(r->checkpoint, &r->tokenizer, e);

	if (s == INGOT_UNSUPPORTED && r->o->tokens.count > 0) {
		if (r->o->json)
			return EXIT_DONE;
		return user_error(
		    "%s; --json gives ids in place of text", e->text);
	}
	return s ? library_error(e) : EXIT_DONE;
}

static int
read_prompt(Run *r)
{
	const Options *o = r->o;
	const char *text = o->prompt;
	bool ok;

	if (!text)
		ok = ids_read(o->tokens.at[0], &r->prompt);
	else if (text[0] == '\0')
		return user_error("the prompt is empty: -p needs a text");
	else
		ok = (o->chat ? ids_of_chat : ids_of_text)(
		    tokenizer_of(r->tokenizer), text, strlen(text), &r->prompt);
	return ok ? EXIT_DONE : EXIT_USER;
}

/* ---- loading ---- */

static int
load(Run *r)
{
	int code = open_model(r->o, NULL, &r->m);

	if (!code && !r->tokenizer)
		note("%s", r->no_tokenizer.text);
	return code;
}

static int
open_run(Run *r)
{
	const Options *o = r->o;
	ingot_session_options so = {
	    sizeof so, open_ctx(o, &r->m), o->max_seqs, 0};
	Error e;
	int code;

	r->ctx = so.ctx;
	if (!o->prompt && !ids_check(&r->prompt, o->tokens.at[0],
			      ingot_model_get_info(r->m.model).vocab))
		return EXIT_USER;
	if (r->prompt.count > r->ctx)
		return user_error("the prompt has %zu tokens, but the context "
				  "holds %u; see --ctx",
		    r->prompt.count, r->ctx);
	code = open_session(&r->m, &so, &r->session);
	if (!code && ingot_seq_add(r->session, &r->seq, &e))
		code = library_error(&e);
	return code;
}

static int
open_stream(Run *r)
{
	r->stream.stops = &r->o->stop;
	r->stream.out =
	    r->o->json ? open_memstream(&r->text, &r->text_length) : stdout;
	return r->stream.out ? EXIT_DONE : user_error("no memory for text");
}

/* ---- generating ---- */

/* Tokens to generate. */
static uint32_t
limit(const Run *r)
{
	uint32_t room = r->ctx - (uint32_t)r->prompt.count;

	return r->o->count < room ? r->o->count : room;
}

static int
step(Run *r, const uint32_t *tokens, uint32_t count, ingot_want want)
{
	ingot_work work = {r->seq, count, tokens, want};
	Error e;

	if (ingot_step(r->session, &work, 1, &e))
		return library_error(&e);
	return interrupted() ? EXIT_INTERRUPTED : EXIT_DONE;
}

static int
prefill(Run *r)
{
	uint32_t most = ingot_model_get_info(r->m.model).max_chunk;
	uint32_t left = (uint32_t)r->prompt.count, n;
	const uint32_t *at = r->prompt.at;
	double start = seconds();
	int code = EXIT_DONE;

	for (; left > 0 && !code; left -= n, at += n) {
		n = left < most ? left : most;
		code = step(
		    r, at, n, n < left ? INGOT_WANT_NONE : INGOT_WANT_LAST);
	}
	r->prefill_s = seconds() - start;
	return code;
}

static int
pick(Run *r, uint32_t *token)
{
	const Options *o = r->o;
	ingot_sampling how = {sizeof how, o->temp, o->top_k, o->top_p, o->min_p,
	    o->seed, ingot_seq_length(r->session, r->seq), r->tokenizer};
	Error e;

	return ingot_sample(r->session, 0, &how, token, &e) ? library_error(&e)
							    : EXIT_DONE;
}

/* Takes a token that is no end; finish is set when its text ends it all. */
static int
take(Run *r, uint32_t token)
{
	StreamState state = STREAM_OPEN;
	Tokenizer *t = r->tokenizer ? tokenizer_of(r->tokenizer) : NULL;
	const char *bytes;
	size_t n;

	r->generated.at[r->generated.count++] = token;
	if (t && !tok_is_control(t, token)) {
		bytes = tok_bytes(t, token, &n);
		state = stream_push(&r->stream, bytes, n);
		if (ferror(r->stream.out))
			return user_error(
			    "cannot write the result: %s", strerror(errno));
	}
	if (state == STREAM_STOPPED)
		r->finish = "stop";
	return state == STREAM_NO_MEMORY ? user_error("no memory for text")
					 : EXIT_DONE;
}

/* One round: picks a token and, when another will follow, computes on. */
static int
generate(Run *r)
{
	uint32_t token;
	int code = pick(r, &token);

	if (code)
		return code;
	if (r->tokenizer && ingot_is_stop(r->tokenizer, token)) {
		r->finish = "stop";
		return EXIT_DONE;
	}
	code = take(r, token);
	if (code || r->finish)
		return code;
	if (r->generated.count == limit(r)) {
		r->finish = "length";
		return EXIT_DONE;
	}
	r->decode_steps++;
	return step(r, &token, 1, INGOT_WANT_LAST);
}

static int
decode(Run *r)
{
	double start = seconds();
	int code = EXIT_DONE;

	r->generated.at =
	    malloc(((size_t)limit(r) + 1) * sizeof *r->generated.at);
	if (!r->generated.at)
		return user_error("no memory for %u tokens", limit(r));
	if (limit(r) == 0)
		r->finish = "length";
	while (!r->finish && !code)
		code = generate(r);
	r->decode_s = seconds() - start;
	if (stream_finish(&r->stream) == STREAM_STOPPED)
		r->finish = "stop";
	return code;
}

/* ---- the result ---- */

static json_t *
rate(double tokens, double took)
{
	return tokens > 0 && took > 0 ? json_real(tokens / took) : json_null();
}

static json_t *
generated_json(const Run *r)
{
	json_t *ids = json_array();
	size_t i;

	for (i = 0; i < r->generated.count; i++)
		json_array_append_new(ids, json_integer(r->generated.at[i]));
	return ids;
}

static int
print_json(Run *r)
{
	json_t *j = json_object();
	bool ok;

	fflush(r->stream.out);
	json_object_set_new(j, "text",
	    r->tokenizer ? json_stringn(r->text, r->text_length) : json_null());
	json_object_set_new(j, "tokens", generated_json(r));
	json_object_set_new(
	    j, "prompt_tokens", json_integer((json_int_t)r->prompt.count));
	json_object_set_new(j, "finish", json_string(r->finish));
	json_object_set_new(
	    j, "prefill_tok_s", rate((double)r->prompt.count, r->prefill_s));
	json_object_set_new(
	    j, "decode_tok_s", rate(r->decode_steps, r->decode_s));
	json_object_set_new(j, "load_ms", json_real(r->m.load_ms));
	json_object_set_new(j, "compiled", json_boolean(r->m.compiled));
	ok = json_dumpf(j, stdout, JSON_REAL_PRECISION(6)) == 0;
	json_decref(j);
	putchar('\n');
	return ok ? EXIT_DONE : user_error("no memory for the result");
}

static int
report(Run *r)
{
	if (r->o->verbose)
		note("%zu prompt tokens in %.3f s, %zu generated in %.3f s "
		     "(%s)",
		    r->prompt.count, r->prefill_s, r->generated.count,
		    r->decode_s, r->finish);
	if (r->o->json)
		return print_json(r);
	if (isatty(STDOUT_FILENO))
		putchar('\n');
	return EXIT_DONE;
}

static void
close_run(Run *r)
{
	ingot_session_close(r->session);
	open_close(&r->m);
	ingot_tokenizer_close(r->tokenizer);
	if (r->o->json && r->stream.out)
		fclose(r->stream.out);
	free(r->text);
	stream_free(&r->stream);
	ids_free(&r->prompt);
	ids_free(&r->generated);
}

int
cmd_run(const Options *o)
{
	static int (*const phases[])(Run *) = {check_usage, open_tokenizer,
	    read_prompt, load, open_run, open_stream, prefill, decode, report};
	Run r = {.o = o};
	int code = EXIT_DONE;
	size_t i;

	for (i = 0; i < sizeof phases / sizeof phases[0] && !code; i++)
		code = phases[i](&r);
	close_run(&r);
	return code;
}
