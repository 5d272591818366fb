/* libFuzzer entry: any bytes as a plan, as they are and with checksums put
 * right. */
#include <stdlib.h>

#include "../runtime/plan_open.h"
#include "plan_sign.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
try_open(const void *bytes, size_t size)
{
	ingot_plan *p;
	ingot_error err = {0};
	volatile size_t sum = 0;

	if (ingot_plan_read(bytes, size, &p, &err) != INGOT_OK) {
		if (p || err.text[0] == '\0')
			abort();
		return;
	}
	for (uint64_t i = 0; i < p->n_targets; i++)
		for (uint32_t k = 0; k < p->targets[i].n_launches; k++)
			sum +=
			    1 / p->launches[p->targets[i].first_launch + k].div;
	for (uint64_t i = 0; i < p->n_regions; i++)
		sum += strlen(plan_string(p, p->regions[i].name));
	ingot_plan_close(p);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned char *copy = calloc(size + 1, 1);

	if (!copy)
		return 0;
	if (size > 0)
		memcpy(copy, data, size);
	try_open(copy, size);
	plan_sign(copy, size);
	try_open(copy, size);
	free(copy);
	return 0;
}
