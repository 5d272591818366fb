/* Speed of the packed tile kernels: one thread, a 4096 x 4096 matrix of each
 * type, 1 and 4 rows of activations, beside a plain read of as many bytes.
 *
 *     bench_tile [TYPE ...]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../codegen/prelude_cpu.h"
#include "../runtime/pack.h"

enum { N = 4096, TENTHS = 5 /* of a second for each figure */ };

typedef struct Input {
	const uint8_t *w;
	uint64_t bytes;
	const void *const *x; /* rows of activations */
} Input;

typedef float Kernel(const Input *in);

static float
read_all(const Input *in)
{
	__m256i sum[4] = {{0}};

	for (uint64_t i = 0; i + 128 <= in->bytes; i += 128)
		for (int j = 0; j < 4; j++)
			sum[j] = _mm256_add_epi32(
			    sum[j], _mm256_loadu_si256(
					(const __m256i *)(in->w + i) + j));
	sum[0] = _mm256_add_epi32(
	    _mm256_add_epi32(sum[0], sum[1]), _mm256_add_epi32(sum[2], sum[3]));
	return (float)_mm256_extract_epi32(sum[0], 0);
}

#define CASE(name, X, nt)                                                      \
	static float gemv_##name##_##nt(const Input *in)                       \
	{                                                                      \
		uint64_t tile = in->bytes / (N / 8);                           \
		f32x8 out[nt], sum = {0};                                      \
                                                                               \
		for (int i = 0; i < N / 8; i++) {                              \
			ig_tile_##name(in->w + (uint64_t)i * tile,             \
			    (const X *const *)in->x, nt, N, out);              \
			sum = _mm256_add_ps(sum, out[nt - 1]);                 \
		}                                                              \
		return sum[0];                                                 \
	}
/* clang-format off */
#define QUANT(T)                                                               \
	T(Q4_K, q4_k)                                                          \
	T(Q6_K, q6_k)                                                          \
	T(Q8_0, q8_0) T(Q4_0, q4_0) T(Q4_1, q4_1) T(Q5_0, q5_0) T(Q5_1, q5_1)  \
	    T(Q2_K, q2_k) T(Q3_K, q3_k) T(Q5_K, q5_k) T(IQ4_NL, iq4_nl)        \
		T(IQ4_XS, iq4_xs)
/* clang-format on */
#define FLOAT(T) T(BF16, bf16) T(F16, f16) T(F32, f32)

#define T(NAME, name) CASE(name, Q8A, 1) CASE(name, Q8A, 4)
QUANT(T)
#undef T
#define T(NAME, name) CASE(name, float, 1) CASE(name, float, 4)
FLOAT(T)
#undef T

static const struct Case {
	DType type;
	Kernel *one, *four;
} cases[] = {
#define T(NAME, name) {DT_##NAME, gemv_##name##_1, gemv_##name##_4},
    QUANT(T) FLOAT(T)
#undef T
};

/* Seconds of this thread, so that others on the machine count less. */
static double
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Seconds of the fastest call. */
static double
best(Kernel *kernel, const Input *in)
{
	static volatile float sink;
	double least = 1e9, end = now() + 0.1 * TENTHS;

	while (now() < end) {
		double start = now(), t;

		sink = kernel(in);
		t = now() - start;
		least = t < least ? t : least;
	}
	(void)sink;
	return least;
}

/* Packs a matrix whose rows are all the same row of small numbers. */
static uint8_t *
packed_matrix(DType t, uint64_t bytes)
{
	uint64_t row_bytes = dtype_bytes(t, N), tile = pack_tile_bytes(t, N);
	uint8_t *row = malloc(row_bytes);
	uint8_t *w = aligned_alloc(64, (bytes + 63) / 64 * 64);
	const void *src[8];
	double start;

	if (!row || !w)
		exit(1);
	memset(w, 0, bytes);
	for (uint64_t i = 0; i < row_bytes; i++)
		row[i] = (uint8_t)(i * 37 % 31 + 32); /* no denormal floats */
	for (int r = 0; r < 8; r++)
		src[r] = row;
	start = now();
	for (uint64_t i = 0; i < N / 8; i++)
		pack_tile(t, N, src, 8, w + i * tile);
	printf("%-7s %5.2f", dtypes[t].name, N * N / (now() - start) * 1e-9);
	free(row);
	return w;
}

static void
bench(const struct Case *c, const void *const *x)
{
	Input in = {0};
	double weights = (double)N * N, t1, t4, tr;

	in.bytes = pack_tile_bytes(c->type, N) * (N / 8);
	in.w = packed_matrix(c->type, in.bytes);
	in.x = x;
	tr = best(read_all, &in);
	t1 = best(c->one, &in);
	t4 = best(c->four, &in);
	printf(" %7.1f %8.1f %8.1f %6.2f %9.1f\n", 1e-9 * in.bytes / tr,
	    1e-9 * in.bytes / t1, 1e-9 * weights / t1, t1 / tr,
	    4e-9 * weights / t4);
	free((void *)in.w);
}

int
main(int argc, char **argv)
{
	static float x[4 * N];
	static Q8A a[4 * N / 32];

	const void *floats[4], *codes[4];

	for (int i = 0; i < 4 * N; i++)
		x[i] = (float)(i % 101 - 50);
	ig_quantise(x, 4 * N, a);
	for (int j = 0; j < 4; j++) {
		floats[j] = x + j * N;
		codes[j] = a + j * (N / 32);
	}
	printf("type     pack    read     gemv     gemv  times   4 rows\n");
	printf("         Gw/s    GB/s     GB/s     Gw/s   read   Gmac/s\n");
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		int wanted = argc < 2;

		for (int k = 1; k < argc; k++)
			if (strcmp(argv[k], dtypes[cases[i].type].name) == 0)
				wanted = 1;
		if (wanted)
			bench(&cases[i], dtypes[cases[i].type].kind == DK_FLOAT
					     ? floats
					     : codes);
	}
	return 0;
}
