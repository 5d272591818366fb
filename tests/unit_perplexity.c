/* Perplexity of known distributions. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "../compiler/perplexity.h"

#include <cmocka.h>

static void
near(double got, double want)
{
	if (!(fabs(got - want) <= 1e-6 * fabs(want)))
		fail_msg("%.9g, not %.9g", got, want);
}

static void
test_uniform(void **state)
{
	static const float logits[7] = {3, 3, 3, 3, 3, 3, 3};
	Perplexity p = {0};
	uint32_t i;

	(void)state;
	for (i = 0; i < 7; i++)
		perplexity_add(&p, logits, 7, i);
	assert_int_equal(p.count, 7);
	near(perplexity_value(&p), 7);
	assert_true(perplexity_error(&p) < 1e-6);
}

/* Logits -1, -2, -3, -3, whatever is added to all of them. */
static void
test_known(void **state)
{
	static const float shifts[] = {0, 90, -90, 30000, -30000};
	double z = exp(-1) + exp(-2) + 2 * exp(-3);
	size_t i;

	(void)state;
	for (i = 0; i < sizeof shifts / sizeof shifts[0]; i++) {
		float s = shifts[i], logits[] = {s - 1, s - 2, s - 3, s - 3};
		Perplexity p = {0};

		perplexity_add(&p, logits, 4, 0);
		near(perplexity_value(&p), z * exp(1));
		perplexity_add(&p, logits, 4, 1);
		near(perplexity_value(&p), z * exp(1.5));
		near(perplexity_error(&p), 0.5 * z * exp(1.5));
		perplexity_add(&p, logits, 4, 3);
		near(perplexity_value(&p), z * exp(2));
		near(perplexity_error(&p), sqrt(2.0 / 3 / 2) * z * exp(2));
	}
}

static void
test_few(void **state)
{
	static const float logits[2] = {1, 2};
	Perplexity p = {0};

	(void)state;
	assert_true(isnan(perplexity_value(&p)));
	assert_true(perplexity_error(&p) == 0);
	perplexity_add(&p, logits, 2, 0);
	near(perplexity_value(&p), 1 + exp(1));
	assert_true(perplexity_error(&p) == 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_uniform),
	    cmocka_unit_test(test_known),
	    cmocka_unit_test(test_few),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
