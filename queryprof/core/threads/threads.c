#include "threads/threads.h"

#include <pythread.h>
#include <string.h>

#include <pthread.h>

#include "memory/numbered_names.h"
#include "memory/region.h"
#include "runtime/allocation.h"
#include "runtime/dictionary.h"
#include "runtime/exception.h"
#include "runtime/index.h"
#include "runtime/thread_local.h"
#include "threads/thread_usage.h"

static struct {
    PyInterpreterState *owner;
    qp_thread *records; /* never freed: thread-local pointers refer to them */
    qp_names names;
} state;

int qp_threads_start(PyInterpreterState *owner)
{
    state.owner = owner;
    qp_thread_usage_start();
    return qp_names_start(&state.names, QP_THREAD_ROWS, "(unknown)");
}

void qp_threads_stop(void)
{
    qp_names_stop(&state.names);
    state.owner = NULL;
}

static pthread_key_t end_of_thread;
static pthread_once_t end_of_thread_once = PTHREAD_ONCE_INIT;

static void thread_ended(void *record)
{
    qp_thread *thread = record;
    if (qp_recording) {
        qp_thread_usage_end();
    }
    qp_here.thread = NULL; /* if code still runs in the thread, the thread gets a new record */
    thread->ended = true;
}

static void make_thread_end_key(void)
{
    pthread_key_create(&end_of_thread, thread_ended);
}

static void call_at_thread_end(qp_thread *record)
{
    pthread_once(&end_of_thread_once, make_thread_end_key);
    pthread_setspecific(end_of_thread, record);
}

/* Returns a new str with the running thread's name in `threading`; NULL with an exception.
 * threading.current_thread() would make an object for a thread that has none. */
static PyObject *running_thread_name(void)
{
    PyObject *module_name = PyUnicode_FromString("threading");
    PyObject *threading = module_name ? PyImport_GetModule(module_name) : NULL;
    PyObject *active = threading ? PyObject_GetAttrString(threading, "_active") : NULL;
    PyObject *ident = PyLong_FromUnsignedLong(PyThread_get_thread_ident());
    bool is_known = active && ident && PyDict_CheckExact(active);
    PyObject *thread = is_known ? PyDict_GetItemWithError(active, ident) : NULL; /* borrowed */
    /* Read the name from the thread's __dict__, because reading an attribute may run the program's
     * code. */
    PyObject *fields = thread ? PyObject_GenericGetDict(thread, NULL) : NULL;
    PyObject *name = fields ? Py_XNewRef(qp_dict_find(fields, "_name")) : NULL;
    if (!name || !PyUnicode_CheckExact(name)) {
        qp_exception_clear(); /* not a thread of `threading`, so without a name */
        Py_XSETREF(name, PyUnicode_FromString(threading ? "(native thread)" : "MainThread"));
    }
    Py_XDECREF(fields);
    Py_XDECREF(ident);
    Py_XDECREF(active);
    Py_XDECREF(threading);
    Py_XDECREF(module_name);
    return name;
}

/* Returns a new str: the name with each run of digits replaced by "*". NULL with an exception. */
static PyObject *without_digits(PyObject *name)
{
    Py_ssize_t length = PyUnicode_GET_LENGTH(name), at = 0;
    PyObject *folded = PyUnicode_New(length, PyUnicode_MAX_CHAR_VALUE(name));
    bool was_digit = false;
    for (Py_ssize_t i = 0; folded && i < length; i++) {
        Py_UCS4 character = PyUnicode_READ_CHAR(name, i);
        bool is_digit = Py_UNICODE_ISDECIMAL(character);
        if (!is_digit || !was_digit) {
            PyUnicode_WRITE(PyUnicode_KIND(folded), PyUnicode_DATA(folded), at++,
                            is_digit ? '*' : character);
        }
        was_digit = is_digit;
    }
    PyObject *shorter = folded ? PyUnicode_Substring(folded, 0, at) : NULL;
    Py_XDECREF(folded);
    return shorter;
}

uint16_t qp_thread_name_number(PyObject *name)
{
    enum {
        KEPT = 64 + 2 /* number of names that are kept unchanged; a pool may have thousands, which
                       * differ only in digits */
    };
    qp_exception exception = qp_exception_take();
    bool folds = qp_row_count(QP_THREAD_ROWS) >= KEPT && !qp_name_has_number(&state.names, name);
    PyObject *kept = folds ? without_digits(name) : Py_NewRef(name);
    uint16_t number = kept ? qp_name_number(&state.names, kept) : 0;
    Py_XDECREF(kept);
    qp_exception_put_back(&exception); /* also drops an error from above */
    return number;
}

static void name_record(qp_thread *record)
{
    qp_exception exception = qp_exception_take();
    qp_here.muted = true;
    PyObject *name = running_thread_name();
    record->number = name ? qp_thread_name_number(name) : 0;
    Py_XDECREF(name);
    qp_here.muted = false;
    qp_exception_put_back(&exception);
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
        return NULL; /* another interpreter, which may have its own GIL */
    }
    qp_thread *record = qp_here.thread;
    if (!record) {
        record = new_record();
        if (!record) {
            return NULL;
        }
        /* Compare the number as well, because a later thread may have the address of a thread that
         * has ended. */
        uint64_t seed = qp_hash_mix((uintptr_t)tstate, PyThreadState_GetID(tstate));
        record->random = (uint32_t)(seed >> 32) | 1;
        qp_here.thread = record;
        call_at_thread_end(record);
    }
    if (record->tstate != tstate || record->recording != recording) {
        record->tstate = tstate;
        record->recording = recording;
        name_record(record);
        qp_thread_usage_register(PyThreadState_GetID(tstate), record->number, recording);
    }
    return record;
}

const qp_thread *qp_threads_first(void)
{
    return state.records;
}

bool qp_thread_name_is_known(uint16_t thread)
{
    return qp_name_is_known(&state.names, thread);
}
