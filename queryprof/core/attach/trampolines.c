#include "attach/trampolines.h"

enum { METHODS = 32, SLOTS = 8 };

/* Returns the n-th argument of a vectorcall (borrowed), or NULL. */
static PyObject *nth_argument(PyObject *const *args, Py_ssize_t count, Py_ssize_t n)
{
    return n < count ? args[n] : NULL;
}

static PyObject *nth_tuple_argument(PyObject *args, Py_ssize_t n)
{
    return n < PyTuple_GET_SIZE(args) ? PyTuple_GET_ITEM(args, n) : NULL;
}

/* Forwards both kinds of functions that fetch one row: fetchone and __next__. */
static inline PyObject *forward_fetch(const qp_trampoline *t, PyObject *self,
                                      PyObject *(*fetch)(qp_function, PyObject *))
{
    qp_function original = t->original; /* read before another thread may detach the trampoline */
    qp_thread *thread = qp_here.thread;
    if (qp_fetch_continues(thread, self, t->probe.operation)) {
        qp_call *call = qp_fetch_begin(&t->probe, thread);
        PyObject *row = fetch(original, self);
        qp_fetch_end(call, row);
        return row;
    }
    qp_call *call = qp_call_begin(&t->probe, self, NULL, NULL);
    if (!call) {
        return fetch(original, self);
    }
    PyObject *result = fetch(original, self);
    qp_call_end(call, result);
    return result;
}

static inline PyObject *call_noargs(qp_function original, PyObject *self)
{
    return ((PyCFunction)original)(self, NULL);
}

static inline PyObject *forward_noargs(const qp_trampoline *t, PyObject *self,
                                       PyObject *Py_UNUSED(unused))
{
    if (t->probe.operation == QP_FETCHONE) {
        return forward_fetch(t, self, call_noargs);
    }
    qp_function original = t->original;
    qp_call *call = qp_call_begin(&t->probe, self, NULL, NULL);
    if (!call) {
        return call_noargs(original, self);
    }
    PyObject *result = call_noargs(original, self);
    qp_call_end(call, result);
    return result;
}

static inline PyObject *forward_o(const qp_trampoline *t, PyObject *self, PyObject *argument)
{
    PyCFunction original = (PyCFunction)t->original;
    qp_call *call = qp_call_begin(&t->probe, self, argument, NULL);
    if (!call) {
        return original(self, argument);
    }
    PyObject *result = original(self, argument);
    qp_call_end(call, result);
    return result;
}

static inline PyObject *forward_varargs(const qp_trampoline *t, PyObject *self, PyObject *args)
{
    PyCFunction original = (PyCFunction)t->original;
    qp_call *call =
        qp_call_begin(&t->probe, self, nth_tuple_argument(args, 0), nth_tuple_argument(args, 1));
    if (!call) {
        return original(self, args);
    }
    PyObject *result = original(self, args);
    qp_call_end(call, result);
    return result;
}

static inline PyObject *forward_keywords(const qp_trampoline *t, PyObject *self, PyObject *args,
                                         PyObject *keywords)
{
    PyCFunctionWithKeywords original = (PyCFunctionWithKeywords)t->original;
    qp_call *call =
        qp_call_begin(&t->probe, self, nth_tuple_argument(args, 0), nth_tuple_argument(args, 1));
    if (!call) {
        return original(self, args, keywords);
    }
    PyObject *result = original(self, args, keywords);
    qp_call_end(call, result);
    return result;
}

typedef PyObject *(*fast_function)(PyObject *, PyObject *const *, Py_ssize_t);
typedef PyObject *(*fast_keywords_function)(PyObject *, PyObject *const *, Py_ssize_t, PyObject *);

static inline PyObject *forward_fast(const qp_trampoline *t, PyObject *self, PyObject *const *args,
                                     Py_ssize_t count)
{
    fast_function original = (fast_function)t->original;
    qp_call *call =
        qp_call_begin(&t->probe, self, nth_argument(args, count, 0), nth_argument(args, count, 1));
    if (!call) {
        return original(self, args, count);
    }
    PyObject *result = original(self, args, count);
    qp_call_end(call, result);
    return result;
}

static inline PyObject *forward_fast_keywords(const qp_trampoline *t, PyObject *self,
                                              PyObject *const *args, Py_ssize_t count,
                                              PyObject *names)
{
    fast_keywords_function original = (fast_keywords_function)t->original;
    qp_call *call =
        qp_call_begin(&t->probe, self, nth_argument(args, count, 0), nth_argument(args, count, 1));
    if (!call) {
        return original(self, args, count, names);
    }
    PyObject *result = original(self, args, count, names);
    qp_call_end(call, result);
    return result;
}

static inline PyObject *call_iternext(qp_function original, PyObject *self)
{
    return ((iternextfunc)original)(self);
}

