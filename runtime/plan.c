/* Opening a plan and putting its sections in their places. What the tables
 * say is verified in plan_verify.c. */
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "plan_impl.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
    "plans are read in place, little endian");

static const char *const section_names[] = {
#define SECTION(NAME, element) #NAME,
    PLAN_SECTIONS(SECTION)
#undef SECTION
};

static const uint32_t section_sizes[] = {
#define SECTION(NAME, element) sizeof(element),
    PLAN_SECTIONS(SECTION)
#undef SECTION
};

/* The file as it is being read. */
typedef struct Reader {
	const unsigned char *bytes;
	uint64_t size;
	PlanHeader header;
	const PlanSection *table;
	const void *data[SEC_COUNT];
	uint64_t count[SEC_COUNT];
	bool seen[SEC_COUNT];
} Reader;

static uint64_t
align_up(uint64_t n)
{
	return (n + (PLAN_ALIGN - 1)) & ~(uint64_t)(PLAN_ALIGN - 1);
}

static bool
all_zero(const unsigned char *p, uint64_t n)
{
	while (n > 0 && *p == 0)
		p++, n--;
	return n == 0;
}

/* What the first bytes tell, before anything else is believed. */
static ingot_status
check_header(Reader *r, const char *from, Error *err)
{
	const PlanHeader *h = &r->header;

	if (r->size < 8 || memcmp(r->bytes, PLAN_MAGIC, 8) != 0)
		return fail(err, INGOT_BAD_FILE, "%s: is not a plan", from);
	if (r->size < sizeof *h)
		return fail(err, INGOT_BAD_FILE,
		    "%s: the plan is cut off in its header", from);
	memcpy(&r->header, r->bytes, sizeof *h);
	if (h->major != PLAN_MAJOR)
		return fail(err, INGOT_UNSUPPORTED,
		    "%s: plan version %d.%d, but this Ingot reads %d.x: "
		    "compile it again",
		    from, h->major, h->minor, PLAN_MAJOR);
	if (h->file_bytes != r->size)
		return fail(err, INGOT_BAD_FILE,
		    "%s: the plan should have %llu bytes and has %llu: it is "
		    "cut off or damaged",
		    from, (unsigned long long)h->file_bytes,
		    (unsigned long long)r->size);
	return INGOT_OK;
}

/* The section table: whole, and as it was written. */
static ingot_status
check_table(Reader *r, const char *from, Error *err)
{
	const PlanHeader *h = &r->header;
	uint64_t bytes = (uint64_t)h->n_sections * sizeof(PlanSection);
	uint64_t seed = XXH64(h, offsetof(PlanHeader, check), 0);

	if (bytes > r->size - sizeof *h)
		return fail(err, INGOT_BAD_FILE,
		    "%s: the plan has no room for its table of %u sections",
		    from, h->n_sections);
	r->table = (const PlanSection *)(const void *)(r->bytes + sizeof *h);
	if (XXH64(r->table, (size_t)bytes, seed) != h->check)
		return fail(err, INGOT_BAD_FILE,
		    "%s: the plan's section table is damaged (checksum)", from);
	return INGOT_OK;
}

/* What messages call a section. */
static const char *
section_name(const PlanSection *s)
{
	return s->kind < SEC_COUNT ? section_names[s->kind] : "of unknown kind";
}

/* A section of no known kind: skipped when it may be. */
static ingot_status
unknown_section(
    const Reader *r, const PlanSection *s, const char *from, Error *err)
{
	if (r->header.minor <= PLAN_MINOR)
		return fail(err, INGOT_BAD_FILE,
		    "%s: the plan holds a section of unknown kind %u", from,
		    s->kind);
	if (s->flags & SECTION_REQUIRED)
		return fail(err, INGOT_UNSUPPORTED,
		    "%s: plan version %d.%d needs section %u, which this "
		    "Ingot (%d.%d) does not know: use a newer Ingot or "
		    "compile the plan again",
		    from, r->header.major, r->header.minor, s->kind, PLAN_MAJOR,
		    PLAN_MINOR);
	return INGOT_OK;
}

static ingot_status
take_section(Reader *r, const PlanSection *s, const char *from, Error *err)
{
	uint32_t size;

	if (s->kind >= SEC_COUNT)
		return unknown_section(r, s, from, err);
	size = section_sizes[s->kind];
	if (r->seen[s->kind])
		return fail(err, INGOT_BAD_FILE,
		    "%s: the plan holds section %s twice", from,
		    section_names[s->kind]);
	if (s->bytes % size != 0 || (size > 1 && s->bytes / size > UINT32_MAX))
		return fail(err, INGOT_BAD_FILE,
		    "%s: section %s of the plan has a wrong size, %llu", from,
		    section_names[s->kind], (unsigned long long)s->bytes);
	r->seen[s->kind] = true;
	r->data[s->kind] = r->bytes + s->offset;
	r->count[s->kind] = s->bytes / size;
	return INGOT_OK;
}

