/* Maps code objects to their owner, and instructions to lines.
 *
 * A line is identified by its function, file and number, and stays in its table for the whole
 * recording. The code objects are in a cache that may be emptied at any time. The cache keeps its
 * objects alive, so that no address is reused.
 */
#pragma once

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "memory/tables.h"
#include "stacks/code_owners.h"

enum { QP_LINE_OTHER = 0 /* all lines that were found after the table was full */ };

bool qp_code_lines_start(void);
void qp_code_lines_stop(void);

/* Sets `*kind` to the owner of a code object; `globals` may be NULL. Adds a new code object to the
 * cache, with a reference. Returns false if the cache is full; `*kind` is then QP_CODE_LIBRARY.
 * Raises nothing. */
bool qp_code_find_owner(PyCodeObject *code, PyObject *globals, qp_code_owner *kind);

/* Returns the owner of a code object that no frame runs. If the owner is unknown, returns
 * QP_CODE_LIBRARY. */
qp_code_owner qp_code_cached_owner(PyCodeObject *code);

/* Returns the number of the line of an instruction (a byte offset, as PyFrame_GetLasti returns it).
 * The code object must have been found by qp_code_find_owner. Raises nothing. */
uint32_t qp_line_of_instruction(PyCodeObject *code, int instruction);

/* Returns the number of a function's first line (`line`, 0 if unknown), and adds the line if it is
 * new. QP_LINE_OTHER if the table is full. */
uint32_t qp_line_add(qp_text function, qp_text file, uint32_t line, qp_code_owner kind);

/* Returns whether the cache is nearly full and should be emptied soon. */
bool qp_code_lines_nearly_full(void);

/* Empties the cache; drops references, which may run code of the program. */
void qp_code_lines_clear(void);
