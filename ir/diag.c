#include "diag.h"

#include <stdarg.h>
#include <stdio.h>

noreturn void
err(Diag *d, int exit_code, const Node *at, const char *fmt, ...)
{
	size_t used = 0;
	va_list args;

	d->text[0] = '\0';
	if (at != NULL && at->file != NULL)
		snprintf(d->text, sizeof d->text, "%s:%u: ", at->file,
		    (unsigned)at->line);
	while (d->text[used] != '\0')
		used++;
	va_start(args, fmt);
	vsnprintf(d->text + used, sizeof d->text - used, fmt, args);
	va_end(args);
	d->exit_code = exit_code;
	longjmp(d->jump, 1);
}
