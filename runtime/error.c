#include "error.h"

#include <stdarg.h>
#include <stdio.h>

ingot_status
fail(Error *e, ingot_status status, const char *fmt, ...)
{
	va_list args;

	if (!e)
		return status;
	e->status = status;
	va_start(args, fmt);
	vsnprintf(e->text, sizeof e->text, fmt, args);
	va_end(args);
	return status;
}

const char *
ingot_status_text(ingot_status s)
{
	static const char *const text[] = {
#define STATUS(NAME, text) text,
#include "status.def"
#undef STATUS
	};

	return s < INGOT_STATUS_COUNT ? text[s] : "unknown status";
}
