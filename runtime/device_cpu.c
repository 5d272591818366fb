#define _GNU_SOURCE /* memfd_create, sched_getaffinity */
#include "device.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthreadpool.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fp.h"
#include "quote.h"

enum { MAX_THREADS = 1024 };

typedef void (*CpuKernel)(void *const *arg, const StepArgs *s, uint32_t wg);

struct CpuDevice {
	/* Open as long as the library is: dlopen tells libraries apart by
	 * their path, and this number is in it. */
	int fd;
	void *library;
	CpuKernel *kernels;
	pthreadpool_t pool; /* NULL: the calling thread alone */
};

/* What one launch hands to every workgroup. */
typedef struct Launch {
	CpuKernel kernel;
	void *const *arg;
	const StepArgs *step;
} Launch;

static ingot_status
check_processor(Error *err)
{
	__builtin_cpu_init();
	if (!__builtin_cpu_supports("x86-64-v3"))
		return fail(err, INGOT_NO_DEVICE,
		    "this processor is older than x86-64-v3 (AVX2, FMA, BMI2, "
		    "F16C), which the code of cpu plans needs");
	return INGOT_OK;
}

static bool
write_all(int fd, const char *p, uint64_t n)
{
	while (n > 0) {
		ssize_t k = write(fd, p, (size_t)n);

		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			return false;
		p += k;
		n -= (uint64_t)k;
	}
	return true;
}

/* Loads a shared object from memory, by a file that has no name. */
static ingot_status
load(CpuDevice *d, const char *bytes, uint64_t n, Error *err)
{
	char path[64];
	const char *why;

	d->fd = memfd_create("ingot-kernels", MFD_CLOEXEC);
	if (d->fd < 0 || !write_all(d->fd, bytes, n)) {
		why = strerror(errno);
		return fail(err, INGOT_IO,
		    "the system refuses a file in memory for the plan's "
		    "code: %s",
		    why);
	}
	snprintf(path, sizeof path, "/proc/self/fd/%d", d->fd);
	d->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!d->library) {
		why = dlerror();
		return fail(err, INGOT_BAD_FILE,
		    "the plan's code for cpu cannot be loaded (is /proc "
		    "mounted, may memory be executed?): %s",
		    why);
	}
	return INGOT_OK;
}

static ingot_status
find_kernels(CpuDevice *d, const Plan *plan, const PlanTarget *t, Error *err)
{
	Quote q;

	d->kernels = calloc((size_t)t->n_kernels + 1, sizeof *d->kernels);
	if (!d->kernels)
		return fail(err, INGOT_NO_MEMORY, "no memory for %u kernels",
		    t->n_kernels);
	for (uint32_t i = 0; i < t->n_kernels; i++) {
		const PlanKernel *k = &plan->kernels[t->first_kernel + i];
		const char *name = plan_string(plan, k->name);
		void *symbol = dlsym(d->library, name);

		if (!symbol)
			return fail(err, INGOT_BAD_FILE,
			    "the plan's code for cpu lacks kernel %s",
			    quote(&q, name, strlen(name)));
		/* ISO C has no cast from object to function pointers. */
		memcpy(&d->kernels[i], &symbol, sizeof symbol);
	}
	return INGOT_OK;
}

static uint32_t
processors(void)
{
	cpu_set_t set;
	long n;

	if (sched_getaffinity(0, sizeof set, &set) == 0)
		return (uint32_t)CPU_COUNT(&set);
	n = sysconf(_SC_NPROCESSORS_ONLN);
	return n > 0 ? (uint32_t)n : 1;
}

static ingot_status
start_threads(CpuDevice *d, uint32_t threads, Error *err)
{
	if (threads > MAX_THREADS)
		return fail(err, INGOT_BAD_ARG,
		    "%u threads are asked for; at most %d are possible",
		    threads, MAX_THREADS);
	if (threads == 0)
		threads = processors();
	if (threads == 1)
		return INGOT_OK;
	d->pool = pthreadpool_create(threads);
	if (!d->pool)
		return fail(err, INGOT_NO_MEMORY,
		    "the system refuses %u threads", threads);
	return INGOT_OK;
}

static ingot_status
fill(CpuDevice *d, const Plan *plan, uint32_t target, uint32_t threads,
    Error *err)
{
	const PlanTarget *t = &plan->targets[target];
	ingot_status status = check_processor(err);

	if (!status)
		status =
		    load(d, plan->objects + t->object, t->object_bytes, err);
	if (!status)
		status = find_kernels(d, plan, t, err);
	if (!status)
		status = start_threads(d, threads, err);
	return status;
}

ingot_status
cpu_open(const Plan *plan, uint32_t target, uint32_t threads, CpuDevice **out,
    Error *err)
{
	CpuDevice *d = calloc(1, sizeof *d);
	ingot_status status;

	*out = NULL;
	if (!d)
		return fail(err, INGOT_NO_MEMORY, "no memory for the device");
	d->fd = -1;
	status = fill(d, plan, target, threads, err);
	if (status)
		cpu_close(d);
	else
		*out = d;
	return status;
}

void
cpu_close(CpuDevice *d)
{
	if (!d)
		return;
	if (d->pool)
		pthreadpool_destroy(d->pool);
	if (d->library)
		dlclose(d->library);
	if (d->fd >= 0)
		close(d->fd);
	free(d->kernels);
	free(d);
}

static void
run_workgroup(void *context, size_t wg)
{
	const Launch *l = context;
	unsigned old = fp_enter();

	l->kernel(l->arg, l->step, (uint32_t)wg);
	fp_leave(old);
}

void
cpu_run(CpuDevice *d, uint32_t kernel, void *const *arg, const StepArgs *step,
    uint32_t n)
{
	Launch l = {d->kernels[kernel], arg, step};

	if (n == 1) /* nobody else need wake up */
		run_workgroup(&l, 0);
	else
		/* Without the flag, workers wait by spinning; on a machine
		 * that others use too, launches then took 10 to 70 times as
		 * long. */
		pthreadpool_parallelize_1d(d->pool, run_workgroup, &l, n,
		    PTHREADPOOL_FLAG_YIELD_WORKERS);
}
