#include "calls/execution_samples.h"

#include "runtime/clock.h"
#include "runtime/exception.h"
#include "runtime/recording.h"
#include "runtime/thread_local.h"
#include "stacks/call_paths.h"
#include "sums/samples.h"

enum {
    PARAMETERS_SHOWN = 100,
    NOTED = 64,      /* latest executions whose texts are kept: a program may fetch their rows
                      * alternately */
    MAX_NOTED = 1000 /* maximum characters or bytes shown of one value, because formatting more
                      * takes too long */
};

uint8_t qp_execution_notes;

/* The SQL and parameters of the latest executions, in case they turn out to be slow while their
 * rows are fetched. The texts are owned, and are exact strs, so that releasing a text runs no other
 * code. */
static struct {
    uint64_t serial;
    PyObject *sql, *shown;
} noted[NOTED];

static bool has_plain_repr(PyObject *value)
{
    return value == Py_None || PyBool_Check(value) || PyLong_CheckExact(value) ||
           PyFloat_CheckExact(value) || PyUnicode_CheckExact(value) || PyBytes_CheckExact(value);
}

/* Returns a new str that shows one bound value. Calls repr for built-in types only. */
static PyObject *value_text(PyObject *value)
{
    return has_plain_repr(value) ? PyObject_Repr(value)
                                 : PyUnicode_FromFormat("<%s>", Py_TYPE(value)->tp_name);
}

/* Returns a new str that shows the parameters of an execution, or NULL, perhaps with an
 * exception. */
static PyObject *parameters_text(PyObject *parameters)
{
    PyObject *shown = PyList_New(0);
    Py_ssize_t position = 0, index = 0;
    PyObject *key = NULL, *value = NULL;
    bool pairs = parameters && PyDict_CheckExact(parameters);
    bool sequence = parameters && (PyTuple_CheckExact(parameters) || PyList_CheckExact(parameters));
    while (shown && index < PARAMETERS_SHOWN) {
        if (pairs ? !PyDict_Next(parameters, &position, &key, &value)
                  : !sequence || index >= PySequence_Fast_GET_SIZE(parameters)) {
            break;
        }
        PyObject *part = value_text(pairs ? value : PySequence_Fast_GET_ITEM(parameters, index));
        if (part && pairs && PyUnicode_CheckExact(key)) {
            Py_SETREF(part, PyUnicode_FromFormat("%U=%U", key, part));
        }
        if (!part || PyList_Append(shown, part) < 0) {
            Py_CLEAR(shown);
        }
        Py_XDECREF(part);
        index++;
    }
    PyObject *comma = PyUnicode_FromString(", ");
    PyObject *text = shown && comma ? PyUnicode_Join(comma, shown) : NULL;
    Py_XDECREF(comma);
    Py_XDECREF(shown);
    return text;
}

/* Returns a new str that shows the parameters, without effects that the program can notice. NULL
 * after an error, or if the recording has ended. */
static PyObject *parameters_text_silently(PyObject *parameters)
{
    qp_exception exception = qp_exception_take();
    bool was_muted = qp_here.muted;
    qp_here.muted = true; /* a garbage collection here may run the program's code */
    PyObject *shown = parameters_text(parameters);
    qp_here.muted = was_muted;
    qp_exception_put_back(&exception);
    if (!qp_recording) {
        Py_CLEAR(shown);
    }
    return shown;
}

static bool is_small_value(PyObject *value)
{
    return !(PyUnicode_CheckExact(value) && PyUnicode_GET_LENGTH(value) > MAX_NOTED) &&
           !(PyBytes_CheckExact(value) && PyBytes_GET_SIZE(value) > MAX_NOTED);
}

static bool are_small_parameters(PyObject *parameters)
{
    Py_ssize_t position = 0;
    PyObject *key = NULL, *value = NULL;
    if (parameters && PyDict_CheckExact(parameters)) {
        while (PyDict_Next(parameters, &position, &key, &value)) {
            if (!is_small_value(value)) {
                return false;
            }
        }
    } else if (parameters && (PyTuple_CheckExact(parameters) || PyList_CheckExact(parameters))) {
        for (; position < PySequence_Fast_GET_SIZE(parameters); position++) {
            if (!is_small_value(PySequence_Fast_GET_ITEM(parameters, position))) {
                return false;
            }
        }
    }
    return true;
}

void qp_execution_store_parameters(const qp_execution *e, PyObject *sql, PyObject *parameters)
{
    uint64_t serial = e->serial;
    if (!sql || !PyUnicode_CheckExact(sql) || !are_small_parameters(parameters)) {
        return;
    }
    PyObject *shown = parameters_text_silently(parameters);
    if (shown) {
        noted[serial % NOTED].serial = serial;
        Py_XSETREF(noted[serial % NOTED].sql, Py_NewRef(sql));
        Py_XSETREF(noted[serial % NOTED].shown, shown);
    }
}

static bool keeps_parameters(void)
{
    return qp_execution_notes & QP_NOTES_PARAMETERS;
}

static void keep_exemplar(const qp_execution *e, PyObject *sql, PyObject *parameters)
{
    const qp_exemplar_row row = {.key = e->meter.key,
                                 .serial = e->serial,
                                 .started_unix_ns = qp_ticks_to_unix_ns(e->started_ticks),
                                 .duration_ns = e->duration_ns,
                                 .rows = e->fetched,
                                 .stack = e->stack};
    if (keeps_parameters() && noted[e->serial % NOTED].serial == e->serial) {
        qp_exemplar_keep(&row, noted[e->serial % NOTED].sql, noted[e->serial % NOTED].shown);
        return;
    }
    if (!keeps_parameters() || !sql || !PyUnicode_Check(sql)) {
        qp_exemplar_keep(&row, NULL, NULL);
        return;
    }
    PyObject *shown = parameters_text_silently(parameters);
    if (qp_recording) { /* formatting the parameters may have ended the recording */
        qp_exemplar_keep(&row, sql, shown);
    }
    Py_XDECREF(shown);
}

/* Adds an execution to the stack samples. A slow execution counts once. Of the others, 1 in 64 is
 * sampled and counts 64 times. */
static void sample_stack(qp_execution *e)
{
    int64_t weight = e->duration_ns >= QP_SLOW_NS ? 1
                     : e->sampled_stack           ? (int64_t)qp_stack_mask + 1
                                                  : 0;
    if (weight && e->stack) {
        qp_stack_sample_add(e->meter.key.statement, e->stack, weight - e->stack_weight,
                            weight * e->duration_ns - e->stack_ns);
        e->stack_weight = weight;
        e->stack_ns = weight * e->duration_ns;
    }
}

void qp_execution_sample(qp_execution *e, PyThreadState *tstate, PyObject *sql,
                         PyObject *parameters)
{
    bool exemplar = e->duration_ns > qp_exemplar_floor_ns(e->meter.key.statement);
    if (!exemplar && !e->sampled_stack && e->duration_ns < QP_SLOW_NS) {
        return;
    }
    if (tstate && !e->stack) {
        e->stack = qp_stack_find(tstate);
    }
    if (exemplar) {
        keep_exemplar(e, sql, parameters);
    }
    sample_stack(e);
}

void qp_executions_keep_parameters(bool keep)
{
    qp_execution_notes &= (uint8_t)~QP_NOTES_PARAMETERS;
    qp_execution_notes |= keep ? QP_NOTES_PARAMETERS : 0;
    for (int i = 0; i < NOTED; i++) {
        noted[i].serial = 0;
        Py_CLEAR(noted[i].sql);
        Py_CLEAR(noted[i].shown);
    }
}
