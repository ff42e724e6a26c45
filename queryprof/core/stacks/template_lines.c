#include "stacks/template_lines.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/dictionary.h"
#include "runtime/exception.h"

static bool is_python(const PyCodeObject *code)
{
    Py_ssize_t size = 0;
    const char *file = PyUnicode_AsUTF8AndSize(code->co_filename, &size);
    qp_exception_clear(); /* lone surrogates, or no memory */
    return !file || (size > 2 && !strcmp(file + size - 3, ".py"));
}

/* Reads the next pair of numbers and moves `text` after it; false at the end. */
static bool next_pair(const char **text, unsigned long *of_template, unsigned long *of_code)
{
    char *end = NULL;
    if (!isdigit((unsigned char)**text)) {
        return false;
    }
    *of_template = strtoul(*text, &end, 10);
    if (*end != '=' || !isdigit((unsigned char)end[1])) {
        return false;
    }
    *of_code = strtoul(end + 1, &end, 10);
    *text = *end == '&' ? end + 1 : end;
    return *of_template <= INT32_MAX;
}

PyObject *qp_template_lines(const PyCodeObject *code, PyObject *globals)
{
    if (is_python(code)) {
        return NULL;
    }
    PyObject *lines = qp_dict_find(globals, "debug_info");
    if (!lines || !PyUnicode_CheckExact(lines) || !PyUnicode_IS_ASCII(lines) ||
        !qp_dict_find(globals, "blocks")) {
        return NULL;
    }
    const char *text = (const char *)PyUnicode_1BYTE_DATA(lines);
    unsigned long of_template, of_code;
    return next_pair(&text, &of_template, &of_code) ? lines : NULL;
}

uint32_t qp_template_line(PyObject *debug_info, uint32_t line)
{
    const char *text = (const char *)PyUnicode_1BYTE_DATA(debug_info);
    unsigned long of_template, of_code;
    uint32_t found = 0;
    while (next_pair(&text, &of_template, &of_code) && of_code <= line) {
        found = (uint32_t)of_template;
    }
    return found;
}
