/* Unicode normalisation form C of whole texts, in linear time. */
#ifndef RUNTIME_NFC_H
#define RUNTIME_NFC_H

#include <stdbool.h>
#include <stddef.h>

#include "error.h"

/* Whether text, which is well-formed, is surely in form C already: it has no
 * character from U+0300 on. */
bool nfc_trivial(const char *text, size_t length);

/* Normalises well-formed text. *out is allocated with malloc, not terminated,
 * and is the caller's. */
ingot_status nfc_text(const char *text, size_t length, char **out,
    size_t *out_length, Error *err);

#endif
