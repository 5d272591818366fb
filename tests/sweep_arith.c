/* Measures the worst error of every unary function of numerics/arith.h over
 * all 2^32 inputs, against the double functions of libm.  A tool, not one of
 * the quick tests: a function takes about a minute.
 *
 *	sweep_arith [function|all] [stride]
 *
 * Inputs with a NaN reference must give NaN, infinite ones the same infinity.
 * Exit status 1 when a function misses its limit.
 */
#include "arith_cases.h"

#include <stdio.h>
#include <stdlib.h>

static Worst
sweep(const Case *c, uint64_t stride)
{
	float x[BATCH], y[BATCH];
	Worst w = {0};

	for (uint64_t u = 0; u <= UINT32_MAX; u += BATCH * stride) {
		for (uint64_t i = 0; i < BATCH; i++)
			x[i] = ig_float((uint32_t)(u + i * stride));
		c->map(y, x);
		for (int i = 0; i < BATCH; i++)
			judge(&w, x[i], y[i], c->ref((double)x[i]));
	}
	return w;
}

int
main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "all";
	uint64_t stride = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
	int bad = 0;

	for (size_t i = 0; i < NCASES; i++) {
		const Case *c = &cases[i];
		Worst w;

		if (strcmp(name, "all") != 0 && strcmp(name, c->name) != 0)
			continue;
		w = sweep(c, stride ? stride : 1);
		printf("%-8s %.4f ulp at %a (%.9g), %lu wrong\n", c->name,
		    w.ulp, (double)w.at, (double)w.at, w.wrong);
		fflush(stdout);
		bad |= w.ulp > c->limit || w.wrong;
	}
	return bad;
}
