#include <string.h>

#include "lower.h"

const Target targets[] = {
#define TARGET(NAME, name, isa, lanes, tile, fuse) {name, isa, lanes, tile},
#include "targets.def"
#undef TARGET
};

const size_t target_count = sizeof targets / sizeof targets[0];

const char *const family_names[FAM_COUNT] = {
#define FAMILY(NAME, name) name,
#include "families.def"
#undef FAMILY
};

const char *const why_text[WHY_COUNT] = {
    "",
#define WHY(NAME, text) text,
#include "why.def"
#undef WHY
};

const Target *
target_by_name(const char *name)
{
	for (size_t i = 0; i < target_count; i++)
		if (strcmp(targets[i].name, name) == 0)
			return &targets[i];
	return NULL;
}
