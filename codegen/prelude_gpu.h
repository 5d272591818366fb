/* Front of every kernel emitted for a GPU: what lies between HIP as kernels are
 * written in it and the compilers that read them. numerics/arith.h follows.
 *
 * Four compilers read this text: clang without headers for AMD and for NVIDIA,
 * hipRTC and NVRTC. Kernels use __global__, threadIdx, blockIdx, __syncthreads,
 * __launch_bounds__ and the functions below; compiler builtins and inline
 * assembly stay in this file. A wave has 32 lanes on every target.
 */
#define IG_EMBEDDED 1

#if !defined(__HIPCC_RTC__) && !defined(__CUDACC_RTC__)
#define IG_BARE 1 /* clang, which defines nothing of HIP or CUDA */
#endif

#ifdef IG_BARE
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#ifdef __AMDGCN__
/* clang reserves registers for 1024 threads after launch_bounds. */
#define __launch_bounds__(n) __attribute__((amdgpu_flat_work_group_size(1, n)))
#else
#define __launch_bounds__(n) __attribute__((launch_bounds(n)))
#endif
#endif

typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;

#define IG_FN static __device__ inline

/* Memory of the workgroup: count elements of type under a name. Inside a
 * kernel or a function of this file, in its outermost block. */
#define IG_LDS(type, name, count) __shared__ type name[count]

#ifdef __CUDACC_RTC__
#define ig_bits(x) __float_as_uint(x)
#define ig_float(u) __uint_as_float(u)
#define ig_fma(a, b, c) __fmaf_rn(a, b, c)
#define IG_ALIASED
#else
#define IG_ALIASED __attribute__((may_alias))
#endif

/* ---- where a thread stands ---- */

#ifdef IG_BARE
struct IgIndex {
	uint32_t x, y, z;
};

IG_FN IgIndex
ig_thread(void)
{
#ifdef __AMDGCN__
	return {__builtin_amdgcn_workitem_id_x(),
	    __builtin_amdgcn_workitem_id_y(), __builtin_amdgcn_workitem_id_z()};
#else
	return {(uint32_t)__nvvm_read_ptx_sreg_tid_x(),
	    (uint32_t)__nvvm_read_ptx_sreg_tid_y(),
	    (uint32_t)__nvvm_read_ptx_sreg_tid_z()};
#endif
}

IG_FN IgIndex
ig_block(void)
{
#ifdef __AMDGCN__
	return {__builtin_amdgcn_workgroup_id_x(),
	    __builtin_amdgcn_workgroup_id_y(),
	    __builtin_amdgcn_workgroup_id_z()};
#else
	return {(uint32_t)__nvvm_read_ptx_sreg_ctaid_x(),
	    (uint32_t)__nvvm_read_ptx_sreg_ctaid_y(),
	    (uint32_t)__nvvm_read_ptx_sreg_ctaid_z()};
#endif
}

#define threadIdx (ig_thread())
#define blockIdx (ig_block())

#ifdef __AMDGCN__
/* All threads of the workgroup arrive; what each wrote to LDS or to memory
 * before is seen by the others after. clang knows the name on NVIDIA. */
IG_FN void
__syncthreads(void)
{
	__builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
	__builtin_amdgcn_s_barrier();
	__builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
#endif
#endif

/* ---- loads ---- */

struct __attribute__((aligned(16))) IG_ALIASED Ig16 {
	uint32_t x, y, z, w;
};

/* The 16 bytes at p, which is a multiple of 16, in one load. */
IG_FN Ig16
ig_load16(const void *p)
{
	return *(const Ig16 *)p;
}

/* ---- lanes of a wave ---- */

/* The value of lane (own lane ^ mask), mask < 32. All lanes of the wave take
 * part. On AMD through LDS hardware: clang 19 moves permlanex16 behind a
 * branch that follows it, where lanes are missing. */
IG_FN uint32_t
ig_shuffle_xor(uint32_t value, uint32_t mask)
{
#ifdef __AMDGCN__
	uint32_t lane = __builtin_amdgcn_mbcnt_lo(~0u, 0u);

	return (uint32_t)__builtin_amdgcn_ds_bpermute(
	    (int)((lane ^ mask) << 2), (int)value);
#else
	uint32_t out;

	asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 31, -1;"
		     : "=r"(out)
		     : "r"(value), "r"(mask));
	return out;
#endif
}

/* ---- integer dot product ---- */

/* c plus the dot product of four signed bytes each of a and b; exact, wraps. */
IG_FN int32_t
ig_dot4(int32_t a, int32_t b, int32_t c)
{
#if !defined(__AMDGCN__)
	int32_t out;

	asm("dp4a.s32.s32 %0, %1, %2, %3;"
	    : "=r"(out)
	    : "r"(a), "r"(b), "r"(c));
	return out;
#elif defined(__GFX11__) || defined(__GFX12__)
	return __builtin_amdgcn_sudot4(true, a, true, b, c, false);
#elif defined(__gfx1030__)
	return __builtin_amdgcn_sdot4(a, b, c, false);
#else
	for (int i = 0; i < 32; i += 8)
		c += (int32_t)(int8_t)(a >> i) * (int32_t)(int8_t)(b >> i);
	return c;
#endif
}

/* ---- between workgroups ---- */

/* What this thread wrote is seen by the device before its next release. */
IG_FN void
ig_release(void)
{
#ifdef __AMDGCN__
	__builtin_amdgcn_fence(__ATOMIC_RELEASE, "agent");
#else
	asm volatile("fence.acq_rel.gpu;" ::: "memory");
#endif
}

/* What was released before is seen by this thread from now on. */
IG_FN void
ig_acquire(void)
{
#ifdef __AMDGCN__
	__builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "agent");
#else
	asm volatile("fence.acq_rel.gpu;" ::: "memory");
#endif
}

/* Adds 1 to the counter, or makes it 0 where it is last; the value before. */
IG_FN uint32_t
ig_count(uint32_t *counter, uint32_t last)
{
#ifdef __AMDGCN__
	return __builtin_amdgcn_atomic_inc32(
	    counter, last, __ATOMIC_ACQ_REL, "agent");
#else
	uint32_t before;

	asm volatile("atom.acq_rel.gpu.inc.u32 %0, [%1], %2;"
		     : "=r"(before)
		     : "l"(counter), "r"(last)
		     : "memory");
	return before;
#endif
}

/* Whether this workgroup is the last of n to come here, n >= 1. All its
 * threads call; those of the last then see what every thread of the others
 * wrote before its call. The counter is 0 before the first and again after the
 * last, so a launch can be repeated as it is.
 *
 * Every thread releases for itself before the barrier: a release by the thread
 * that counts does not wait on gfx12 for the stores of the others. */
IG_FN bool
ig_last_arriver(uint32_t *counter, uint32_t n)
{
	IG_LDS(uint32_t, before, 1);

	ig_release();
	__syncthreads();
	if (threadIdx.x == 0)
		before[0] = ig_count(counter, n - 1);
	__syncthreads();
	ig_acquire();
	return before[0] == n - 1;
}
