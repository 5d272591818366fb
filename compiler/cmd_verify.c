/* ingot verify */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ids.h"
#include "open.h"
#include "plan_json.h"
#include "table.h"
#include "verify.h"

/* Tokens without --tokens: one page of the cache is not filled. */
enum { DEFAULT_IDS = 48, DECODE_STEPS = 11 };

/* The same model twice: on the device and on the oracle. */
typedef struct Check {
	const Options *o;
	const char *checkpoint;
	Opened m; /* on the device */
	ingot_model *oracle;
	Verify *verify;
	uint32_t target;
	ingot_session *device_session, *oracle_session;
	uint32_t device_seq, oracle_seq;
	uint32_t max_rows;
	Ids ids;
	bool failed; /* the device gave up where the oracle did not */
} Check;

/* ---- before running ---- */

static int
check_usage(Check *c)
{
	const Options *o = c->o;

	if (o->tokens.count > 1)
		return usage_error(o, "one --tokens is enough");
	if (o->device && strcmp(o->device, "oracle") == 0)
		return usage_error(o,
		    "verify compares a device with the oracle: --device "
		    "auto or cpu");
	return open_check(o, &c->checkpoint);
}

static int
read_ids(Check *c)
{
	const TextList *tokens = &c->o->tokens;

	if (tokens->count == 0 || ids_read(tokens->at[0], &c->ids))
		return EXIT_DONE;
	return EXIT_USER;
}

static int
load_device(Check *c)
{
	return open_model(c->o, NULL, &c->m);
}

static int
load_oracle(Check *c)
{
	const char *device = ingot_model_get_info(c->m.model).device;
	int64_t target = plan_target(c->m.plan, device);
	BackendFactory oracle;
	Error e;

	if (target < 0)
		return user_error("the plan has no code for %s", device);
	c->target = (uint32_t)target;
	if (verify_new(c->m.plan, c->target, &c->verify, &e))
		return library_error(&e);
	oracle = oracle_factory_nodes(verify_oracle_watch(c->verify));
	if (model_open_custom(
		c->m.plan, c->checkpoint, &oracle, NULL, &c->oracle, &e))
		return library_error(&e);
	model_watch(c->m.model, verify_launch_watch(c->verify));
	return EXIT_DONE;
}

/* The same tokens for each model: none that a person chose. */
static int
make_ids(Check *c)
{
	uint32_t vocab = ingot_model_get_info(c->m.model).vocab, x = 1, i;

	c->ids.at = malloc(DEFAULT_IDS * sizeof *c->ids.at);
	if (!c->ids.at)
		return user_error("no memory for a prompt");
	c->ids.count = DEFAULT_IDS;
	for (i = 0; i < DEFAULT_IDS; i++) {
		x = x * 1664525u + 1013904223u;
		c->ids.at[i] = (x >> 8) % vocab;
	}
	return EXIT_DONE;
}

static int
choose_ids(Check *c)
{
	uint32_t ctx = open_ctx(c->o, &c->m);

	if (c->o->tokens.count == 0)
		return make_ids(c);
	if (!ids_check(&c->ids, c->o->tokens.at[0],
		ingot_model_get_info(c->m.model).vocab))
		return EXIT_USER;
	if (c->ids.count > ctx)
		return user_error("--tokens %.100s has %zu tokens, but the "
				  "context holds %u; see --ctx",
		    c->o->tokens.at[0], c->ids.count, ctx);
	return EXIT_DONE;
}

static int
open_sessions(Check *c)
{
	ingot_session_options so = {sizeof so, (uint32_t)c->ids.count, 1, 0};
	Opened oracle = {.plan = c->m.plan, .model = c->oracle};
	Error e;
	int code;

	c->max_rows = ingot_model_get_info(c->m.model).max_chunk;
	if (c->ids.count < c->max_rows)
		c->max_rows = (uint32_t)c->ids.count;
	so.max_rows = c->max_rows;
	code = open_session(&c->m, &so, &c->device_session);
	if (!code)
		code = open_session(&oracle, &so, &c->oracle_session);
	if (!code && (ingot_seq_add(c->device_session, &c->device_seq, &e) ||
			 ingot_seq_add(c->oracle_session, &c->oracle_seq, &e)))
		code = library_error(&e);
	return code;
}

/* ---- running ---- */

/* Takes tokens first .. first+count-1 through both. */
static int
step(Check *c, size_t first, uint32_t count)
{
	ingot_work work = {
	    c->oracle_seq, count, c->ids.at + first, INGOT_WANT_ALL};
	ingot_status status;
	Error e;

	if (ingot_step(c->oracle_session, &work, 1, &e))
		return library_error(&e);
	work.seq = c->device_seq;
	status = ingot_step(c->device_session, &work, 1, &e);
	if (!status)
		return EXIT_DONE;
	if (status != INGOT_NOT_FINITE)
		return library_error(&e);
	note("%s; the oracle did not", e.text);
	c->failed = true;
	return EXIT_DONE;
}

/* Chunks for the most part, single tokens at the end. */
static int
run_steps(Check *c)
{
	char label[] = "verifying";
	size_t n = c->ids.count, at = 0;
	size_t tail = n / 4 < DECODE_STEPS ? n / 4 : DECODE_STEPS;
	int code = EXIT_DONE;

	while (at < n && !code && !c->failed) {
		size_t left = at < n - tail ? n - tail - at : 1;
		uint32_t count =
		    left < c->max_rows ? (uint32_t)left : c->max_rows;

		show_progress(label, at, n);
		code = step(c, at, count);
		at += count;
		if (!code && interrupted())
			code = EXIT_INTERRUPTED;
	}
	show_progress(label, n, n);
	return code;
}

