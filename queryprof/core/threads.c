#include "threads.h"

#include <pythread.h>
#include <string.h>

#ifndef _WIN32
#include <pthread.h>
#endif

#include "allocation.h"
#include "names.h"
#include "thread_ends.h"
#include "thread_local.h"

static struct {
    PyInterpreterState *owner;
    qp_thread *records; /* never freed: thread-local pointers lead to them */
    qp_names names;
} state;

QP_THREAD_LOCAL qp_local qp_here;

int qp_threads_start(PyInterpreterState *owner)
{
    state.owner = owner;
    return qp_names_start(&state.names, "(unknown)");
}

void qp_threads_stop(void)
{
    qp_names_stop(&state.names);
    state.owner = NULL;
}

#ifndef _WIN32
static pthread_key_t end_of_thread;
static pthread_once_t end_of_thread_once = PTHREAD_ONCE_INIT;

static void thread_ended(void *record)
{
    qp_thread *thread = record;
    if (thread->recording == qp_recording && qp_recording) {
        qp_thread_end_note(thread->number, thread->recording);
    }
    qp_here.thread = NULL; /* what still runs in the thread has a record of its own */
    thread->ended = true;
}

static void make_end_of_thread(void)
{
    pthread_key_create(&end_of_thread, thread_ended);
}

static void tell_end(qp_thread *record)
{
    pthread_once(&end_of_thread_once, make_end_of_thread);
    pthread_setspecific(end_of_thread, record);
}
#else
static void tell_end(qp_thread *Py_UNUSED(record)) {}
#endif

/* A new str: the name that `threading` knows the running thread by; NULL with an exception.
 * threading.current_thread() would make an object for a thread that has none. */
static PyObject *running_thread_name(void)
{
    PyObject *module_name = PyUnicode_FromString("threading");
    PyObject *threading = module_name ? PyImport_GetModule(module_name) : NULL;
    PyObject *active = threading ? PyObject_GetAttrString(threading, "_active") : NULL;
    PyObject *ident = PyLong_FromUnsignedLong(PyThread_get_thread_ident());
    bool is_known = active && ident && PyDict_CheckExact(active);
    PyObject *thread = is_known ? PyDict_GetItemWithError(active, ident) : NULL; /* borrowed */
    /* Out of its __dict__: an attribute may be the program's. */
    PyObject *fields = thread ? PyObject_GenericGetDict(thread, NULL) : NULL;
    PyObject *name = fields ? Py_XNewRef(PyDict_GetItemString(fields, "_name")) : NULL;
    if (!name || !PyUnicode_CheckExact(name)) {
        PyErr_Clear(); /* no such thread there: it has no name */
        Py_XSETREF(name, PyUnicode_FromString(threading ? "(native thread)" : "MainThread"));
    }
    Py_XDECREF(fields);
    Py_XDECREF(ident);
    Py_XDECREF(active);
    Py_XDECREF(threading);
    Py_XDECREF(module_name);
    return name;
}

static void name_record(qp_thread *record)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    qp_here.muted = true;
    PyObject *name = running_thread_name();
    record->number = name ? qp_name_number(&state.names, name) : 0;
    Py_XDECREF(name);
    qp_here.muted = false;
    PyErr_Restore(type, value, traceback);
}

static qp_thread *new_record(void)
{
    for (qp_thread *record = state.records; record; record = record->next) {
        if (record->ended) {
            qp_thread *next = record->next;
            struct qp_call *free_calls = record->free_calls;
            memset(record, 0, sizeof *record);
            record->next = next;
            record->free_calls = free_calls;
            return record;
        }
    }
    qp_thread *record = qp_allocate(1, sizeof *record);
    if (record) {
        record->next = state.records;
        state.records = record;
    }
    return record;
}

qp_thread *qp_thread_record(uint32_t recording)
{
    PyThreadState *tstate = PyThreadState_Get();
    if (PyThreadState_GetInterpreter(tstate) != state.owner) {
        return NULL; /* another interpreter, perhaps with a GIL of its own */
    }
    qp_thread *record = qp_here.thread;
    if (!record) {
        record = new_record();
        if (!record) {
            return NULL;
        }
        record->random = (uint32_t)((uintptr_t)tstate >> 4) | 1;
        qp_here.thread = record;
        tell_end(record);
    }
    if (record->tstate != tstate || record->recording != recording) {
        record->tstate = tstate;
        record->recording = recording;
        name_record(record);
    }
    return record;
}

const qp_thread *qp_threads_first(void)
{
    return state.records;
}

bool qp_thread_is_known(uint16_t thread)
{
    return qp_name_is_known(&state.names, thread);
}

PyObject *qp_thread_name(uint16_t thread)
{
    return qp_name_of(&state.names, thread);
}
