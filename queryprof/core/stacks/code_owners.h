/* The owner of code, by the directory of its file. */
#pragma once

#include <Python.h>
#include <stdbool.h>

typedef enum {
    QP_CODE_USER = 0,     /* the program's own */
    QP_CODE_LIBRARY = 1,  /* installed packages */
    QP_CODE_STANDARD = 2, /* the standard library, frozen modules */
    QP_CODE_SELF = 3,     /* queryprof */
    QP_CODE_IGNORED = 4   /* code whose calls are ignored, such as coverage's access to its own
                           * data */
} qp_code_owner;

/* Sets how file names are classified: a list of (prefix, kind) with str prefixes (the longest match
 * counts), the directory for relative file names, and whether a main program without a file is the
 * user's. Returns 0, or -1 with an exception. */
int qp_code_owners_configure(PyObject *prefixes, PyObject *directory, bool typed_in);
void qp_code_owners_clear(void);

/* Returns whether a code object has no file, so that its owner depends on the globals in which it
 * runs. */
bool qp_code_is_generated(PyCodeObject *code);

/* Returns the owner of a code object. Code without a file belongs to the user if the globals (may
 * be NULL) belong to a main program without a file (-c, standard input, a notebook), or to a module
 * whose docstrings are tested. Otherwise the code belongs to the library that generated it,
 * whatever module it runs in. Frozen modules belong to the standard library. Raises nothing. */
qp_code_owner qp_code_classify_owner(PyCodeObject *code, PyObject *globals);
