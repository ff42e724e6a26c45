#include "wrappers/coroutine_proxy.h"
#include "runtime/exception.h"

#include <stdbool.h>
#include <structmember.h>

typedef struct {
    PyObject_HEAD PyObject *coroutine; /* owned */
    qp_watcher *watcher;               /* owned; NULL if the coroutine has ended */
    PyObject *weak_references;
} awaited;

static void report_end(awaited *self, PyObject *result)
{
    qp_watcher *watcher = self->watcher;
    self->watcher = NULL;
    if (watcher) {
        watcher->ends(watcher, result);
        watcher->forget(watcher);
    }
}

static void report_resume(awaited *self)
{
    if (self->watcher) {
        self->watcher->continues(self->watcher);
    }
}

/* Calls the watcher after the coroutine has run, when it has paused or ended. */
static void report_pause_or_end(awaited *self, PySendResult how, PyObject *result)
{
    if (self->watcher) {
        self->watcher->pauses(self->watcher);
    }
    if (how != PYGEN_NEXT) {
        report_end(self, how == PYGEN_RETURN ? result : NULL);
    }
}

static PySendResult send(PyObject *object, PyObject *value, PyObject **result)
{
    awaited *self = (awaited *)object;
    Py_INCREF(object); /* the awaiting code may release the proxy during the call */
    report_resume(self);
    PySendResult how = PyIter_Send(self->coroutine, value, result);
    report_pause_or_end(self, how, *result);
    Py_DECREF(object);
    return how;
}

static PyObject *next(PyObject *object)
{
    PyObject *result = NULL;
    PySendResult how = send(object, Py_None, &result);
    if (how == PYGEN_RETURN) {
        if (result != Py_None) {
            PyObject *stop = PyObject_CallOneArg(PyExc_StopIteration, result);
            if (stop) {
                PyErr_SetObject(PyExc_StopIteration, stop);
                Py_DECREF(stop);
            }
        }
        Py_CLEAR(result); /* NULL without an exception also means the end */
    }
    return result;
}

static PyObject *send_method(PyObject *self, PyObject *value)
{
    PyObject *result = NULL;
    PySendResult how = send(self, value, &result);
    if (how == PYGEN_RETURN) {
        PyObject *stop = PyObject_CallOneArg(PyExc_StopIteration, result);
        if (stop) {
            PyErr_SetObject(PyExc_StopIteration, stop);
            Py_DECREF(stop);
        }
        Py_CLEAR(result);
    }
    return result;
}

/* Calls `throw` on the coroutine. */
static PyObject *throw_method(PyObject *object, PyObject *args)
{
    awaited *self = (awaited *)object;
    PyObject *function = PyObject_GetAttrString(self->coroutine, "throw");
    if (!function) {
        return NULL;
    }
    Py_INCREF(object);
    report_resume(self);
    PyObject *result = PyObject_Call(function, args, NULL);
    Py_DECREF(function);
    if (result) {
        report_pause_or_end(self, PYGEN_NEXT, result);
    } else {
        PyObject *type, *value, *traceback;
        bool returned = PyErr_ExceptionMatches(PyExc_StopIteration);
        PyErr_Fetch(&type, &value, &traceback);
        PyErr_NormalizeException(&type, &value, &traceback); /* before Python 3.12, the value may
                                                              * be the result */
        PyObject *returns = returned && value ? PyObject_GetAttrString(value, "value") : NULL;
        if (!returned) {
            PyErr_Restore(type, value, traceback); /* set the exception, so that the watcher sees
                                                    * it */
            report_pause_or_end(self, PYGEN_ERROR, NULL);
        } else {
            qp_exception_clear();
            report_pause_or_end(self, PYGEN_RETURN, returns ? returns : Py_None);
            PyErr_Restore(type, value, traceback);
        }
        Py_XDECREF(returns);
    }
    Py_DECREF(object);
    return result;
}

static PyObject *close_method(PyObject *object, PyObject *Py_UNUSED(unused))
{
    awaited *self = (awaited *)object;
    PyObject *result = PyObject_CallMethod(self->coroutine, "close", NULL);
    report_end(self, NULL);
    return result;
}

static PyObject *await_itself(PyObject *self)
{
    return Py_NewRef(self);
}

static PyObject *get_attribute(PyObject *self, PyObject *name)
{
    if (PyUnicode_CompareWithASCIIString(name, "__class__") == 0) {
        return PyObject_GetAttr(((awaited *)self)->coroutine, name);
    }
    PyObject *found = PyObject_GenericGetAttr(self, name);
    if (!found && PyErr_ExceptionMatches(PyExc_AttributeError)) {
        qp_exception_clear();
        found = PyObject_GetAttr(((awaited *)self)->coroutine, name);
    }
    return found;
}

static PyObject *represent(PyObject *self)
{
    return PyObject_Repr(((awaited *)self)->coroutine);
}

static int traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((awaited *)self)->coroutine);
    return 0;
}

static int clear(PyObject *self)
{
    Py_CLEAR(((awaited *)self)->coroutine);
    return 0;
}

static void dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    PyObject *error_type, *value, *traceback;
    PyErr_Fetch(&error_type, &value, &traceback);
    PyObject_ClearWeakRefs(self);
    clear(self); /* close the coroutine first, because it may run to its end */
    report_end((awaited *)self, NULL);
    PyErr_Restore(error_type, value, traceback);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMethodDef methods[] = {
    {"send", send_method, METH_O, NULL},
    {"throw", throw_method, METH_VARARGS, NULL},
    {"close", close_method, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(awaited, weak_references), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_dealloc, dealloc},        {Py_tp_traverse, traverse},  {Py_tp_clear, clear},
    {Py_tp_getattro, get_attribute}, {Py_tp_repr, represent},     {Py_tp_iter, PyObject_SelfIter},
    {Py_tp_iternext, next},          {Py_am_await, await_itself}, {Py_am_send, send},
    {Py_tp_methods, methods},        {Py_tp_members, members},    {0, NULL},
};

static PyType_Spec spec = {
    .name = "queryprof.core._core.Awaited",
    .basicsize = sizeof(awaited),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

PyTypeObject *qp_coroutine_proxy_type(PyObject *module)
{
    return (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
}

PyObject *qp_coroutine_proxy(PyTypeObject *type, PyObject *coroutine, qp_watcher *watcher)
{
    awaited *self = (awaited *)type->tp_alloc(type, 0);
    if (!self) {
        qp_exception_clear();
        watcher->forget(watcher);
        return coroutine;
    }
    self->coroutine = coroutine;
    self->watcher = watcher;
    return (PyObject *)self;
}
