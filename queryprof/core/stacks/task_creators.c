#include "stacks/task_creators.h"

#include "runtime/compiler.h"
#include "runtime/recording.h"
#include "stacks/stacks.h"
#include "stacks/submitter.h"

PyObject *qp_task_variable;

static PyCodeObject *boundary_code; /* owned */

bool qp_task_is_boundary(const PyCodeObject *code)
{
    return code == boundary_code;
}

void qp_task_boundary_is(PyCodeObject *code)
{
    Py_XSETREF(boundary_code, (PyCodeObject *)Py_NewRef((PyObject *)code));
}

void qp_task_creators_stop(void)
{
    Py_CLEAR(qp_task_variable);
    Py_CLEAR(boundary_code);
}

/* The call path of the running task's creator, or QP_PATH_NONE. */
static uint32_t task_path(void)
{
    PyObject *value = NULL;
    if (PyContextVar_Get(qp_task_variable, NULL, &value) < 0) {
        PyErr_Clear(); /* no context: no task */
        return QP_PATH_NONE;
    }
    uint64_t number = value && PyLong_CheckExact(value) ? PyLong_AsUnsignedLongLong(value) : 0;
    Py_XDECREF(value);
    return number >> QP_TASK_PATH_BITS == qp_recording ? (uint32_t)number : QP_PATH_NONE;
}

/* Of the running work's submitter, or the running task's creator: its path, or its stack. */
static uint32_t behind(bool is_stack)
{
    const qp_submitter *submitter = qp_submitter_now();
    if (submitter) {
        uint32_t found = is_stack ? submitter->stack : submitter->path;
        return submitter->recording == qp_recording ? found : QP_PATH_NONE;
    }
    return qp_task_variable ? task_path() : QP_PATH_NONE;
}

QP_COLD uint32_t qp_path_behind_find(void)
{
    return behind(false);
}

QP_COLD uint32_t qp_stack_behind(void)
{
    return behind(true);
}
