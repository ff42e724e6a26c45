#include "stacks/library_entry.h"

#include "runtime/dictionary.h"
#include <stdbool.h>
#include <string.h>

#include "stacks/code_lines.h"
#include "stacks/frames.h"

enum {
    MOST_FRAMES = 250, /* that are searched */
    PACKAGE_BYTES = 64
};

enum { CONTINUED = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR };

/* Copies the name of the package that globals are of; "": unknown. */
static void package_of(PyObject *globals, char package[PACKAGE_BYTES])
{
    package[0] = 0;
    PyObject *name = qp_dict_find(globals, "__name__");
    const char *text = name && PyUnicode_CheckExact(name) ? PyUnicode_AsUTF8(name) : NULL;
    if (!text) {
        PyErr_Clear();
        return;
    }
    size_t length = strcspn(text, ".");
    if (!strncmp(text, "django.", 7)) {
        length = 7 + strcspn(text + 7, ".");
    }
    if (length < PACKAGE_BYTES) {
        memcpy(package, text, length);
        package[length] = 0;
    }
}

PyCodeObject *qp_library_entry(PyThreadState *tstate)
{
    char nearest[PACKAGE_BYTES] = "", package[PACKAGE_BYTES];
    PyCodeObject *entry = NULL;
    qp_frame *frame = qp_frame_running(tstate);
    for (int i = 0; frame && i < MOST_FRAMES; i++) {
        PyCodeObject *code = qp_frame_code(frame);
        PyObject *globals = qp_frame_globals(frame);
        qp_code_owner owner;
        if (!qp_code_find(code, globals, &owner) || owner == QP_CODE_USER) {
            break;
        }
        if (owner == QP_CODE_LIBRARY) {
            package_of(globals, package);
            if (!nearest[0]) {
                memcpy(nearest, package, sizeof nearest);
            }
            bool is_function = code->co_flags & CO_OPTIMIZED && !(code->co_flags & CONTINUED);
            if (nearest[0] && !strcmp(package, nearest) && is_function) {
                entry = code;
            }
        }
        frame = qp_frame_outer(frame);
    }
    qp_frame_release(frame);
    return entry;
}
