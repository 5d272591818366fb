#include "sample.h"

#include <math.h>
#include <string.h>

#include "../numerics/arith.h"
#include "../numerics/philox.h"
#include "tokenizer.h"

enum { RADIX_BITS = 11, RADIX = 1 << RADIX_BITS };

/* Below it the inverse of a temperature could overflow ordinary logits. */
#define LEAST_TEMP 0x1p-64f

uint64_t
sampler_bytes(uint32_t vocab)
{
	return (uint64_t)vocab * 5 * sizeof(uint32_t);
}

bool
sampler_open(Sampler *s, uint32_t vocab)
{
	uint32_t *at;

	*s = (Sampler){.vocab = vocab};
	if (!memory_open(&s->memory, sampler_bytes(vocab)))
		return false;
	at = (uint32_t *)(void *)s->memory.data;
	for (int i = 0; i < 2; i++, at += vocab)
		s->key[i] = at;
	for (int i = 0; i < 2; i++, at += vocab)
		s->id[i] = at;
	s->p = (float *)(void *)at;
	return true;
}

void
sampler_close(Sampler *s)
{
	memory_close(&s->memory);
}

/* A number that is smaller where x is larger; -0 counts as +0. */
static uint32_t
rank_key(float x)
{
	uint32_t u = ig_bits(x + 0.0f);

	return u & IG_SIGN ? u : ~(u | IG_SIGN);
}

static float
key_value(uint32_t key)
{
	return ig_float(key & IG_SIGN ? key : ~key & ~IG_SIGN);
}

static bool
allowed(const Tokenizer *t, uint32_t id)
{
	return !t || tok_is_token(t, id);
}

static ingot_status
no_candidate(Error *err)
{
	return fail(err, INGOT_BAD_ARG,
	    "no id of the logits is a token of the tokenizer: do plan and "
	    "tokenizer belong together?");
}

static ingot_status
greedy(const Sampler *s, const float *x, const Tokenizer *t, uint32_t *token,
    Error *err)
{
	uint32_t best = s->vocab;

	for (uint32_t i = 0; i < s->vocab; i++)
		if ((best == s->vocab || x[i] > x[best]) && allowed(t, i))
			best = i;
	if (best == s->vocab)
		return no_candidate(err);
	*token = best;
	return INGOT_OK;
}

/* Candidates in the order of ids, scaled. */
static uint32_t
collect(Sampler *s, const float *x, float scale, const Tokenizer *t)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->vocab; i++) {
		if (!allowed(t, i))
			continue;
		s->key[0][n] = rank_key(x[i] * scale);
		s->id[0][n++] = i;
	}
	return n;
}

/* Drops candidates that cannot be among the first k, keeping the order. */
static uint32_t
preselect(Sampler *s, uint32_t n, uint32_t k)
{
	uint32_t counts[RADIX] = {0}, bin = 0, sum, kept = 0;
	const int shift = 32 - RADIX_BITS;

	for (uint32_t i = 0; i < n; i++)
		counts[s->key[0][i] >> shift]++;
	for (sum = counts[0]; sum < k; sum += counts[bin])
		bin++;
	for (uint32_t i = 0; i < n; i++) {
		if (s->key[0][i] >> shift > bin)
			continue;
		s->key[0][kept] = s->key[0][i];
		s->id[0][kept++] = s->id[0][i];
	}
	return kept;
}

/* One stable pass over the digit at shift, from array a to the other. */
static void
radix_pass(Sampler *s, uint32_t n, int shift, int a)
{
	uint32_t counts[RADIX] = {0}, sum = 0;

	for (uint32_t i = 0; i < n; i++)
		counts[s->key[a][i] >> shift & (RADIX - 1)]++;
	for (int i = 0; i < RADIX; i++) {
		uint32_t here = counts[i];

		counts[i] = sum;
		sum += here;
	}
	for (uint32_t i = 0; i < n; i++) {
		uint32_t digit = s->key[a][i] >> shift & (RADIX - 1);
		uint32_t to = counts[digit]++;

		s->key[!a][to] = s->key[a][i];
		s->id[!a][to] = s->id[a][i];
	}
}

