#include "stacks/library_entry.h"

#include <stdbool.h>
#include <string.h>

#include "stacks/code_lines.h"
#include "stacks/frames.h"
#include "stacks/packages.h"

enum { MOST_FRAMES = 250 /* maximum number of frames to search */ };

enum { CONTINUED = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR };

PyCodeObject *qp_library_entry(PyThreadState *tstate)
{
    char nearest[QP_PACKAGE_BYTES] = "", package[QP_PACKAGE_BYTES];
    PyCodeObject *entry = NULL;
    qp_frame *frame = qp_frame_running(tstate);
    for (int i = 0; frame && i < MOST_FRAMES; i++) {
        PyCodeObject *code = qp_frame_code(frame);
        PyObject *globals = qp_frame_globals(frame);
        qp_code_owner owner;
        if (!qp_code_find_owner(code, globals, &owner) || owner == QP_CODE_USER) {
            break;
        }
        if (owner == QP_CODE_LIBRARY) {
            qp_package_of(globals, package);
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
