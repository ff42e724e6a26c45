#include "stacks/code_owners.h"

#include <stdbool.h>
#include <string.h>

#include "runtime/allocation.h"
#include "runtime/dictionary.h"
#include "runtime/exception.h"

enum { PREFIXES = 256 };

typedef struct {
    char *text; /* owned */
    size_t length;
    uint8_t kind;
} prefix;

static struct {
    prefix prefixes[PREFIXES];
    int prefix_count;
    char *directory; /* owned */
    bool typed_in;   /* a main program without a file is the user's */
} table;

void qp_code_owners_clear(void)
{
    for (int i = 0; i < table.prefix_count; i++) {
        qp_free(table.prefixes[i].text);
    }
    qp_free(table.directory);
    table.directory = NULL;
    table.prefix_count = 0;
}

/* Returns the bytes of a path (a new reference), even if the path is not UTF-8; NULL with an
 * exception. */
static PyObject *path_bytes(PyObject *path)
{
    PyObject *bytes = PyUnicode_AsEncodedString(path, "utf-8", "surrogateescape");
    if (!bytes) {
        qp_exception_clear();
        bytes = PyUnicode_AsEncodedString(path, "utf-8", "surrogatepass");
    }
    return bytes;
}

/* Returns a copy of a path's bytes (owned by the caller: qp_free), or NULL with an exception. */
static char *copy_path(PyObject *path, size_t *length)
{
    PyObject *bytes = path_bytes(path);
    size_t size = bytes ? (size_t)PyBytes_GET_SIZE(bytes) : 0;
    char *copy = bytes ? qp_allocate(size + 1, 1) : NULL;
    if (copy) {
        memcpy(copy, PyBytes_AS_STRING(bytes), size);
        *length = size;
    } else if (bytes) {
        PyErr_NoMemory();
    }
    Py_XDECREF(bytes);
    return copy;
}

int qp_code_owners_configure(PyObject *prefixes, PyObject *directory, bool typed_in)
{
    size_t length;
    qp_code_owners_clear();
    table.typed_in = typed_in;
    table.directory = copy_path(directory, &length);
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
        next->text = copy_path(text, &next->length);
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

/* Returns the owner of the code in a file. */
static qp_code_owner classify_path(const char *file, size_t size)
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
    /* A virtual environment inside a directory of the user's code contains libraries. A configured
     * directory inside an installation is the user's code. */
    if (longest->kind == QP_CODE_USER && is_installed(file + longest->length)) {
        return QP_CODE_LIBRARY;
    }
    return longest->kind;
}

/* Returns the file of the module with these globals (borrowed), or NULL. */
static PyObject *module_file(PyObject *globals)
{
    PyObject *file = qp_dict_find(globals, "__file__");
    return file && PyUnicode_Check(file) ? file : NULL;
}

/* Returns whether globals belong to a program without a file: -c, standard input, a notebook. */
static bool is_typed_in(PyObject *globals)
{
    PyObject *name = table.typed_in ? qp_dict_find(globals, "__name__") : NULL;
    if (!name || !PyUnicode_Check(name) ||
        PyUnicode_CompareWithASCIIString(name, "__main__") != 0) {
        return false;
    }
    PyObject *file = module_file(globals); /* <stdin> for standard input */
    return !file || (PyUnicode_GET_LENGTH(file) && PyUnicode_READ_CHAR(file, 0) == '<');
}

static qp_code_owner classify_file(PyObject *path)
{
    PyObject *bytes = path_bytes(path);
    qp_code_owner class = QP_CODE_LIBRARY;
    if (bytes) {
        class = classify_path(PyBytes_AS_STRING(bytes), (size_t)PyBytes_GET_SIZE(bytes));
    } else {
        qp_exception_clear(); /* no memory */
    }
    Py_XDECREF(bytes);
    return class;
}

bool qp_code_is_generated(PyCodeObject *code)
{
    return PyUnicode_GET_LENGTH(code->co_filename) &&
           PyUnicode_READ_CHAR(code->co_filename, 0) == '<';
}

static bool begins_with(PyObject *text, const char *start)
{
    PyObject *prefix = PyUnicode_FromString(start);
    bool begins = prefix && PyUnicode_Tailmatch(text, prefix, 0, PY_SSIZE_T_MAX, -1) == 1;
    Py_XDECREF(prefix);
    qp_exception_clear(); /* no memory */
    return begins;
}

qp_code_owner qp_code_classify_owner(PyCodeObject *code, PyObject *globals)
{
    if (is_typed_in(globals)) {
        return QP_CODE_USER;
    }
    if (!qp_code_is_generated(code)) {
        return classify_file(code->co_filename);
    }
    /* <frozen ...>, <string>, <attrs generated ...>: made by the interpreter or by a library, in
     * any module. Tests in docstrings belong to the module. */
    PyObject *file = begins_with(code->co_filename, "<doctest ") ? module_file(globals) : NULL;
    /* A library's console has no frame of the program. It is recognized by its innermost frame. */
    return file                                         ? classify_file(file)
           : begins_with(code->co_filename, "<frozen ") ? QP_CODE_STANDARD
                                                        : QP_CODE_LIBRARY;
}
