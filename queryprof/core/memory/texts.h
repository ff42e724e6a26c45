/* The texts of a recording: names and statements. Each text follows its length (a uint32_t),
 * aligned to four bytes. A qp_text is the offset of a text; 0 is the empty text.
 */
#pragma once

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "memory/tables.h"

enum { QP_TEXT_NONE = 0, QP_TEXT_FULL = UINT32_MAX };

/* Adds the empty text. Returns false if out of memory. */
bool qp_texts_start(void);
void qp_texts_stop(void);

/* Adds a text, even if an equal one exists; QP_TEXT_FULL if the table is full. */
qp_text qp_text_add(const char *bytes, size_t length);

/* Returns the text with this content, and adds it if it is new. Used for names, because many rows
 * have the same name. */
qp_text qp_text_of(const char *bytes, size_t length);

/* Returns the text with the content of a str (borrowed). Lone surrogates, which UTF-8 cannot
 * encode, become escapes. Raises nothing. */
qp_text qp_text_of_str(PyObject *str);

/* Stores a str (borrowed) as a text. It overwrites the text `old` (QP_TEXT_FULL: none) if it fits
 * there. Otherwise it is added, if it has at most `most` bytes, and `*added` is set to its number
 * of bytes. */
qp_text qp_text_over(qp_text old, PyObject *str, uint32_t most, uint32_t *added);

/* A text's bytes, UTF-8. */
const char *qp_text_bytes(qp_text text, uint32_t *length);
