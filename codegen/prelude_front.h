/* First lines of the text in front of emitted kernels: what numerics/arith.h
 * and the prelude expect when they are embedded. Never included. */
#define IG_EMBEDDED 1
#include <stdint.h>