static inline PyObject *forward_iternext(const qp_trampoline *t, PyObject *self)
{
    return forward_fetch(t, self, call_iternext);
}

static inline int forward_init(const qp_trampoline *t, PyObject *self, PyObject *args,
                               PyObject *keywords)
{
    initproc original = (initproc)t->original;
    qp_call *call = qp_call_begin(&t->probe, self, NULL, NULL);
    if (!call) {
        return original(self, args, keywords);
    }
    int result = original(self, args, keywords);
    qp_call_end(call, result < 0 ? NULL : Py_None);
    return result;
}

static inline PyObject *forward_getter(const qp_trampoline *t, PyObject *self, void *closure)
{
    getter original = (getter)t->original;
    qp_call *call = qp_call_begin(&t->probe, self, NULL, NULL);
    if (!call) {
        return original(self, closure);
    }
    PyObject *result = original(self, closure);
    qp_call_end(call, result);
    return result;
}

static inline PyObject *forward_subscript(const qp_trampoline *t, PyObject *self, PyObject *key)
{
    binaryfunc original = (binaryfunc)t->original;
    qp_call *call = qp_call_begin(&t->probe, self, NULL, NULL);
    if (!call) {
        return original(self, key);
    }
    PyObject *result = original(self, key);
    qp_call_end(call, result);
    return result;
}

static inline int forward_ass_subscript(const qp_trampoline *t, PyObject *self, PyObject *key,
                                        PyObject *value)
{
    objobjargproc original = (objobjargproc)t->original;
    qp_call *call = qp_call_begin(&t->probe, self, NULL, NULL);
    if (!call) {
        return original(self, key, value);
    }
    int result = original(self, key, value);
    qp_call_end(call, result < 0 ? NULL : Py_None);
    return result;
}

/* Each function must know the number of its trampoline at compile time, so a macro generates the
 * functions. */
