#include "pages.h"

#include <stdlib.h>
#include <string.h>

#include "plan.h"

bool
pages_open(Pages *p, uint32_t max_seqs, uint32_t seq_pages)
{
	uint64_t n = (uint64_t)max_seqs * seq_pages;

	*p = (Pages){.max_seqs = max_seqs, .seq_pages = seq_pages};
	if (n > UINT32_MAX)
		return false;
	p->blocks = calloc((size_t)n, sizeof *p->blocks);
	p->held = calloc(max_seqs, sizeof *p->held);
	p->holders = calloc((size_t)n, sizeof *p->holders);
	p->free = calloc((size_t)n, sizeof *p->free);
	if (!p->blocks || !p->held || !p->holders || !p->free)
		return false;
	return true;
}

void
pages_close(Pages *p)
{
	free(p->blocks);
	free(p->held);
	free(p->holders);
	free(p->free);
	*p = (Pages){0};
}

static uint32_t *
row(Pages *p, uint32_t seq)
{
	return p->blocks + (uint64_t)seq * p->seq_pages;
}

/* Gives seq one more page, which is free because no sequence holds more than
 * seq_pages. */
static uint32_t
take(Pages *p, uint32_t seq)
{
	uint32_t page = p->n_free > 0 ? p->free[--p->n_free] : p->fresh++;

	p->holders[page] = 1;
	row(p, seq)[p->held[seq]++] = page;
	return page;
}

void
pages_extend(Pages *p, uint32_t seq, uint32_t length)
{
	uint32_t n = length / KV_PAGE + (length % KV_PAGE != 0);

	while (p->held[seq] < n)
		take(p, seq);
}

bool
pages_share(Pages *p, uint32_t from, uint32_t to, uint32_t length,
    uint32_t *src, uint32_t *dst)
{
	uint32_t full = length / KV_PAGE;

	for (uint32_t i = 0; i < full; i++) {
		row(p, to)[i] = row(p, from)[i];
		p->holders[row(p, to)[i]]++;
	}
	p->held[to] = full;
	if (length % KV_PAGE == 0)
		return false;
	*src = row(p, from)[full];
	*dst = take(p, to);
	return true;
}

void
pages_drop(Pages *p, uint32_t seq)
{
	uint32_t page;

	while (p->held[seq] > 0) {
		page = row(p, seq)[--p->held[seq]];
		if (--p->holders[page] == 0)
			p->free[p->n_free++] = page;
	}
}
