/* Whose code is: by the directory that its file is in. */
#ifndef QP_CODE_CLASSES_H
#define QP_CODE_CLASSES_H

#include <Python.h>

typedef enum {
    QP_CODE_USER = 0,     /* the program's own */
    QP_CODE_LIBRARY = 1,  /* installed packages */
    QP_CODE_STANDARD = 2, /* the standard library, frozen modules */
    QP_CODE_SELF = 3,     /* queryprof */
    QP_CODE_IGNORED = 4   /* calls from here are not the program's (coverage's own data) */
} qp_code_class;

/* Sets how file names are classed: a list of (prefix, kind) with str prefixes, of which the longest
 * match counts; and the directory that relative file names are under. Returns 0, or -1 with an
 * exception. */
int qp_code_classes_configure(PyObject *prefixes, PyObject *directory);
void qp_code_classes_forget(void);

/* The class of a code object. Code without a file, which was typed or made up, belongs to whose
 * globals (may be NULL) it runs in. Raises nothing. */
qp_code_class qp_code_classify(PyCodeObject *code, PyObject *globals);

#endif
