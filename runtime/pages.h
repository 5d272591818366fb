/* Pages of the cache: who holds which. A page is KV_PAGE positions of one
 * sequence; all paged states share one numbering. Sequences that were copied
 * share full pages, which are never written again. */
#ifndef RUNTIME_PAGES_H
#define RUNTIME_PAGES_H

#include <stdbool.h>
#include <stdint.h>

typedef struct Pages {
	uint32_t max_seqs, seq_pages;
	uint32_t *blocks;  /* [max_seqs][seq_pages] page of each 64 positions */
	uint32_t *held;    /* [max_seqs] pages that a sequence holds */
	uint32_t *holders; /* [max_seqs * seq_pages] sequences on a page */
	uint32_t *free;    /* stack of pages that were given back */
	uint32_t n_free;
	uint32_t fresh; /* pages from here on were never held */
} Pages;

/* A pool large enough for every sequence at full length. False when memory
 * ran out or the number of pages does not fit 32 bits; *p is then to be closed
 * all the same. */
bool pages_open(Pages *p, uint32_t max_seqs, uint32_t seq_pages);
void pages_close(Pages *p);

/* Makes seq hold the pages of its first length positions. */
void pages_extend(Pages *p, uint32_t seq, uint32_t length);
/* Makes the empty sequence to hold what from does, for length positions. True
 * when the last page is not full: to has a page of its own, and the contents
 * of page *src are to be copied to page *dst. */
bool pages_share(Pages *p, uint32_t from, uint32_t to, uint32_t length,
    uint32_t *src, uint32_t *dst);
/* seq holds nothing any more. */
void pages_drop(Pages *p, uint32_t seq);

#endif
