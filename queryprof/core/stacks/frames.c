#include "stacks/frames.h"

#include "runtime/index.h"

#if PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x03100000 && !defined(Py_GIL_DISABLED)
#define LAYOUT_IS_KNOWN 1
#define Py_BUILD_CORE 1
#if PY_VERSION_HEX >= 0x030E0000
#include <internal/pycore_interpframe.h>
#else
#include <internal/pycore_frame.h>
#endif
#undef Py_BUILD_CORE
#else
#define LAYOUT_IS_KNOWN 0
#endif

static bool direct;

#if LAYOUT_IS_KNOWN
static inline _PyInterpreterFrame *skip_incomplete(_PyInterpreterFrame *frame)
{
    while (frame && _PyFrame_IsIncomplete(frame)) {
        frame = frame->previous;
    }
    return frame;
}

/* Returns the innermost record, which may be one of the interpreter's own. */
static inline _PyInterpreterFrame *innermost_record(PyThreadState *tstate)
{
#if PY_VERSION_HEX >= 0x030D0000
    return tstate->current_frame;
#else
    return tstate->cframe->current_frame;
#endif
}

static inline _PyInterpreterFrame *record_running(PyThreadState *tstate)
{
    return skip_incomplete(innermost_record(tstate));
}

/* Returns the code (borrowed from the record). In the interpreter's own records, the result may not
 * be a code object. */
static inline PyCodeObject *record_code(const _PyInterpreterFrame *record)
{
#if PY_VERSION_HEX >= 0x030E0000
    return (PyCodeObject *)PyStackRef_AsPyObjectBorrow(record->f_executable);
#elif PY_VERSION_HEX >= 0x030D0000
    return (PyCodeObject *)record->f_executable;
#else
    return record->f_code;
#endif
}

/* Returns the position of a record in its code. The position points into the code object, so no
 * other code has the same position. */
static inline const void *record_position(const _PyInterpreterFrame *record)
{
#if PY_VERSION_HEX >= 0x030D0000
    return record->instr_ptr;
#else
    return record->prev_instr;
#endif
}

static inline int record_instruction(_PyInterpreterFrame *record)
{
    int instruction = _PyInterpreterFrame_LASTI(record);
    return instruction < 0 ? -1 : instruction * (int)sizeof(_Py_CODEUNIT);
}
#endif

/* Returns whether a compiler, not the interpreter, made the frame object (may be NULL). */
static inline bool is_compiled(PyFrameObject *frame)
{
    return frame && !PyFrame_Check(frame);
}

qp_frame *qp_frame_running(PyThreadState *tstate)
{
#if LAYOUT_IS_KNOWN
    if (direct) {
        return record_running(tstate);
    }
#endif
    return PyThreadState_GetFrame(tstate);
}

const void *qp_frame_identity(PyThreadState *tstate)
{
#if LAYOUT_IS_KNOWN
    if (direct) {
        return innermost_record(tstate);
    }
#endif
    PyFrameObject *frame = PyThreadState_GetFrame(tstate);
    Py_XDECREF((PyObject *)frame); /* the running frame keeps its caller */
    return frame;
}

const void *qp_frame_cheap_identity(PyThreadState *tstate)
{
    return direct ? qp_frame_identity(tstate) : NULL;
}

bool qp_frame_is_running(PyThreadState *tstate, const void *identity)
{
#if LAYOUT_IS_KNOWN
    if (direct) {
        const _PyInterpreterFrame *record = innermost_record(tstate);
        while (record && record != identity) {
            record = record->previous;
        }
        return record != NULL;
    }
#endif
    qp_frame *frame = qp_frame_running(tstate);
    while (frame && frame != identity) {
        frame = qp_frame_outer(frame);
    }
    qp_frame_release(frame);
    return frame != NULL;
}

qp_frame *qp_frame_outer(qp_frame *frame)
{
#if LAYOUT_IS_KNOWN
    if (direct) {
        return skip_incomplete(((_PyInterpreterFrame *)frame)->previous);
    }
#endif
    PyFrameObject *outer = PyFrame_GetBack(frame);
    Py_DECREF((PyObject *)frame);
    return outer;
}

void qp_frame_release(qp_frame *frame)
{
    if (!direct) {
        Py_XDECREF((PyObject *)frame);
    }
}

PyCodeObject *qp_frame_code(qp_frame *frame)
{
#if LAYOUT_IS_KNOWN
    if (direct) {
        return record_code(frame);
    }
#endif
    PyCodeObject *code = PyFrame_GetCode(frame);
    Py_DECREF((PyObject *)code); /* the running frame keeps it */
    return code;
}

PyObject *qp_frame_globals(qp_frame *frame)
{
#if LAYOUT_IS_KNOWN
    if (direct) {
        return ((_PyInterpreterFrame *)frame)->f_globals;
    }
#endif
    PyObject *globals = PyFrame_GetGlobals(frame);
    Py_XDECREF(globals); /* the running frame keeps them */
    return globals;
}

int qp_frame_instruction(qp_frame *frame)
{
#if LAYOUT_IS_KNOWN
    if (direct) {
        PyFrameObject *object = ((_PyInterpreterFrame *)frame)->frame_obj;
        return is_compiled(object) ? QP_NO_INSTRUCTION : record_instruction(frame);
    }
#endif
    return is_compiled(frame) ? QP_NO_INSTRUCTION : PyFrame_GetLasti(frame);
}

qp_frame_trail qp_frame_trail_begin(PyThreadState *tstate, uint32_t context)
{
#if LAYOUT_IS_KNOWN
    if (direct) {
        return (qp_frame_trail){qp_hash_mix(1, context), innermost_record(tstate)};
    }
#else
    (void)tstate, (void)context;
#endif
    return (qp_frame_trail){0};
}

void qp_frame_trail_extend(qp_frame_trail *trail, int frames)
{
#if LAYOUT_IS_KNOWN
    const _PyInterpreterFrame *record = trail->next;
    uint64_t identity = trail->identity;
    for (int i = 0; record && i < frames; i++, record = record->previous) {
        identity = qp_hash_mix(identity, (uintptr_t)record_position(record));
    }
    trail->identity = identity;
    trail->next = record;
#else
    (void)trail, (void)frames;
#endif
}

int qp_frame_trail_length(PyThreadState *tstate, const qp_frame *last)
{
    int length = 1;
#if LAYOUT_IS_KNOWN
    const _PyInterpreterFrame *record = direct ? innermost_record(tstate) : NULL;
    for (; record && record != last; record = record->previous) {
        length++;
    }
#else
    (void)tstate, (void)last;
#endif
    return length;
}

void qp_frames_choose_reading(PyThreadState *tstate)
{
    direct = false;
#if LAYOUT_IS_KNOWN
    _PyInterpreterFrame *record = record_running(tstate);
    PyFrameObject *frame = PyThreadState_GetFrame(tstate);
    bool same = true;
    while (same && record && frame) {
        PyCodeObject *code = PyFrame_GetCode(frame);
        same = code == record_code(record) && PyFrame_GetLasti(frame) == record_instruction(record);
        Py_DECREF((PyObject *)code);
        PyFrameObject *outer = PyFrame_GetBack(frame);
        Py_DECREF((PyObject *)frame);
        frame = outer;
        record = skip_incomplete(record->previous);
    }
    direct = same && !record && !frame;
    Py_XDECREF((PyObject *)frame);
#else
    (void)tstate;
#endif
}

void qp_frames_use_public(void)
{
    direct = false;
}

bool qp_frames_are_direct(void)
{
    return direct;
}
