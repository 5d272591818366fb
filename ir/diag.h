/* Errors of the compiler's side. err() reports a user's mistake: one sentence,
 * prefixed with the node's model line when there is one, and control returns
 * to where the Diag was set up. Arenas make that leak free. */
#ifndef IR_DIAG_H
#define IR_DIAG_H

#include <setjmp.h>
#include <stdnoreturn.h>

#include "ir.h"

typedef struct Diag {
	jmp_buf jump;
	int exit_code; /* 1 user's mistake, 3 op without a kernel, 70 ours */
	char text[1024];
} Diag;

#if defined(__GNUC__)
#define DIAG_PRINTF __attribute__((format(printf, 4, 5)))
#else
#define DIAG_PRINTF
#endif

/* at may be NULL. */
noreturn DIAG_PRINTF void err(
    Diag *d, int exit_code, const Node *at, const char *fmt, ...);

#endif
