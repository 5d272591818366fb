/* Every function of numerics/arith.h and codegen/prelude_gpu.h, in kernels that
 * show what compilers make of them. Follows both texts. */

enum { GROUP = 256, WAVE = 32, WAVES = GROUP / WAVE };

/* Function f of arith.h applied to n pairs: results at out[f*n]. */
extern "C" __global__ void __launch_bounds__(GROUP)
selftest_arith(uint32_t *out, const float *first, const float *second,
    uint32_t n)
{
	uint32_t i = blockIdx.x * GROUP + threadIdx.x, f = 0;
	float a, b;

	if (i >= n)
		return;
	a = first[i];
	b = second[i];
#define PUT(value) out[f++ * n + i] = (value)
#define PUTF(value) PUT(ig_bits(value))
	PUTF(ig_fma(a, b, 1.0f));
	PUTF(a * b + 1.0f);
	PUTF(ig_max(a, b));
	PUT((uint32_t)ig_rne_clamp(a));
	PUTF(ig_from_bf16((uint16_t)ig_bits(a)));
	PUT(ig_to_bf16(a));
	PUTF(ig_from_f16((uint16_t)ig_bits(a)));
	PUT(ig_normal(ig_bits(a) & ~IG_SIGN));
	PUT((uint32_t)ig_exponent(
	    ig_bits(a) & ~IG_SIGN, ig_normal(ig_bits(a) & ~IG_SIGN)));
	PUTF(ig_reciprocal(ig_float((ig_bits(a) & 0x007FFFFFu) | 0x3F800000u)));
	PUT(ig_shift_rne((ig_bits(a) & 0x007FFFFFu) | 0x00800000u,
	    1u + ig_bits(b) % 25u, b));
	PUTF(ig_div(a, b));
	PUTF(ig_root_arg(ig_bits(a), (int32_t)ig_bits(b)));
	PUTF(ig_root(ig_root_arg(ig_bits(a), (int32_t)ig_bits(b))));
	PUTF(ig_rsqrt(a));
	PUTF(ig_sqrt(a));
	PUTF(ig_exp_split(ig_float((ig_bits(a) & 0x807FFFFFu) | 0x42000000u)));
	PUTF(ig_exp_rest(0.25f, IG_ROUND));
	PUTF(ig_exp_scale(1.5f, IG_ROUND + (float)ig_rne_clamp(a)));
	PUTF(ig_exp(a));
	PUTF(ig_log1p(a));
	PUTF(ig_gate(1.0f, a));
	PUTF(ig_sigmoid(a));
	PUTF(ig_silu(a));
	PUTF(ig_softplus(a));
	PUTF(ig_tanh(a));
	PUTF(ig_gelu(a));
}

/* out[i]: dot product of the 16 bytes at a[4*i] and b[4*i]. */
extern "C" __global__ void __launch_bounds__(GROUP)
selftest_dot4(int32_t *out, const int32_t *a, const int32_t *b, uint32_t n)
{
	uint32_t i = blockIdx.x * GROUP + threadIdx.x;
	Ig16 x, y;
	int32_t sum;

	if (i >= n)
		return;
	x = ig_load16(a + 4 * i);
	y = ig_load16(b + 4 * i);
	sum = ig_dot4((int32_t)x.x, (int32_t)y.x, 0);
	sum = ig_dot4((int32_t)x.y, (int32_t)y.y, sum);
	sum = ig_dot4((int32_t)x.z, (int32_t)y.z, sum);
	out[i] = ig_dot4((int32_t)x.w, (int32_t)y.w, sum);
}

/* The sum over a wave as a tree of neighbours, in every lane. */
IG_FN float
wave_sum(float v)
{
	for (uint32_t mask = 1; mask < WAVE; mask *= 2)
		v = v + ig_float(ig_shuffle_xor(ig_bits(v), mask));
	return v;
}

/* out[w]: sum of the 32 values of wave w. */
extern "C" __global__ void __launch_bounds__(GROUP)
selftest_shuffle(float *out, const float *in)
{
	uint32_t i = blockIdx.x * GROUP + threadIdx.x;
	float sum = wave_sum(in[i]);

	if (i % WAVE == 0)
		out[i / WAVE] = sum;
}

/* sums[g]: sum of the 256 values of workgroup g; *out: their sum, in order, by
 * the last of the n workgroups. */
extern "C" __global__ void __launch_bounds__(GROUP)
selftest_last(float *out, float *sums, const float *in, uint32_t *counter,
    uint32_t n)
{
	IG_LDS(float, waves, WAVES);
	float sum = wave_sum(in[blockIdx.x * GROUP + threadIdx.x]);

	if (threadIdx.x % WAVE == 0)
		waves[threadIdx.x / WAVE] = sum;
	__syncthreads();
	if (threadIdx.x == 0) {
		sum = 0.0f;
		for (uint32_t i = 0; i < WAVES; i++)
			sum = sum + waves[i];
		sums[blockIdx.x] = sum;
	}
	if (!ig_last_arriver(counter, n) || threadIdx.x != 0)
		return;
	sum = 0.0f;
	for (uint32_t i = 0; i < n; i++)
		sum = sum + sums[i];
	*out = sum;
}
