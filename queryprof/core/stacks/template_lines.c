#include "stacks/template_lines.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static bool is_python(const PyCodeObject *code)
{
    Py_ssize_t size = 0;
    const char *file = PyUnicode_AsUTF8AndSize(code->co_filename, &size);
    PyErr_Clear(); /* lone surrogates, or no memory */
    return !file || (size > 2 && !strcmp(file + size - 3, ".py"));
}

PyObject *qp_template_lines(const PyCodeObject *code, PyObject *globals)
{
    if (!globals || !PyDict_CheckExact(globals)) {
        return NULL;
    }
    PyObject *lines = PyDict_GetItemString(globals, "debug_info");
    bool is_template = lines && PyUnicode_CheckExact(lines) && PyUnicode_IS_ASCII(lines) &&
                       PyDict_GetItemString(globals, "blocks");
    return is_template && !is_python(code) ? lines : NULL;
}

uint32_t qp_template_line(PyObject *debug_info, uint32_t line)
{
    const char *text = (const char *)PyUnicode_1BYTE_DATA(debug_info);
    uint32_t found = 0;
    while (text && *text) {
        char *end = NULL;
        unsigned long of_template = strtoul(text, &end, 10);
        if (*end != '=') {
            break;
        }
        unsigned long of_code = strtoul(end + 1, &end, 10);
        if (of_code > line) {
            break;
        }
        found = (uint32_t)of_template;
        text = *end == '&' ? end + 1 : NULL;
    }
    return found;
}
