#include "context/task_runner.h"

#include <stdbool.h>

#include "runtime/recording.h"
#include "stacks/call_paths.h"
#include "stacks/task_creators.h"
#include "threads/threads.h"
#include "wrappers/module_state.h"
#include "wrappers/wrapper.h"

static PyObject *make_task(PyObject *callable, PyObject *const *args, size_t flagged,
                           PyObject *names)
{
    Py_INCREF(callable); /* a garbage collection may detach us */
    uint32_t recording = qp_recording;
    uint32_t path = QP_PATH_NONE;
    qp_thread *thread = PyVectorcall_NARGS(flagged) > 1 ? qp_thread_here() : NULL;
    bool is_ours = thread && qp_call_path_find(thread->tstate, &path);
    PyObject *task = qp_wrapper_call((qp_wrapper *)callable, args, flagged, names);
    if (task && is_ours && path > QP_PATH_OTHER && recording == qp_recording) {
        qp_task_creator_add(task, path);
    }
    Py_DECREF(callable);
    return task;
}

PyObject *qp_task_creation_wrapper(PyObject *module, PyObject *original, PyCodeObject *boundary,
                                   PyTypeObject *task_type)
{
    const qp_module_state *state = PyModule_GetState(module);
    qp_task_set_boundary(boundary);
    qp_task_creators_watch(task_type);
    return qp_wrapper_new(state->wrapper_type, make_task, original, NULL);
}
