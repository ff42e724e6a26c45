#include "last_call.h"

#ifdef _WIN32
#include <process.h>
#else
#include <unistd.h>
#endif

#include "thread_local.h"

typedef PyObject *(*keywords_function)(PyObject *, PyObject *const *, Py_ssize_t, PyObject *);
typedef PyObject *(*fast_function)(PyObject *, PyObject *const *, Py_ssize_t);

enum { EXIT, EXECV, EXECVE, KILL, RAISE_SIGNAL, WATCHED };

static PyObject *watch_exit(PyObject *, PyObject *const *, Py_ssize_t, PyObject *);
static PyObject *watch_execv(PyObject *, PyObject *const *, Py_ssize_t);
static PyObject *watch_execve(PyObject *, PyObject *const *, Py_ssize_t, PyObject *);

static PyObject *watch_kill(PyObject *, PyObject *const *, Py_ssize_t);
static PyObject *watch_raise_signal(PyObject *, PyObject *);

static struct {
    const char *module;
    const char *name;
    int flags;
    PyCFunction ours;
    PyMethodDef *definition; /* NULL: not watched */
    PyCFunction original;
} watched[WATCHED] = {
    [EXIT] = {"os", "_exit", METH_FASTCALL | METH_KEYWORDS, (PyCFunction)(void (*)(void))watch_exit,
              0, 0},
    [EXECV] = {"os", "execv", METH_FASTCALL, (PyCFunction)(void (*)(void))watch_execv, 0, 0},
    [EXECVE] = {"os", "execve", METH_FASTCALL | METH_KEYWORDS,
                (PyCFunction)(void (*)(void))watch_execve, 0, 0},
    [KILL] = {"os", "kill", METH_FASTCALL, (PyCFunction)(void (*)(void))watch_kill, 0, 0},
    [RAISE_SIGNAL] = {"_signal", "raise_signal", METH_O, watch_raise_signal, 0, 0},
};

static PyObject *on_last_call; /* owned; NULL: nothing is watched */

static void tell(int which)
{
    PyObject *callback = Py_XNewRef(on_last_call);
    if (callback && !qp_here.muted) {
        qp_here.muted = true;
        PyObject *result = PyObject_CallFunction(callback, "s", watched[which].name);
        if (!result) {
            PyErr_Clear(); /* the callback reports its own errors; the program goes on */
        }
        Py_XDECREF(result);
        qp_here.muted = false;
    }
    Py_XDECREF(callback);
}

static PyObject *watch_exit(PyObject *module, PyObject *const *args, Py_ssize_t count,
                            PyObject *names)
{
    tell(EXIT);
    return ((keywords_function)(void (*)(void))watched[EXIT].original)(module, args, count, names);
}

static PyObject *watch_execv(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    tell(EXECV);
    return ((fast_function)(void (*)(void))watched[EXECV].original)(module, args, count);
}

static PyObject *watch_execve(PyObject *module, PyObject *const *args, Py_ssize_t count,
                              PyObject *names)
{
    tell(EXECVE);
    return ((keywords_function)(void (*)(void))watched[EXECVE].original)(module, args, count,
                                                                         names);
}

static PyObject *watch_kill(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    long pid = count > 0 && PyLong_CheckExact(args[0]) ? PyLong_AsLong(args[0]) : -1;
    if (pid == (long)getpid()) {
        tell(KILL);
    }
    PyErr_Clear(); /* a pid too large for a long: the function itself will say so */
    return ((fast_function)(void (*)(void))watched[KILL].original)(module, args, count);
}

static PyObject *watch_raise_signal(PyObject *module, PyObject *number)
{
    tell(RAISE_SIGNAL);
    return watched[RAISE_SIGNAL].original(module, number);
}

int qp_last_call_watch(PyObject *callback)
{
    for (int i = 0; i < WATCHED; i++) {
        PyObject *module = PyImport_ImportModule(watched[i].module);
        if (!module) {
            return -1;
        }
        PyObject *function = PyObject_GetAttrString(module, watched[i].name);
        Py_DECREF(module);
        PyMethodDef *definition = function && PyCFunction_CheckExact(function)
                                      ? ((PyCFunctionObject *)function)->m_ml
                                      : NULL;
        /* Another calling convention than CPython's own has no trampoline: it is left alone. */
        if (definition && definition->ml_flags == watched[i].flags && !watched[i].definition) {
            watched[i].definition = definition;
            watched[i].original = definition->ml_meth;
            definition->ml_meth = watched[i].ours;
        }
        PyErr_Clear(); /* a system without the function */
        Py_XDECREF(function);
    }
    Py_XSETREF(on_last_call, Py_NewRef(callback));
    return 0;
}

void qp_last_call_unwatch(void)
{
    for (int i = 0; i < WATCHED; i++) {
        if (watched[i].definition && watched[i].definition->ml_meth == watched[i].ours) {
            watched[i].definition->ml_meth = watched[i].original;
            watched[i].definition = NULL;
        }
    }
    Py_CLEAR(on_last_call);
}
