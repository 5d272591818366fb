/* The CPU as a device: the code of one target of a plan, loaded, and the
 * threads that run it. */
#ifndef RUNTIME_DEVICE_H
#define RUNTIME_DEVICE_H

#include "plan_open.h"

typedef struct CpuDevice CpuDevice;

/* Loads target's object and finds its kernels. threads 0: one for each
 * processor that this process may use. INGOT_NO_DEVICE when the processor is
 * older than the code, INGOT_BAD_FILE when the object is none. */
ingot_status cpu_open(const Plan *plan, uint32_t target, uint32_t threads,
    CpuDevice **out, Error *err);
void cpu_close(CpuDevice *d);

/* Runs workgroups 0 .. n-1 of a kernel of the target, in any order, and
 * returns when all are done. Steps of several sessions take turns. */
void cpu_run(CpuDevice *d, uint32_t kernel, void *const *arg,
    const StepArgs *step, uint32_t n);

#endif
