/* Sampling against a slow writing-down of its rule, and against chance. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "../numerics/arith.h"
#include "../numerics/philox.h"
#include "../runtime/fp.h"
#include "../runtime/sample.h"
#include "../runtime/tokenizer.h"

#include <cmocka.h> /* its macro fail hides the runtime's function */

enum { MOST = 5000 };

Tokenizer *
tokenizer_of(const ingot_tokenizer *t)
{
	return (Tokenizer *)(void *)(uintptr_t)t;
}

/* As a tokenizer: a list of the ids that are tokens. */
bool
tok_is_token(const Tokenizer *t, uint32_t id)
{
	return ((const unsigned char *)(const void *)t)[id] != 0;
}

static uint32_t
next_random(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*seed >> 33);
}

/* ---- the rule, written down slowly ---- */

/* Candidates of the slow rule, by rank. */
typedef struct Slow {
	uint32_t n;
	uint32_t id[MOST];
	float p[MOST];
} Slow;

static void
slow_rank(Slow *w, const float *x, uint32_t vocab, float scale,
    const unsigned char *is_token)
{
	w->n = 0;
	for (uint32_t i = 0; i < vocab; i++) {
		float l = x[i] * scale;
		uint32_t at = w->n;

		if (is_token && !is_token[i])
			continue;
		for (; at > 0 && w->p[at - 1] < l; at--) {
			w->p[at] = w->p[at - 1];
			w->id[at] = w->id[at - 1];
		}
		w->p[at] = l;
		w->id[at] = i;
		w->n++;
	}
}

static uint32_t
slow_pick(Slow *w, const float *x, uint32_t vocab, const ingot_sampling *how,
    const unsigned char *is_token)
{
	float u = philox_uniform(how->seed, how->position), sum = 0, top;
	uint32_t n = 0;

	slow_rank(w, x, vocab, ig_div(1.0f, how->temp), is_token);
	if (how->top_k > 0 && how->top_k < w->n)
		w->n = how->top_k;
	top = w->p[0];
	for (uint32_t i = 0; i < w->n; i++) {
		w->p[i] = ig_exp(w->p[i] - top);
		sum += w->p[i];
	}
	for (uint32_t i = 0; i < w->n; i++)
		w->p[i] = ig_div(w->p[i], sum);
	while (n < w->n && !(w->p[n] < how->min_p * w->p[0]))
		n++;
	w->n = n;
	sum = 0;
	for (n = 0; n < w->n && how->top_p > 0; n++) {
		sum += w->p[n];
		if (sum >= how->top_p && how->top_p < 1)
			w->n = n + 1;
	}
	sum = 0;
	for (uint32_t i = 0; i < w->n; i++)
		sum += w->p[i];
	float run = 0;
	for (uint32_t i = 0; i < w->n; i++) {
		run += ig_div(w->p[i], sum);
		if (run > u)
			return w->id[i];
	}
	return w->id[w->n - 1];
}

static uint32_t
pick(Sampler *s, const float *x, const ingot_sampling *how)
{
	uint32_t token = UINT32_MAX;
	unsigned fp = fp_enter();
	Error err = {0};

	if (sampler_pick(s, x, how, &token, &err) != INGOT_OK)
		fail_msg("%s", err.text);
	fp_leave(fp);
	return token;
}

/* Logits with many ties, both zeros and a wide range. */
static void
make_logits(float *x, uint32_t n, uint64_t *seed, int kind)
{
	for (uint32_t i = 0; i < n; i++) {
		float r = (float)(next_random(seed) % 65536) * 0x1p-13f - 4.0f;

		x[i] = kind == 0 ? r : kind == 1 ? (float)(int)r : 5.0f * r;
		if (kind == 1 && x[i] == 0.0f && next_random(seed) % 2)
			x[i] = -0.0f;
	}
}

static void
compare(Sampler *s, Slow *w, const float *x, ingot_sampling how)
{
	uint64_t seed = how.seed;
	unsigned char tokens[MOST];

	for (uint32_t i = 0; i < s->vocab; i++)
		tokens[i] = next_random(&seed) % 4 != 0;
	tokens[0] = 1;
	for (int masked = 0; masked < 2; masked++) {
		const unsigned char *mask = masked ? tokens : NULL;

		how.tokens = (const ingot_tokenizer *)(const void *)mask;
		assert_int_equal(
		    pick(s, x, &how), slow_pick(w, x, s->vocab, &how, mask));
	}
}

static void
test_rule(void **state)
{
	static const uint32_t vocabs[] = {1, 2, 17, 300, MOST};
	static const uint32_t ks[] = {0, 1, 2, 16, 40, 1000, UINT32_MAX};
	static const float ps[] = {0.0f, 0.3f, 0.95f, 1.0f};
	static Slow w;
	static float x[MOST];
	uint64_t seed = 3;

	(void)state;
	for (uint32_t i = 0; i < 300; i++) {
		uint32_t vocab = vocabs[i % 5];
		Sampler s;
		ingot_sampling how = {.size = sizeof how,
		    .temp = 0.25f + (float)(i % 7) * 0.4f,
		    .top_k = ks[i % 7],
		    .top_p = ps[i / 7 % 4],
		    .min_p = i % 3 == 0 ? 0.05f : 0.0f,
		    .seed = i,
		    .position = 3 * i};

		assert_true(sampler_open(&s, vocab));
		make_logits(x, vocab, &seed, (int)(i % 3));
		compare(&s, &w, x, how);
		sampler_close(&s);
	}
}

