#include "stacks/greenlets.h"

#include "runtime/exception.h"

enum { PARENTS = 16, FRAMES = 250 };

/* Returns the greenlet library's module (a new reference), or NULL if the library is not loaded. */
static PyObject *greenlet_module(void)
{
    static PyObject *name; /* kept for as long as the process runs */
    if (!name) {
        name = PyUnicode_InternFromString("greenlet");
    }
    return name ? PyImport_GetModule(name) : NULL;
}

bool qp_greenlets_are_loaded(void)
{
    qp_exception exception = qp_exception_take();
    PyObject *module = greenlet_module();
    Py_XDECREF(module);
    qp_exception_put_back(&exception);
    return module != NULL;
}

/* Returns an attribute of a greenlet (a new reference); NULL if the attribute is missing. Reads the
 * attribute through the library's own type, so that an override in the program's subclass does not
 * run. */
static PyObject *greenlet_attribute(PyObject *type, PyObject *greenlet, const char *name)
{
    PyObject *descriptor = PyObject_GetAttrString(type, name);
    descrgetfunc get = descriptor ? Py_TYPE(descriptor)->tp_descr_get : NULL;
    bool is_its = PyType_Check(type) && PyObject_TypeCheck(greenlet, (PyTypeObject *)type);
    PyObject *value = get && is_its ? get(descriptor, greenlet, type) : NULL;
    Py_XDECREF(descriptor);
    return value;
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
    qp_exception exception = qp_exception_take();
    bool found = false, has_parents = false;
    PyObject *module = greenlet_module();
    PyObject *greenlet = module ? PyObject_CallMethod(module, "getcurrent", NULL) : NULL;
    PyObject *greenlet_type = greenlet ? PyObject_GetAttrString(module, "greenlet") : NULL;
    for (int i = 0; greenlet && greenlet_type && !found && i < PARENTS; i++) {
        PyObject *parent = greenlet_attribute(greenlet_type, greenlet, "parent");
        Py_SETREF(greenlet, parent);
        PyObject *frame = parent ? greenlet_attribute(greenlet_type, parent, "gr_frame") : NULL;
        if (frame && PyFrame_Check(frame)) {
            has_parents = true;
            found = visit_frames((PyFrameObject *)Py_NewRef(frame), visit, context);
        }
        Py_XDECREF(frame);
    }
    Py_XDECREF(greenlet);
    Py_XDECREF(greenlet_type);
    Py_XDECREF(module);
    qp_exception_put_back(&exception); /* also drops an error from above */
    return has_parents;
}
