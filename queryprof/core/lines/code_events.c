#include "lines/code_events.h"

#include "runtime/exception.h"

/* The tool number that the fewest programs use. CPython reserves it for an optimizer, and 0 to 2
 * for a debugger, coverage and a profiler. */
enum { TOOL = 5, TOOLS = 6 };

/* Calls a function of sys.monitoring. Returns a new reference, or NULL with an exception. */
static PyObject *call_monitoring(const char *function, const char *format, ...)
{
    PyObject *module = PySys_GetObject("monitoring"); /* borrowed */
    PyObject *callable = module ? PyObject_GetAttrString(module, function) : NULL;
    va_list list;
    va_start(list, format);
    PyObject *args = callable ? Py_VaBuildValue(format, list) : NULL;
    va_end(list);
    PyObject *result = args ? PyObject_CallObject(callable, args) : NULL;
    Py_XDECREF(args);
    Py_XDECREF(callable);
    return result;
}

/* Calls a function of sys.monitoring for its effect. Returns false, with an exception, if the
 * function raised. */
#define MONITOR(...) has_succeeded(call_monitoring(__VA_ARGS__))

static bool has_succeeded(PyObject *result)
{
    Py_XDECREF(result);
    return result != NULL;
}

/* Returns the number of an event in sys.monitoring.events; 0 with an exception. */
static long event_number(const char *name)
{
    PyObject *module = PySys_GetObject("monitoring");
    PyObject *names = module ? PyObject_GetAttrString(module, "events") : NULL;
    PyObject *number = names ? PyObject_GetAttrString(names, name) : NULL;
    long found = number ? PyLong_AsLong(number) : 0;
    Py_XDECREF(number);
    Py_XDECREF(names);
    return PyErr_Occurred() ? 0 : found;
}

/* Returns whether any other tool uses sys.monitoring. If the events of a code object change,
 * CPython may report events to other tools twice or not at all. */
static bool has_other_tools(void)
{
    bool found = false;
    for (int number = 0; number < TOOLS && !found; number++) {
        PyObject *owner = call_monitoring("get_tool", "(i)", number);
        found = !owner || !Py_IsNone(owner);
        Py_XDECREF(owner);
    }
    return found;
}

/* Registers queryprof as a tool. Returns the tool number; 0 if another tool uses sys.monitoring. */
static int register_tool(void)
{
    bool is_taken = !has_other_tools() && MONITOR("use_tool_id", "(is)", TOOL, "queryprof");
    qp_exception_clear();
    return is_taken ? TOOL : 0;
}

/* Returns whether queryprof still has the tool number. */
static bool is_ours(int tool)
{
    PyObject *owner = call_monitoring("get_tool", "(i)", tool);
    bool is_text = owner && PyUnicode_Check(owner);
    bool found = is_text && PyUnicode_CompareWithASCIIString(owner, "queryprof") == 0;
    Py_XDECREF(owner);
    return found;
}

static bool add_events(PyObject *code, int tool, qp_code_event *events, int count)
{
    long mask = 0;
    for (int i = 0; i < count; i++) {
        long number = event_number(events[i].name);
        PyObject *function = number ? PyCFunction_New(&events[i].callback, NULL) : NULL;
        bool is_set = function && MONITOR("register_callback", "(ilO)", tool, number, function);
        Py_XDECREF(function);
        if (!is_set) {
            return false;
        }
        mask |= events[i].is_wanted ? number : 0;
    }
    return MONITOR("set_local_events", "(iOl)", tool, code, mask);
}

int qp_code_events_add(PyObject *code, qp_code_event *events, int count)
{
    qp_exception exception = qp_exception_take();
    int tool = register_tool();
    if (tool && !add_events(code, tool, events, count)) {
        qp_exception_clear();
        qp_code_events_remove(code, tool, events, count);
        tool = 0;
    }
    qp_exception_clear();
    qp_exception_put_back(&exception);
    return tool;
}

void qp_code_events_remove(PyObject *code, int tool, const qp_code_event *events, int count)
{
    qp_exception exception = qp_exception_take();
    if (is_ours(tool)) {
        if (!MONITOR("set_local_events", "(iOi)", tool, code, 0)) {
            qp_exception_clear();
        }
        for (int i = 0; i < count; i++) {
            long number = event_number(events[i].name);
            if (!MONITOR("register_callback", "(ilO)", tool, number, Py_None)) {
                qp_exception_clear();
            }
        }
        if (!MONITOR("free_tool_id", "(i)", tool)) {
            qp_exception_clear();
        }
    }
    qp_exception_clear();
    qp_exception_put_back(&exception);
}
