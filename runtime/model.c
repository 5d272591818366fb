#include "model.h"

#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "fp.h"
#include "options.h"
#include "quote.h"

enum { NAMES = 200 };

/* "a, b and c" of the plan's targets, cut where out ends. */
static const char *
target_names(const Plan *p, char out[NAMES])
{
	size_t n = 0;

	for (uint64_t i = 0; i < p->n_targets; i++) {
		const char *name = plan_string(p, p->targets[i].name);
		size_t length = strlen(name);
		Quote q;

		if (n + length + 8 > NAMES || length >= QUOTE_TEXT)
			break;
		if (i > 0)
			n += (size_t)(stpcpy(out + n, ", ") - (out + n));
		n += (size_t)(stpcpy(out + n, quote(&q, name, length)) -
			      (out + n));
	}
	if (n == 0)
		stpcpy(out, "no target");
	return out;
}

static ingot_status
check_device(const char *device, Error *err)
{
	Quote q;

	if (!device || strcmp(device, "auto") == 0 ||
	    strcmp(device, "cpu") == 0)
		return INGOT_OK;
	return fail(err, INGOT_NO_DEVICE,
	    "device %s: this library runs plans on cpu alone",
	    quote(&q, device, strlen(device)));
}

static ingot_status
open_cpu(ingot_model *m, const ingot_model_options *o, Error *err)
{
	char names[NAMES];
	int64_t target;
	ingot_status status = check_device(o->device, err);

	if (status)
		return status;
	target = plan_target(m->plan, "cpu");
	if (target < 0)
		return fail(err, INGOT_MISMATCH,
		    "the plan holds code for %s, but the device is cpu: "
		    "compile it for cpu",
		    target_names(m->plan, names));
	m->cpu.target = (uint32_t)target;
	m->factory = (BackendFactory){exec_open, &m->cpu, "cpu"};
	return cpu_open(
	    m->plan, m->cpu.target, o->threads, &m->cpu.device, err);
}

static ingot_status
bind(ingot_model *m, const char *checkpoint, const ingot_model_options *o,
    Error *err)
{
	WeightProgress progress = {o->progress, o->user};
	unsigned fp = fp_enter();
	ingot_status status = ckpt_open(checkpoint, false, &m->checkpoint, err);

	if (!status)
		status = weights_bind(m->plan, m->cpu.target, m->checkpoint,
		    m->cpu.device == NULL, progress, &m->weights, err);
	fp_leave(fp);
	return status;
}

/* Opens a model on factory, or on the plan's own code when that is NULL. */
static ingot_status
open_model(ingot_plan *plan, const char *checkpoint,
    const BackendFactory *factory, const ingot_model_options *options,
    ingot_model **out, Error *err)
{
	ingot_model_options o;
	ingot_model *m;
	ingot_status status;

	if (!plan || !checkpoint || !out)
		return fail(err, INGOT_BAD_ARG,
		    "ingot_model_open: plan, checkpoint or out is NULL");
	*out = NULL;
	status =
	    options_read(&o, sizeof o, options, "ingot_model_options", err);
	if (status)
		return status;
	m = calloc(1, sizeof *m);
	if (!m)
		return fail(err, INGOT_NO_MEMORY, "no memory for a model");
	m->plan = plan;
	if (factory)
		m->factory = *factory;
	else
		status = open_cpu(m, &o, err);
	if (!status)
		status = bind(m, checkpoint, &o, err);
	if (status)
		ingot_model_close(m);
	else
		*out = m;
	return status;
}

ingot_status
ingot_model_open(ingot_plan *plan, const char *checkpoint,
    const ingot_model_options *options, ingot_model **out, ingot_error *err)
{
	return open_model(plan, checkpoint, NULL, options, out, err);
}

ingot_status
model_open_custom(ingot_plan *plan, const char *checkpoint,
    const BackendFactory *factory, const ingot_model_options *options,
    ingot_model **out, ingot_error *err)
{
	return open_model(plan, checkpoint, factory, options, out, err);
}

void
model_watch(ingot_model *m, const LaunchWatch *watch)
{
	m->cpu.watch = watch;
}

void
ingot_model_close(ingot_model *m)
{
	if (!m)
		return;
	cpu_close(m->cpu.device);
	weights_free(&m->weights);
	if (m->checkpoint)
		ckpt_close(m->checkpoint);
	free(m);
}

ingot_model_info
ingot_model_get_info(const ingot_model *m)
{
	const PlanMeta *meta = m->plan->meta;

	return (ingot_model_info){.vocab = meta->vocab,
	    .ctx = meta->ctx,
	    .max_chunk = meta->max_chunk,
	    .weight_bytes = m->weights.total,
	    .device = m->factory.device,
	    .other_data = m->weights.other_data};
}
