/* A plan bound to a checkpoint. */
#ifndef RUNTIME_MODEL_H
#define RUNTIME_MODEL_H

#include "backend.h"

struct ingot_model {
	const Plan *plan;
	Checkpoint *checkpoint; /* weights may lie in it */
	Weights weights;
	BackendFactory factory;
	CpuTarget cpu; /* device NULL when a factory came from outside */
};

#endif
