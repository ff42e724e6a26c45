/* The texts of a recording: names and statements. Each text is preceded by its length (a uint32_t)
 * and aligned to four bytes. A qp_text is the offset of a text; 0 is the empty text. */
#pragma once

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "memory/tables.h"

enum { QP_TEXT_NONE = 0, QP_TEXT_FULL = UINT32_MAX };

/* Adds the empty text. Returns false if out of memory. */
bool qp_texts_start(void);
void qp_texts_stop(void);

/* Adds a text, even if an equal text exists. Returns QP_TEXT_FULL if the table is full. */
qp_text qp_text_add(const char *bytes, size_t length);

/* Returns the text with this content, and adds it if it is new. Used for names, because many rows
 * have the same name. */
qp_text qp_text_find_or_add(const char *bytes, size_t length);

/* Returns the text with the content of a str (borrowed). Lone surrogates, which UTF-8 cannot
 * encode, become escapes. Raises nothing. */
qp_text qp_text_from_str(PyObject *str);

/* Stores a str (borrowed) as a text. Overwrites the text `old` (QP_TEXT_FULL: none) if the str fits
 * there. Otherwise adds a new text, if the str has at most `most` bytes, and sets `*added` to the
 * number of bytes. Returns the text, or QP_TEXT_FULL. */
qp_text qp_text_replace(qp_text old, PyObject *str, uint32_t most, uint32_t *added);

/* Returns the bytes of a text (UTF-8, valid as long as the text), and sets `*length`. */
const char *qp_text_bytes(qp_text text, uint32_t *length);
