/* The line of an instruction, from its code object's table of locations. A search continues where
 * the last search in the same code object ended. PyCode_Addr2Line reads the table from its start
 * each time, which in a function of a thousand lines takes longer than the query.
 *
 * The format is CPython's (Objects/locations.md, 3.11 and newer). The first line found in each code
 * object is compared with PyCode_Addr2Line's. After the first difference, PyCode_Addr2Line is used
 * for all code.
 */
#pragma once

#include <Python.h>
#include <stdbool.h>

/* The place where the last search in one code object's table ended. All zeros: the start. */
typedef struct {
    int next;     /* byte of the table where the next entry begins */
    int start;    /* byte offset of the entry's first instruction */
    int end;      /* byte offset after the entry's last instruction */
    int line;     /* the line of these instructions; -1: they have no line */
    int computed; /* the line to which the next entry's difference is added */
    bool is_checked;
} qp_line_search;

/* Returns the line of an instruction (a byte offset, not negative); 0 or less if there is no
 * line. */
int qp_line_table_search(PyCodeObject *code, int instruction, qp_line_search *search);
