#include "lines/foreign_calls.h"

#include <string.h>

#include "stacks/code_lines.h"

static bool has_library(const qp_libraries *libraries, const char *package)
{
    bool found = false;
    for (int i = 0; i < libraries->count && !found; i++) {
        found = !strcmp(libraries->names[i], package);
    }
    return found;
}

void qp_libraries_add(qp_libraries *libraries, PyObject *globals)
{
    char package[QP_PACKAGE_BYTES];
    qp_package_of(globals, package);
    if (package[0] && !has_library(libraries, package)) {
        int at = libraries->count < QP_LIBRARIES ? libraries->count++ : QP_LIBRARIES - 1;
        memcpy(libraries->names[at], package, sizeof package);
    }
}

/* Returns whether globals belong to a known package that is not one of the libraries. */
static bool is_other_package(const qp_libraries *libraries, PyObject *globals)
{
    char package[QP_PACKAGE_BYTES];
    qp_package_of(globals, package);
    return package[0] && libraries->count && !has_library(libraries, package);
}

bool qp_call_is_foreign(const qp_libraries *libraries, PyObject *callable, PyObject *argument)
{
    if (PyIter_Check(argument)) {
        return false;
    }
    if (PyMethod_Check(callable)) {
        callable = PyMethod_GET_FUNCTION(callable);
    }
    if (PyCFunction_CheckExact(callable)) {
        PyObject *module = PyCFunction_GET_SELF(callable);
        return module && PyModule_CheckExact(module) &&
               is_other_package(libraries, PyModule_GetDict(module));
    }
    if (!PyFunction_Check(callable)) {
        return false;
    }
    PyObject *globals = PyFunction_GET_GLOBALS(callable);
    qp_code_owner owner;
    if (!qp_code_find_owner((PyCodeObject *)PyFunction_GET_CODE(callable), globals, &owner)) {
        return false;
    }
    return owner == QP_CODE_USER || owner == QP_CODE_STANDARD ||
           (owner == QP_CODE_LIBRARY && is_other_package(libraries, globals));
}
