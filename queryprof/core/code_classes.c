#include "code_classes.h"

#include <stdbool.h>
#include <string.h>

#include "allocation.h"

enum { PREFIXES = 64 };

typedef struct {
    char *text; /* owned */
    size_t length;
    uint8_t kind;
} prefix;

static struct {
    prefix prefixes[PREFIXES];
    int prefix_count;
    char *directory; /* owned */
} table;

void qp_code_classes_forget(void)
{
    for (int i = 0; i < table.prefix_count; i++) {
        qp_release(table.prefixes[i].text);
    }
    qp_release(table.directory);
    table.directory = NULL;
    table.prefix_count = 0;
}

/* A copy of a str as UTF-8 (the caller owns it: qp_release), or NULL with an exception. */
static char *copy_text(PyObject *text, size_t *length)
{
    Py_ssize_t size;
    const char *bytes = PyUnicode_AsUTF8AndSize(text, &size);
    char *copy = bytes ? qp_allocate((size_t)size + 1, 1) : NULL;
    if (copy) {
        memcpy(copy, bytes, (size_t)size);
        *length = (size_t)size;
    } else if (bytes) {
        PyErr_NoMemory();
    }
    return copy;
}

int qp_code_classes_configure(PyObject *prefixes, PyObject *directory)
{
    size_t length;
    qp_code_classes_forget();
    table.directory = copy_text(directory, &length);
    if (!table.directory) {
        return -1;
    }
    Py_ssize_t count = PyList_Size(prefixes);
    if (count < 0 || count > PREFIXES) {
        PyErr_Format(PyExc_ValueError, "at most %d prefixes, got %zd", PREFIXES, count);
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *text;
        int kind;
        if (!PyArg_ParseTuple(PyList_GET_ITEM(prefixes, i), "Ui", &text, &kind)) {
            return -1;
        }
        prefix *next = &table.prefixes[table.prefix_count];
        next->text = copy_text(text, &next->length);
        if (!next->text) {
            return -1;
        }
        next->kind = (uint8_t)kind;
        table.prefix_count++;
    }
    return 0;
}

static bool is_installed(const char *file)
{
    return strstr(file, "site-packages") || strstr(file, "dist-packages");
}

/* The class of a file's path. */
static qp_code_class classify_path(const char *file, size_t size)
{
    char absolute[4096];
    if (file[0] != '/' && file[0] != '\\' && !(size > 1 && file[1] == ':')) {
        PyOS_snprintf(absolute, sizeof absolute, "%s/%s", table.directory, file);
        file = absolute;
    }
    const prefix *longest = NULL;
    for (int i = 0; i < table.prefix_count; i++) {
        const prefix *p = &table.prefixes[i];
        if (!strncmp(p->text, file, p->length) && (!longest || p->length > longest->length)) {
            longest = p;
        }
    }
    if (!longest) {
        return QP_CODE_LIBRARY;
    }
    /* A virtual environment inside the working directory holds libraries; a root inside the
     * installation, which somebody asked for, does not. */
    if (longest->kind == QP_CODE_USER && is_installed(file + longest->length)) {
        return QP_CODE_LIBRARY;
    }
    return longest->kind;
}

/* The file of the module that globals are of (borrowed), or NULL. */
static PyObject *file_of(PyObject *globals)
{
    PyObject *file =
        globals && PyDict_CheckExact(globals) ? PyDict_GetItemString(globals, "__file__") : NULL;
    return file && PyUnicode_Check(file) ? file : NULL;
}

qp_code_class qp_code_classify(PyCodeObject *code, PyObject *globals)
{
    Py_ssize_t size;
    const char *file = PyUnicode_AsUTF8AndSize(code->co_filename, &size);
    if (file && file[0] == '<') { /* <string>, <stdin>; <frozen ...>: the interpreter */
        if (!strncmp(file, "<frozen", 7)) {
            return QP_CODE_STANDARD;
        }
        PyObject *module_file = file_of(globals);
        if (!module_file) {
            return QP_CODE_USER;
        }
        file = PyUnicode_AsUTF8AndSize(module_file, &size);
    }
    if (!file) {
        PyErr_Clear(); /* a name that is no UTF-8 cannot be under any root */
        return QP_CODE_LIBRARY;
    }
    return classify_path(file, (size_t)size);
}