/* ---- the result ---- */

static json_t *
real(double x)
{
	return isfinite(x) ? json_real(x) : json_null();
}

/* "add %12 [5][130]: 1, not 1.5", by position and column. */
static json_t *
worst_text(const Judgement *j)
{
	unsigned long long row, at;

	if (!j->worst || j->worst->wrong == 0)
		return json_null();
	row = type_row(&j->node->type);
	at = j->worst->worst;
	return json_sprintf("%s %%%u [%llu][%llu]: %.9g, not %.9g",
	    ops[j->node->op].name, j->node->id, at / row, at % row,
	    j->worst->got, j->worst->want);
}

static json_t *
verdict_equal(Verdict v)
{
	return v == VERDICT_STATE ? json_null()
				  : json_boolean(v == VERDICT_EQUAL);
}

/* Adds what was found to the object of a launch, as plan_launches gives it. */
static void
add_judgement(const Check *c, json_t *launch, uint32_t i)
{
	static const char *const words[] = {
	    "state", "equal", "within", "differs"};
	Judgement j = verify_judge(c->verify, i);

	json_object_set(launch, "name", json_object_get(launch, "region"));
	json_object_set_new(launch, "verdict", json_string(words[j.verdict]));
	json_object_set_new(launch, "equal", verdict_equal(j.verdict));
	json_object_set_new(launch, "nmse",
	    j.worst ? real(difference_nmse(j.worst)) : json_null());
	json_object_set_new(
	    launch, "max_abs", j.worst ? real(j.worst->max_abs) : json_null());
	json_object_set_new(launch, "worst", worst_text(&j));
}

/* Each line of the model once. */
static json_t *
distinct(const json_t *lines)
{
	json_t *list = json_array();
	size_t i, k;

	for (i = 0; i < json_array_size(lines); i++) {
		json_t *line = json_array_get(lines, i);

		for (k = 0;
		     k < i && !json_equal(line, json_array_get(lines, k)); k++)
			;
		if (k == i)
			json_array_append(list, line);
	}
	return list;
}

/* The object of a region from that of its launch. */
static json_t *
region_json(const Check *c, json_t *launch, uint32_t i)
{
	static const char *const keys[] = {"index", "name", "verdict", "equal",
	    "nmse", "max_abs", "worst", "family", "kernel"};
	json_t *region = json_object();
	size_t k;

	add_judgement(c, launch, i);
	for (k = 0; k < sizeof keys / sizeof keys[0]; k++)
		json_object_set(
		    region, keys[k], json_object_get(launch, keys[k]));
	json_object_set_new(
	    region, "lines", distinct(json_object_get(launch, "lines")));
	return region;
}

static int
print_regions(json_t *regions, bool equal, bool as_json)
{
	static const Column columns[] = {{"index", "#"}, {"name", "region"},
	    {"verdict", "verdict"}, {"nmse", "NMSE"}, {"max_abs", "max abs"},
	    {"worst", "worst"}, {"lines", "model"}};
	json_t *all;
	bool ok = true;

	if (as_json) {
		all =
		    json_pack("{s:b, s:O}", "equal", equal, "regions", regions);
		ok = json_dumpf(all, stdout, JSON_REAL_PRECISION(6)) == 0;
		putchar('\n');
		json_decref(all);
	} else {
		table_print(stdout, regions, columns,
		    sizeof columns / sizeof columns[0]);
	}
	return ok ? EXIT_DONE : user_error("no memory for the result");
}

static int
report(Check *c)
{
	json_t *launches = plan_launches(c->m.plan, c->target);
	json_t *regions = json_array();
	size_t i, n = json_array_size(launches), differ = 0;
	int code;

	for (i = 0; i < n; i++) {
		uint32_t launch = (uint32_t)i;

		json_array_append_new(regions,
		    region_json(c, json_array_get(launches, i), launch));
		differ +=
		    verify_judge(c->verify, launch).verdict == VERDICT_DIFFERS;
	}
	code = print_regions(regions, differ == 0 && !c->failed, c->o->json);
	if (differ > 0)
		note("%zu of %zu regions differ from the oracle", differ, n);
	json_decref(regions);
	json_decref(launches);
	if (code)
		return code;
	return differ > 0 || c->failed ? EXIT_DIFFERS : EXIT_DONE;
}

static void
close_check(Check *c)
{
	ingot_session_close(c->device_session);
	ingot_session_close(c->oracle_session);
	ingot_model_close(c->oracle);
	open_close(&c->m);
	verify_free(c->verify);
	ids_free(&c->ids);
}

int
cmd_verify(const Options *o)
{
	static int (*const phases[])(Check *) = {check_usage, read_ids,
	    load_device, load_oracle, choose_ids, open_sessions, run_steps,
	    report};
	Check c = {.o = o};
	int code = EXIT_DONE;
	size_t i;

	for (i = 0; i < sizeof phases / sizeof phases[0] && !code; i++)
		code = phases[i](&c);
	close_check(&c);
	return code;
}
