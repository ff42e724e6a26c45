/* The texts of a recording: names and statements, one behind the other, each behind its length (a
 * uint32_t), aligned to that. A text is its offset; 0 is the empty one.
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

/* The text with this content: of names, which are equal in many rows. */
qp_text qp_text_of(const char *bytes, size_t length);

/* The same of a str (borrowed); lone surrogates, which UTF-8 cannot encode, become escapes. Raises
 * nothing. */
qp_text qp_text_of_str(PyObject *str);

/* The text of a str (borrowed), written over `old` if it is no longer than that (QP_TEXT_FULL if
 * there is no old one); otherwise added, if it has no more than `most` bytes: then `*added` is set
 * to its bytes. */
qp_text qp_text_over(qp_text old, PyObject *str, uint32_t most, uint32_t *added);

/* A text's bytes, UTF-8. */
const char *qp_text_bytes(qp_text text, uint32_t *length);
