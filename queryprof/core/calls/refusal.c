#include "calls/refusal.h"

#include "counters/database_paths.h"
#include "runtime/exception.h"
#include "runtime/thread_local.h"

static PyObject *explain; /* owned; NULL if nothing is explained */

void qp_lock_refusal_set_explainer(PyObject *function)
{
    PyObject *before = explain;
    Py_XINCREF(function);
    explain = function;
    Py_XDECREF(before);
}

void qp_lock_refusal_explain(uint32_t path, bool writes, bool is_upgrade)
{
    if (!explain) {
        return;
    }
    PyObject *type = NULL, *value = NULL, *traceback = NULL, *function = explain;
    bool muted = qp_here.muted;
    PyErr_Fetch(&type, &value, &traceback);
    Py_INCREF(function);
    qp_here.muted = true;
    if (value && PyExceptionInstance_Check(value)) {
        PyObject *done =
            PyObject_CallFunction(function, "OsOO", value, qp_database_path_text(path),
                                  writes ? Py_True : Py_False, is_upgrade ? Py_True : Py_False);
        Py_XDECREF(done);
    }
    qp_exception_clear(); /* a refusal without an explanation stays as it is */
    qp_here.muted = muted;
    Py_DECREF(function);
    PyErr_Restore(type, value, traceback);
}
