/* Regular expressions of tokenizer files, written for Oniguruma, in PCRE2's
 * syntax. */
#ifndef RUNTIME_PATTERN_H
#define RUNTIME_PATTERN_H

#include <stddef.h>

#include "error.h"

/* Translates pattern so that PCRE2 (UTF, UCP, newline LF) matches what the
 * tokenizer library matches. Only constructs known to mean the same in both
 * are let through; any other is INGOT_UNSUPPORTED and named. The two differ in
 * \s, which is White_Space there and has U+180E besides in PCRE2. *out is
 * allocated with malloc and terminated. */
ingot_status pattern_translate(const char *pattern, size_t length, char **out,
    size_t *out_length, Error *err);

#endif