/* Sorts by descending value, then ascending id; the result is in array 1. */
static void
sort(Sampler *s, uint32_t n)
{
	radix_pass(s, n, 0, 0);
	radix_pass(s, n, RADIX_BITS, 1);
	radix_pass(s, n, 2 * RADIX_BITS, 0);
}

static float
sum_of(const float *p, uint32_t n)
{
	float sum = 0.0f;

	for (uint32_t i = 0; i < n; i++)
		sum = sum + p[i];
	return sum;
}

static void
softmax(Sampler *s, uint32_t n)
{
	float top = key_value(s->key[1][0]), sum;

	for (uint32_t i = 0; i < n; i++)
		s->p[i] = ig_exp(key_value(s->key[1][i]) - top);
	sum = sum_of(s->p, n);
	for (uint32_t i = 0; i < n; i++)
		s->p[i] = ig_div(s->p[i], sum);
}

/* How many of the n ranks min-p and then top-p leave. */
static uint32_t
cut(const float *p, uint32_t n, const ingot_sampling *how)
{
	float least = how->min_p * p[0], sum = 0.0f;

	while (n > 1 && p[n - 1] < least)
		n--;
	if (how->top_p == 0.0f || how->top_p >= 1.0f)
		return n;
	for (uint32_t i = 0; i < n; i++) {
		sum = sum + p[i];
		if (sum >= how->top_p)
			return i + 1;
	}
	return n;
}

/* The first rank whose running sum exceeds u; the last one when rounding lets
 * none. */
static uint32_t
draw(const float *p, uint32_t n, float u)
{
	float total = sum_of(p, n), sum = 0.0f;

	for (uint32_t i = 0; i < n; i++) {
		sum = sum + ig_div(p[i], total);
		if (sum > u)
			return i;
	}
	return n - 1;
}

static ingot_status
check(const ingot_sampling *how, Error *err)
{
	if (!isfinite(how->temp) || how->temp < 0.0f ||
	    (how->temp > 0.0f && how->temp < LEAST_TEMP))
		return fail(err, INGOT_BAD_ARG,
		    "temp is %g: it must be 0 or from 2^-64 up", how->temp);
	if (!(how->top_p >= 0.0f && how->top_p <= 1.0f))
		return fail(err, INGOT_BAD_ARG,
		    "top_p is %g: it must be between 0 and 1", how->top_p);
	if (!(how->min_p >= 0.0f && how->min_p <= 1.0f))
		return fail(err, INGOT_BAD_ARG,
		    "min_p is %g: it must be between 0 and 1", how->min_p);
	return INGOT_OK;
}

static ingot_status
sample(Sampler *s, const float *x, const ingot_sampling *how,
    const Tokenizer *t, uint32_t *token, Error *err)
{
	float u = philox_uniform(how->seed, how->position);
	uint32_t n = collect(s, x, ig_div(1.0f, how->temp), t);
	uint32_t k = how->top_k;

	if (n == 0)
		return no_candidate(err);
	if (k > 0 && k < n)
		n = preselect(s, n, k);
	sort(s, n);
	if (k > 0 && k < n)
		n = k;
	if (!isfinite(key_value(s->key[1][0])))
		return fail(err, INGOT_BAD_ARG,
		    "temp is %g: the logits overflow", how->temp);
	softmax(s, n);
	n = cut(s->p, n, how);
	*token = s->id[1][draw(s->p, n, u)];
	return INGOT_OK;
}

ingot_status
sampler_pick(Sampler *s, const float *logits, const ingot_sampling *how,
    uint32_t *token, Error *err)
{
	const Tokenizer *t = how->tokens ? tokenizer_of(how->tokens) : NULL;
	ingot_status status = check(how, err);

	if (status)
		return status;
	if (how->temp == 0.0f)
		return greedy(s, logits, t, token, err);
	return sample(s, logits, how, t, token, err);
}
