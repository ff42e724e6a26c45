#include "context/statement_labels.h"

#include "memory/region.h"
#include "memory/texts.h"
#include "runtime/exception.h"
#include "runtime/recording.h"
#include "runtime/thread_local.h"
#include "stacks/submitter.h"
#include "wrappers/module_state.h"
#include "wrappers/wrapper.h"

static const char SEVERAL[] = "several labels";

PyObject *qp_label_variable;

static PyObject *run_with_label(PyObject *callable, PyObject *const *args, size_t flagged,
                                PyObject *names)
{
    qp_wrapper *self = (qp_wrapper *)callable;
    Py_INCREF(callable); /* `describe` may detach us */
    PyObject *note = PyObject_Vectorcall(self->extra, args, flagged, names);
    PyObject *token = note && note != Py_None ? PyContextVar_Set(qp_label_variable, note) : NULL;
    qp_exception_clear(); /* the statement gets no label */
    PyObject *result = qp_wrapper_call(self, args, flagged, names);
    if (token) {
        qp_exception exception = qp_exception_take();
        if (PyContextVar_Reset(qp_label_variable, token) < 0) {
            qp_exception_clear(); /* another context runs, which has a separate label */
        }
        qp_exception_put_back(&exception);
    }
    Py_XDECREF(token);
    Py_XDECREF(note);
    Py_DECREF(callable);
    return result;
}

PyObject *qp_label_wrapper(PyObject *module, PyObject *original, PyObject *describe)
{
    const qp_module_state *state = PyModule_GetState(module);
    if (!qp_label_variable) {
        qp_label_variable = PyContextVar_New("queryprof.note", NULL);
    }
    return qp_label_variable
               ? qp_wrapper_new(state->wrapper_type, run_with_label, original, describe)
               : NULL;
}

PyObject *qp_running_label(void)
{
    PyObject *note = NULL;
    if (qp_label_variable && PyContextVar_Get(qp_label_variable, NULL, &note) < 0) {
        qp_exception_clear(); /* no context: no label */
    }
    const qp_submitter *submitter = note ? NULL : qp_running_submitter();
    if (submitter) {
        note = Py_XNewRef(submitter->note);
    }
    return note;
}

void qp_label_statement(uint32_t statement)
{
    PyObject *note = qp_running_label();
    if (note && PyUnicode_Check(note) && qp_recording) { /* a garbage collection may have ended the
                                                          * recording */
        qp_text text = qp_text_from_str(note);
        qp_statement_row *row = (qp_statement_row *)qp_first_row(QP_STATEMENT_ROWS) + statement;
        if (row->note != QP_TEXT_NONE && row->note != text) {
            text = qp_text_find_or_add(SEVERAL, sizeof SEVERAL - 1);
        }
        row->note = text == QP_TEXT_FULL ? row->note : text;
    }
    Py_XDECREF(note);
}
