/* UTF-8: validation. The streaming half (utf8_push) is in tokenizer.h. */
#ifndef RUNTIME_UTF8_H
#define RUNTIME_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Length of the longest well-formed prefix of text: length when all of it is
 * UTF-8, else the offset of the first ill-formed sequence. */
size_t utf8_valid(const char *text, size_t length);

/* The character at text, which is well-formed; *bytes is its length. */
uint32_t utf8_char(const char *text, size_t *bytes);

/* Whether c has the Unicode property White_Space. */
bool utf8_is_space(uint32_t c);

#endif
