/* Runs a plan: prints what a model says after a prompt.
 *
 *     generate PLAN CHECKPOINT PROMPT [TOKENS]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../runtime/ingot.h"

/* Everything that is open, and the last error. */
typedef struct Run {
	ingot_plan *plan;
	ingot_model *model;
	ingot_session *session;
	ingot_tokenizer *tokens;
	uint32_t *prompt;
	size_t n_prompt;
	uint32_t seq;
	ingot_error err;
} Run;

static ingot_status
open_all(Run *r, const char *plan, const char *checkpoint)
{
	ingot_status s = ingot_plan_open(plan, &r->plan, &r->err);

	if (!s)
		s = ingot_model_open(
		    r->plan, checkpoint, NULL, &r->model, &r->err);
	if (!s)
		s = ingot_session_open(r->model, NULL, &r->session, &r->err);
	if (!s)
		s = ingot_tokenizer_open(checkpoint, &r->tokens, &r->err);
	if (!s)
		s = ingot_seq_add(r->session, &r->seq, &r->err);
	return s;
}

/* A first call asks how many tokens there are: they can be more than bytes. */
static ingot_status
encode(Run *r, const char *text)
{
	size_t length = strlen(text), n;
	ingot_status s =
	    ingot_encode(r->tokens, text, length, 1, NULL, 0, &n, &r->err);

	if (s)
		return s;
	r->prompt = calloc(n, sizeof *r->prompt);
	if (!r->prompt)
		return INGOT_NO_MEMORY;
	return ingot_encode(
	    r->tokens, text, length, 1, r->prompt, n, &r->n_prompt, &r->err);
}

/* One step with the logits after its last token. */
static ingot_status
push(Run *r, const uint32_t *tokens, size_t n)
{
	ingot_work w = {r->seq, (uint32_t)n, tokens, INGOT_WANT_LAST};

	return ingot_step(r->session, &w, 1, &r->err);
}

static ingot_status
prefill(Run *r)
{
	size_t chunk = ingot_model_get_info(r->model).max_chunk, n;
	ingot_status s = INGOT_OK;

	for (size_t i = 0; i < r->n_prompt && !s; i += n) {
		n = r->n_prompt - i < chunk ? r->n_prompt - i : chunk;
		s = push(r, r->prompt + i, n);
	}
	return s;
}

static ingot_status
generate(Run *r, long count)
{
	ingot_sampling greedy = {.size = sizeof greedy, .tokens = r->tokens};
	ingot_status s = INGOT_OK;
	uint32_t token;
	size_t n;

	while (count-- > 0 && !s) {
		s = ingot_sample(r->session, 0, &greedy, &token, &r->err);
		if (s || ingot_is_stop(r->tokens, token))
			break;
		const char *bytes = ingot_token_bytes(r->tokens, token, &n);
		fwrite(bytes, 1, n, stdout);
		fflush(stdout);
		s = push(r, &token, 1);
	}
	return s == INGOT_FULL ? INGOT_OK : s; /* the context ended */
}

/* What is wrong with the arguments, or NULL; *count is TOKENS. */
static const char *
read_arguments(int argc, char **argv, long *count)
{
	char *end;

	if (argc < 4 || argc > 5)
		return "generate PLAN CHECKPOINT PROMPT [TOKENS]";
	if (argv[3][0] == '\0')
		return "generate: the prompt is empty: give it some text";
	*count = 64;
	if (argc == 4)
		return NULL;
	*count = strtol(argv[4], &end, 10);
	if (end == argv[4] || *end != '\0' || *count < 0)
		return "generate: TOKENS must be a whole number, 0 or more";
	return NULL;
}

int
main(int argc, char **argv)
{
	Run r = {0};
	ingot_status s;
	long count;
	const char *wrong = read_arguments(argc, argv, &count);

	if (wrong) {
		fprintf(stderr, "%s\n", wrong);
		return 2;
	}
	s = open_all(&r, argv[1], argv[2]);
	if (!s)
		s = encode(&r, argv[3]);
	if (!s)
		s = prefill(&r);
	if (!s)
		s = generate(&r, count);
	putchar('\n');
	if (s)
		fprintf(stderr, "generate: %s\n",
		    r.err.text[0] ? r.err.text : ingot_status_text(s));
	free(r.prompt);
	ingot_session_close(r.session);
	ingot_model_close(r.model);
	ingot_tokenizer_close(r.tokens);
	ingot_plan_close(r.plan);
	return s != INGOT_OK;
}
