#include "greenlets.h"

#include "thread_local.h"

enum { PARENTS = 16, FRAMES = 250 };

/* The running greenlet (a new reference), or NULL: there is none, or no such library. */
static PyObject *running(void)
{
    static PyObject *name; /* kept for as long as the process runs */
    if (!name) {
        name = PyUnicode_InternFromString("greenlet");
    }
    PyObject *module = name ? PyImport_GetModule(name) : NULL;
    PyObject *greenlet = module ? PyObject_CallMethod(module, "getcurrent", NULL) : NULL;
    Py_XDECREF(module);
    return greenlet;
}

/* Visits the frames from `frame` (owned by this function from here on) outwards. */
static bool visit_frames(PyFrameObject *frame, qp_frame_visitor *visit, void *context)
{
    bool found = false;
    for (int i = 0; frame && !found && i < FRAMES; i++) {
        PyCodeObject *code = PyFrame_GetCode(frame);
        PyObject *globals = PyFrame_GetGlobals(frame);
        found = visit(context, code, globals, PyFrame_GetLasti(frame));
        PyFrameObject *outer = PyFrame_GetBack(frame);
        Py_XDECREF(globals);
        Py_DECREF((PyObject *)code);
        Py_DECREF((PyObject *)frame);
        frame = outer;
    }
    Py_XDECREF((PyObject *)frame);
    return found;
}

bool qp_greenlets_visit(qp_frame_visitor *visit, void *context)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    bool was_muted = qp_here.muted;
    qp_here.muted = true; /* a greenlet's attributes may be the program's */
    bool found = false, has_parents = false;
    PyObject *greenlet = running();
    for (int i = 0; greenlet && !found && i < PARENTS; i++) {
        PyObject *parent = PyObject_GetAttrString(greenlet, "parent");
        Py_SETREF(greenlet, parent);
        PyObject *frame = parent ? PyObject_GetAttrString(parent, "gr_frame") : NULL;
        if (frame && PyFrame_Check(frame)) {
            has_parents = true;
            found = visit_frames((PyFrameObject *)Py_NewRef(frame), visit, context);
        }
        Py_XDECREF(frame);
    }
    Py_XDECREF(greenlet);
    qp_here.muted = was_muted;
    PyErr_Restore(type, value, traceback); /* also drops an error of the above */
    return has_parents;
}
