#include "context/task_runner.h"

#include <stdbool.h>

#include "runtime/exception.h"
#include "stacks/call_paths.h"
#include "stacks/code_lines.h"
#include "stacks/task_creators.h"
#include "threads/threads.h"
#include "wrappers/module_state.h"
#include "wrappers/wrapper.h"

/* Sets the variable to the running call path; returns what resets it, or NULL. */
static PyObject *note_maker(void)
{
    qp_thread *thread = qp_thread_here();
    uint32_t path = QP_PATH_NONE;
    if (!thread || !qp_call_path_find(thread->tstate, &path) || path <= QP_PATH_OTHER) {
        return NULL;
    }
    if (!qp_task_variable) {
        qp_task_variable = PyContextVar_New("queryprof.task", NULL);
    }
    uint64_t number = (uint64_t)qp_recording << QP_TASK_PATH_BITS | path;
    PyObject *value = qp_task_variable ? PyLong_FromUnsignedLongLong(number) : NULL;
    PyObject *token = value ? PyContextVar_Set(qp_task_variable, value) : NULL;
    PyErr_Clear(); /* no memory: its creator stays unknown */
    Py_XDECREF(value);
    return token;
}

static PyObject *make_task(PyObject *callable, PyObject *const *args, size_t flagged,
                           PyObject *names)
{
    Py_INCREF(callable); /* a collection may detach us */
    PyObject *token = note_maker();
    PyObject *result = qp_wrapper_call((qp_wrapper *)callable, args, flagged, names);
    if (token) {
        qp_exception exception = qp_exception_take();
        if (!qp_task_variable || PyContextVar_Reset(qp_task_variable, token) < 0) {
            PyErr_Clear(); /* another context runs, or recording has ended */
        }
        qp_exception_put_back(&exception);
        Py_DECREF(token);
    }
    Py_DECREF(callable);
    return result;
}

PyObject *qp_task_runner(PyObject *module, PyObject *original, PyCodeObject *boundary)
{
    const qp_module_state *state = PyModule_GetState(module);
    qp_task_boundary_is(boundary);
    return qp_wrapper_new(state->wrapper_type, make_task, original, NULL);
}
