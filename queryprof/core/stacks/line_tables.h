/* The line of an instruction, from its code object's table of locations, continued from where the
 * last search ended: PyCode_Addr2Line reads the table from its start each time, which in a function
 * of a thousand lines takes longer than the query.
 *
 * The format is CPython's (Objects/locations.md, 3.11 and newer). The first line that is found in a
 * code object is compared with PyCode_Addr2Line's; once one differs, that is used for all.
 */
#pragma once

#include <Python.h>
#include <stdbool.h>

/* The end of the last search in one code object's table; zeros: the start. */
typedef struct {
    int next;     /* byte of the table where the next entry begins */
    int start;    /* byte offset of the entry's first instruction */
    int end;      /* byte offset after the entry's last instruction */
    int line;     /* the line of these instructions; -1: they have no line */
    int computed; /* the line that the next entry's difference is added to */
    bool is_checked;
} qp_line_search;

/* Returns the line of an instruction (a byte offset, not negative); 0 or less: none. */
int qp_line_search_for(PyCodeObject *code, int instruction, qp_line_search *search);