/* Frequencies against probabilities in double: 4 standard deviations. */
static void
test_distribution(void **state)
{
	enum { N = 40000, VOCAB = 8 };
	static const float x[VOCAB] = {0, 1, -1, 2, 0.5f, 1, -3, 1.5f};
	uint32_t counts[VOCAB] = {0};
	ingot_sampling how = {.size = sizeof how, .temp = 0.8f, .seed = 9};
	double sum = 0;
	Sampler s;

	(void)state;
	assert_true(sampler_open(&s, VOCAB));
	for (how.position = 0; how.position < N; how.position++)
		counts[pick(&s, x, &how)]++;
	for (int i = 0; i < VOCAB; i++)
		sum += exp(x[i] / 0.8);
	for (int i = 0; i < VOCAB; i++) {
		double p = exp(x[i] / 0.8) / sum;

		assert_true(
		    fabs(counts[i] - N * p) < 4 * sqrt(N * p * (1 - p)));
	}
	sampler_close(&s);
}

/* Ties at the edge of top-k go to the lowest ids; cuts leave what they say. */
static void
test_cuts(void **state)
{
	static const float x[6] = {1, 2, 2, 2, 1, 0};
	ingot_sampling how = {.size = sizeof how, .temp = 1, .top_k = 2};
	bool seen[3][6] = {{false}};
	Sampler s;

	(void)state;
	assert_true(sampler_open(&s, 6));
	for (how.position = 0; how.position < 200; how.position++) {
		seen[0][pick(&s, x, &how)] = true;
		ingot_sampling p = {.size = sizeof p,
		    .temp = 1,
		    .top_p = 0.5f,
		    .position = how.position};
		/* Three times 0.263, twice 0.097, once 0.036. */
		seen[1][pick(&s, x, &p)] = true;
		p = (ingot_sampling){.size = sizeof p,
		    .temp = 1,
		    .min_p = 1.0f,
		    .position = how.position};
		seen[2][pick(&s, x, &p)] = true;
	}
	for (int i = 0; i < 6; i++) {
		assert_int_equal(seen[0][i], i == 1 || i == 2);
		assert_int_equal(seen[1][i], i == 1 || i == 2);
		assert_int_equal(seen[2][i], i >= 1 && i <= 3);
	}
	sampler_close(&s);
}

static void
test_deterministic(void **state)
{
	static float x[MOST];
	uint64_t seed = 5;
	uint32_t differ = 0;
	Sampler s;

	(void)state;
	make_logits(x, MOST, &seed, 0);
	assert_true(sampler_open(&s, MOST));
	for (uint64_t i = 0; i < 50; i++) {
		ingot_sampling how = {.size = sizeof how,
		    .temp = 1.5f,
		    .seed = 11,
		    .position = i};
		uint32_t a = pick(&s, x, &how), b = pick(&s, x, &how);

		assert_int_equal(a, b);
		how.seed = 12;
		differ += a != pick(&s, x, &how);
	}
	assert_true(differ > 40);
	sampler_close(&s);
}

static void
test_greedy(void **state)
{
	static const unsigned char none[4], odd[4] = {0, 1, 0, 1};
	static const float x[4] = {3, -0.0f, 3, 0.0f};
	ingot_sampling how = {.size = sizeof how};
	Sampler s;
	uint32_t token;
	Error err;

	(void)state;
	assert_true(sampler_open(&s, 4));
	assert_int_equal(pick(&s, x, &how), 0);
	how.tokens = (const ingot_tokenizer *)(const void *)odd;
	assert_int_equal(pick(&s, x, &how), 1);
	how.tokens = (const ingot_tokenizer *)(const void *)none;
	for (int i = 0; i < 2; i++) {
		how.temp = (float)i;
		assert_int_equal(
		    sampler_pick(&s, x, &how, &token, &err), INGOT_BAD_ARG);
		assert_non_null(strstr(err.text, "no id"));
	}
	sampler_close(&s);
}

static void
assert_bad(ingot_sampling how, const char *part)
{
	static const float x[2] = {1, 1e30f};
	uint32_t token;
	Error err = {0};
	Sampler s;

	assert_true(sampler_open(&s, 2));
	assert_int_equal(
	    sampler_pick(&s, x, &how, &token, &err), INGOT_BAD_ARG);
	assert_non_null(strstr(err.text, part));
	sampler_close(&s);
}

static void
test_bad(void **state)
{
	const size_t n = sizeof(ingot_sampling);

	(void)state;
	assert_bad((ingot_sampling){.size = n, .temp = -1}, "temp");
	assert_bad((ingot_sampling){.size = n, .temp = NAN}, "temp");
	assert_bad((ingot_sampling){.size = n, .temp = INFINITY}, "temp");
	assert_bad((ingot_sampling){.size = n, .temp = 1e-30f}, "temp");
	assert_bad((ingot_sampling){.size = n, .temp = 1e-9f}, "overflow");
	assert_bad((ingot_sampling){.size = n, .top_p = 1.5f}, "top_p");
	assert_bad((ingot_sampling){.size = n, .top_p = NAN}, "top_p");
	assert_bad((ingot_sampling){.size = n, .min_p = -1}, "min_p");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_rule),
	    cmocka_unit_test(test_distribution),
	    cmocka_unit_test(test_cuts),
	    cmocka_unit_test(test_deterministic),
	    cmocka_unit_test(test_greedy),
	    cmocka_unit_test(test_bad),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
