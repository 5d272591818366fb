#include "perplexity.h"

#include <math.h>

void
perplexity_add(
    Perplexity *p, const float *logits, uint32_t vocab, uint32_t token)
{
	double most = (double)logits[0], sum = 0, loss;
	uint32_t i;

	for (i = 1; i < vocab; i++)
		if ((double)logits[i] > most)
			most = (double)logits[i];
	for (i = 0; i < vocab; i++)
		sum += exp((double)logits[i] - most);
	loss = log(sum) - ((double)logits[token] - most);
	p->count++;
	p->sum += loss;
	p->sum_sq += loss * loss;
}

double
perplexity_value(const Perplexity *p)
{
	return p->count > 0 ? exp(p->sum / (double)p->count) : NAN;
}

double
perplexity_error(const Perplexity *p)
{
	double n = (double)p->count, mean = p->sum / n;
	double variance = p->sum_sq / n - mean * mean;

	if (p->count < 2 || !(variance > 0))
		return 0;
	return sqrt(variance / (n - 1)) * exp(mean);
}