#define EIGHT(make, tens)                                                               \
    make(tens##0) make(tens##1) make(tens##2) make(tens##3) make(tens##4) make(tens##5) \
        make(tens##6) make(tens##7)
#define THIRTY_TWO(make) EIGHT(make, 0) EIGHT(make, 01) EIGHT(make, 02) EIGHT(make, 03)

static qp_trampoline noargs[METHODS], o[METHODS], varargs[METHODS], keywords[METHODS];
static qp_trampoline fast[METHODS], fast_keywords[METHODS], iternext[SLOTS], init[SLOTS];
static qp_trampoline subscript[SLOTS], ass_subscript[SLOTS], get[SLOTS];

/* The numbers n are octal literals (00 to 037), because the macros above count in eights. */
#define NOARGS(n)                                                 \
    static PyObject *noargs_##n(PyObject *self, PyObject *unused) \
    {                                                             \
        return forward_noargs(&noargs[n], self, unused);          \
    }
#define O(n)                                                   \
    static PyObject *o_##n(PyObject *self, PyObject *argument) \
    {                                                          \
        return forward_o(&o[n], self, argument);               \
    }
#define VARARGS(n)                                               \
    static PyObject *varargs_##n(PyObject *self, PyObject *args) \
    {                                                            \
        return forward_varargs(&varargs[n], self, args);         \
    }
#define KEYWORDS(n)                                                                \
    static PyObject *keywords_##n(PyObject *self, PyObject *args, PyObject *names) \
    {                                                                              \
        return forward_keywords(&keywords[n], self, args, names);                  \
    }
#define FAST(n)                                                                        \
    static PyObject *fast_##n(PyObject *self, PyObject *const *args, Py_ssize_t count) \
    {                                                                                  \
        return forward_fast(&fast[n], self, args, count);                              \
    }
#define FAST_KEYWORDS(n)                                                                        \
    static PyObject *fast_keywords_##n(PyObject *self, PyObject *const *args, Py_ssize_t count, \
                                       PyObject *names)                                         \
    {                                                                                           \
        return forward_fast_keywords(&fast_keywords[n], self, args, count, names);              \
    }
#define ITERNEXT(n)                                  \
    static PyObject *iternext_##n(PyObject *self)    \
    {                                                \
        return forward_iternext(&iternext[n], self); \
    }
#define INIT(n)                                                          \
    static int init_##n(PyObject *self, PyObject *args, PyObject *names) \
    {                                                                    \
        return forward_init(&init[n], self, args, names);                \
    }

#define GETTER(n)                                           \
    static PyObject *get_##n(PyObject *self, void *closure) \
    {                                                       \
        return forward_getter(&get[n], self, closure);      \
    }
#define SUBSCRIPT(n)                                              \
    static PyObject *subscript_##n(PyObject *self, PyObject *key) \
    {                                                             \
        return forward_subscript(&subscript[n], self, key);       \
    }
#define ASS_SUBSCRIPT(n)                                                         \
    static int ass_subscript_##n(PyObject *self, PyObject *key, PyObject *value) \
    {                                                                            \
        return forward_ass_subscript(&ass_subscript[n], self, key, value);       \
    }

THIRTY_TWO(NOARGS)
THIRTY_TWO(O)
THIRTY_TWO(VARARGS)
THIRTY_TWO(KEYWORDS)
THIRTY_TWO(FAST)
THIRTY_TWO(FAST_KEYWORDS)
EIGHT(ITERNEXT, 0)
EIGHT(INIT, 0)
EIGHT(GETTER, 0)
EIGHT(SUBSCRIPT, 0)
EIGHT(ASS_SUBSCRIPT, 0)

#define NOARGS_POINTER(n) (qp_function) noargs_##n,
#define O_POINTER(n) (qp_function) o_##n,
#define VARARGS_POINTER(n) (qp_function) varargs_##n,
#define KEYWORDS_POINTER(n) (qp_function) keywords_##n,
#define FAST_POINTER(n) (qp_function) fast_##n,
#define FAST_KEYWORDS_POINTER(n) (qp_function) fast_keywords_##n,
#define ITERNEXT_POINTER(n) (qp_function) iternext_##n,
#define GETTER_POINTER(n) (qp_function) get_##n,
#define SUBSCRIPT_POINTER(n) (qp_function) subscript_##n,
#define ASS_SUBSCRIPT_POINTER(n) (qp_function) ass_subscript_##n,
#define INIT_POINTER(n) (qp_function) init_##n,

static const qp_function noargs_functions[METHODS] = {THIRTY_TWO(NOARGS_POINTER)};
static const qp_function o_functions[METHODS] = {THIRTY_TWO(O_POINTER)};
static const qp_function varargs_functions[METHODS] = {THIRTY_TWO(VARARGS_POINTER)};
static const qp_function keywords_functions[METHODS] = {THIRTY_TWO(KEYWORDS_POINTER)};
static const qp_function fast_functions[METHODS] = {THIRTY_TWO(FAST_POINTER)};
static const qp_function fast_keywords_functions[METHODS] = {THIRTY_TWO(FAST_KEYWORDS_POINTER)};
static const qp_function iternext_functions[SLOTS] = {EIGHT(ITERNEXT_POINTER, 0)};
static const qp_function init_functions[SLOTS] = {EIGHT(INIT_POINTER, 0)};

static const qp_function get_functions[SLOTS] = {EIGHT(GETTER_POINTER, 0)};
static const qp_function subscript_functions[SLOTS] = {EIGHT(SUBSCRIPT_POINTER, 0)};
static const qp_function ass_subscript_functions[SLOTS] = {EIGHT(ASS_SUBSCRIPT_POINTER, 0)};

static qp_trampoline *take_trampoline(qp_trampoline *all, const qp_function *functions, int count,
                                      qp_function *function)
{
    for (int i = 0; i < count; i++) {
        if (!all[i].is_taken) {
            all[i].is_taken = true;
            *function = functions[i];
            return &all[i];
        }
    }
    return NULL;
}

qp_trampoline *qp_trampoline_for_method(int flags, qp_function *function)
{
    switch (flags & ~(METH_CLASS | METH_STATIC | METH_COEXIST)) {
    case METH_NOARGS:
        return take_trampoline(noargs, noargs_functions, METHODS, function);
    case METH_O:
        return take_trampoline(o, o_functions, METHODS, function);
    case METH_VARARGS:
        return take_trampoline(varargs, varargs_functions, METHODS, function);
    case METH_VARARGS | METH_KEYWORDS:
        return take_trampoline(keywords, keywords_functions, METHODS, function);
    case METH_FASTCALL:
        return take_trampoline(fast, fast_functions, METHODS, function);
    case METH_FASTCALL | METH_KEYWORDS:
        return take_trampoline(fast_keywords, fast_keywords_functions, METHODS, function);
    default:
        return NULL;
    }
}

qp_trampoline *qp_trampoline_for_getter(qp_function *function)
{
    return take_trampoline(get, get_functions, SLOTS, function);
}

qp_trampoline *qp_trampoline_for_slot(qp_slot slot, qp_function *function)
{
    switch (slot) {
    case QP_SLOT_ITERNEXT:
        return take_trampoline(iternext, iternext_functions, SLOTS, function);
    case QP_SLOT_INIT:
        return take_trampoline(init, init_functions, SLOTS, function);
    case QP_SLOT_SUBSCRIPT:
        return take_trampoline(subscript, subscript_functions, SLOTS, function);
    case QP_SLOT_ASS_SUBSCRIPT:
        return take_trampoline(ass_subscript, ass_subscript_functions, SLOTS, function);
    default:
        return NULL;
    }
}
