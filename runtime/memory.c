#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include "memory.h"

#include <sys/mman.h>

bool
memory_open(Memory *m, uint64_t size)
{
	void *p;

	*m = (Memory){0};
	if (size == 0)
		return true;
	if (size > SIZE_MAX)
		return false;
	p = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return false;
	*m = (Memory){p, size};
	return true;
}

void
memory_close(Memory *m)
{
	if (m->data)
		munmap(m->data, (size_t)m->size);
	*m = (Memory){0};
}