/* Sections lie one behind the other; end is where the last one ended. */
static ingot_status
place_section(
    Reader *r, uint32_t i, uint64_t *end, const char *from, Error *err)
{
	const PlanSection *s = &r->table[i];
	uint64_t start = align_up(*end);

	if (s->offset != start || start > r->size || s->bytes > r->size - start)
		return fail(err, INGOT_BAD_FILE,
		    "%s: section %s of the plan is out of place", from,
		    section_name(s));
	if (!all_zero(r->bytes + *end, start - *end))
		return fail(err, INGOT_BAD_FILE,
		    "%s: the plan is damaged in front of section %s", from,
		    section_name(s));
	if (XXH64(r->bytes + start, (size_t)s->bytes, 0) != s->check)
		return fail(err, INGOT_BAD_FILE,
		    "%s: section %s of the plan is damaged (checksum)", from,
		    section_name(s));
	*end = start + s->bytes;
	return take_section(r, s, from, err);
}

static ingot_status
check_end(const Reader *r, uint64_t end, const char *from, Error *err)
{
	if (align_up(end) != r->size ||
	    !all_zero(r->bytes + end, r->size - end))
		return fail(err, INGOT_BAD_FILE,
		    "%s: something follows the last section of the plan", from);
	if (r->count[SEC_META] != 1)
		return fail(err, INGOT_BAD_FILE,
		    "%s: the plan must hold one META and holds %llu", from,
		    (unsigned long long)r->count[SEC_META]);
	return INGOT_OK;
}

static void
set_tables(Plan *p, const Reader *r)
{
#define TAKE(field, KIND)                                                      \
	(p->field = r->data[SEC_##KIND], p->n_##field = r->count[SEC_##KIND])
	TAKE(strings, STRINGS);
	TAKE(meta, META);
	TAKE(tensors, TENSORS);
	TAKE(weights, WEIGHTS);
	TAKE(pieces, PIECES);
	TAKE(states, STATES);
	TAKE(tables, TABLES);
	TAKE(graph, GRAPH);
	TAKE(targets, TARGETS);
	TAKE(packs, PACKS);
	TAKE(buffers, BUFFERS);
	TAKE(kernels, KERNELS);
	TAKE(launches, LAUNCHES);
	TAKE(args, ARGS);
	TAKE(regions, REGIONS);
	TAKE(sources, SOURCES);
	TAKE(objects, OBJECTS);
#undef TAKE
	if (p->n_strings == 0) {
		p->strings = "";
		p->n_strings = 1;
	}
}

static ingot_status
read_plan(
    Plan *p, const void *bytes, uint64_t size, const char *from, Error *err)
{
	Reader r = {.bytes = bytes, .size = size};
	uint64_t end;
	ingot_status status = check_header(&r, from, err);

	if (!status)
		status = check_table(&r, from, err);
	if (status)
		return status;
	end = sizeof r.header + r.header.n_sections * sizeof(PlanSection);
	for (uint32_t i = 0; i < r.header.n_sections; i++) {
		status = place_section(&r, i, &end, from, err);
		if (status)
			return status;
	}
	status = check_end(&r, end, from, err);
	if (status)
		return status;
	set_tables(p, &r);
	return plan_verify(p, from, err);
}

static ingot_status
open_file(Plan *p, const char *path, Error *err)
{
	Quote q;
	ingot_status status = map_file(path, &p->map, err);

	if (status)
		return status;
	return read_plan(
	    p, p->map.data, p->map.size, quote(&q, path, strlen(path)), err);
}

static ingot_status
open_copy(Plan *p, const void *bytes, size_t length, Error *err)
{
	if (length > SIZE_MAX - PLAN_ALIGN)
		return fail(err, INGOT_BAD_ARG, "the plan is too long");
	p->copy = aligned_alloc(PLAN_ALIGN, align_up(length + 1));
	if (!p->copy)
		return fail(err, INGOT_NO_MEMORY,
		    "no memory for a plan of %zu bytes", length);
	if (length > 0)
		memcpy(p->copy, bytes, length);
	return read_plan(p, p->copy, length, "plan in memory", err);
}

ingot_status
ingot_plan_open(const char *path, ingot_plan **out, ingot_error *err)
{
	Plan *p;
	ingot_status status;

	if (!path || !out)
		return fail(
		    err, INGOT_BAD_ARG, "ingot_plan_open: path or out is NULL");
	*out = NULL;
	p = calloc(1, sizeof *p);
	if (!p)
		return fail(err, INGOT_NO_MEMORY, "no memory for a plan");
	status = open_file(p, path, err);
	if (status)
		ingot_plan_close(p);
	else
		*out = p;
	return status;
}

ingot_status
ingot_plan_read(
    const void *bytes, size_t length, ingot_plan **out, ingot_error *err)
{
	Plan *p;
	ingot_status status;

	if ((!bytes && length > 0) || !out)
		return fail(err, INGOT_BAD_ARG,
		    "ingot_plan_read: bytes or out is NULL");
	*out = NULL;
	p = calloc(1, sizeof *p);
	if (!p)
		return fail(err, INGOT_NO_MEMORY, "no memory for a plan");
	status = open_copy(p, bytes, length, err);
	if (status)
		ingot_plan_close(p);
	else
		*out = p;
	return status;
}

void
ingot_plan_close(ingot_plan *p)
{
	if (!p)
		return;
	unmap_file(&p->map);
	free(p->copy);
	free(p);
}

int64_t
plan_target(const Plan *p, const char *name)
{
	for (uint64_t i = 0; i < p->n_targets; i++)
		if (strcmp(plan_string(p, p->targets[i].name), name) == 0)
			return (int64_t)i;
	return -1;
}
