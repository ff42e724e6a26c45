#include "threads.h"

#include <pythread.h>
#include <string.h>

#ifndef _WIN32
#include <pthread.h>
#endif

#include "allocation.h"
#include "thread_local.h"

enum { NAMES = 1024 /* of threads, and of spans; the last one is "(other)" */ };

typedef struct {
    PyObject *numbers; /* owned dict: name -> number */
    PyObject *names;   /* owned list: names by number */
} name_table;

static struct {
    PyInterpreterState *owner;
    qp_thread *records; /* never freed: thread-local pointers lead to them */
    name_table threads;
    name_table spans;
    PyObject *span_variable; /* owned; NULL until there is a span */
} state;

QP_THREAD_LOCAL qp_local qp_here;

static int names_start(name_table *table, const char *zeroth)
{
    table->numbers = PyDict_New();
    table->names = Py_BuildValue("[s]", zeroth);
    return table->numbers && table->names ? 0 : -1;
}

static void names_stop(name_table *table)
{
    Py_CLEAR(table->numbers);
    Py_CLEAR(table->names);
}

/* The number of a name; 0 with an exception. */
static uint16_t number_of(name_table *table, PyObject *name)
{
    PyObject *known = PyDict_GetItemWithError(table->numbers, name);
    if (known || PyErr_Occurred()) {
        return known ? (uint16_t)PyLong_AsLong(known) : 0;
    }
    Py_ssize_t number = PyList_GET_SIZE(table->names);
    if (number >= NAMES) {
        return NAMES - 1;
    }
    PyObject *text = number == NAMES - 1 ? PyUnicode_FromString("(other)") : Py_NewRef(name);
    PyObject *value = PyLong_FromSsize_t(number);
    bool added = text && value && PyDict_SetItem(table->numbers, text, value) == 0 &&
                 PyList_Append(table->names, text) == 0;
    Py_XDECREF(text);
    Py_XDECREF(value);
    return added ? (uint16_t)number : 0;
}

static PyObject *name_of(const name_table *table, uint16_t number)
{
    PyObject *name = PyList_GetItem(table->names, number); /* IndexError beyond the end */
    return name ? Py_NewRef(name) : NULL;
}

int qp_threads_start(PyInterpreterState *owner)
{
    state.owner = owner;
    if (names_start(&state.threads, "(unknown)") < 0 || names_start(&state.spans, "") < 0) {
        qp_threads_stop();
        return -1;
    }
    return 0;
}

void qp_threads_stop(void)
{
    names_stop(&state.threads);
    names_stop(&state.spans);
    Py_CLEAR(state.span_variable);
    state.owner = NULL;
}

#ifndef _WIN32
static pthread_key_t end_of_thread;
static pthread_once_t end_of_thread_once = PTHREAD_ONCE_INIT;

static void thread_ended(void *record)
{
    ((qp_thread *)record)->ended = true;
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
    PyObject *thread = active && ident ? PyObject_GetItem(active, ident) : NULL;
    PyObject *name = thread ? PyObject_GetAttrString(thread, "_name") : NULL;
    bool known = name && PyUnicode_CheckExact(name);
    if (!known) {
        PyErr_Clear(); /* no such thread there: it has no name */
        Py_XSETREF(name, PyUnicode_FromString(threading ? "(native thread)" : "MainThread"));
    }
    Py_XDECREF(thread);
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
    record->number = name ? number_of(&state.threads, name) : 0;
    Py_XDECREF(name);
    qp_here.muted = false;
    PyErr_Restore(type, value, traceback);
}

static qp_thread *new_record(void)
{
    for (qp_thread *record = state.records; record; record = record->next) {
        if (record->ended) {
            qp_thread *next = record->next;
            memset(record, 0, sizeof *record);
            record->next = next;
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

uint16_t qp_span_number(PyObject *name)
{
    return number_of(&state.spans, name);
}

void qp_span_set_variable(PyObject *variable)
{
    Py_XSETREF(state.span_variable, Py_NewRef(variable));
}

uint16_t qp_span_running(void)
{
    PyObject *value = NULL;
    if (!state.span_variable) {
        return 0;
    }
    if (PyContextVar_Get(state.span_variable, NULL, &value) < 0) {
        PyErr_Clear(); /* no context: no span */
        return 0;
    }
    uint16_t number = value && PyLong_CheckExact(value) ? (uint16_t)PyLong_AsLong(value) : 0;
    Py_XDECREF(value);
    return number;
}

PyObject *qp_span_name(uint16_t span)
{
    return name_of(&state.spans, span);
}

PyObject *qp_thread_name(uint16_t thread)
{
    return name_of(&state.threads, thread);
}
