#include "runtime/complaint.h"

#include <Python.h>
#include <stdarg.h>

#include "runtime/exception.h"

void qp_complain(const char *format, ...)
{
    qp_exception exception = qp_exception_take();
    va_list values;
    va_start(values, format);
    PyObject *message = PyUnicode_FromFormatV(format, values);
    va_end(values);
    PyObject *module = message ? PyImport_ImportModule("queryprof.core.recorder") : NULL;
    PyObject *none = module ? PyObject_CallMethod(module, "complain", "O", message) : NULL;
    Py_XDECREF(none);
    Py_XDECREF(module);
    Py_XDECREF(message);
    qp_exception_clear();
    qp_exception_put_back(&exception);
}
