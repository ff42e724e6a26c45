#include "stacks/packages.h"
#include "runtime/exception.h"

#include <stdbool.h>
#include <string.h>

/* Returns the value of __name__ (borrowed), or NULL. Searches only the first entries, because
 * __name__ is one of them in a module's globals. A complete search could take long, and a lookup
 * could run code of the program. */
static PyObject *module_name(PyObject *globals)
{
    enum { SEARCHED = 16 };
    PyObject *key, *value;
    Py_ssize_t at = 0;
    bool is_plain = globals && PyDict_CheckExact(globals);
    for (int i = 0; is_plain && i < SEARCHED && PyDict_Next(globals, &at, &key, &value); i++) {
        if (PyUnicode_CheckExact(key) && !PyUnicode_CompareWithASCIIString(key, "__name__")) {
            return value;
        }
    }
    return NULL;
}

void qp_package_of(PyObject *globals, char package[QP_PACKAGE_BYTES])
{
    package[0] = 0;
    PyObject *name = module_name(globals);
    const char *text = name && PyUnicode_CheckExact(name) ? PyUnicode_AsUTF8(name) : NULL;
    if (!text) {
        qp_exception_clear();
        return;
    }
    size_t length = strcspn(text, ".");
    if (!strncmp(text, "django.", 7)) {
        length = 7 + strcspn(text + 7, ".");
    }
    if (length < QP_PACKAGE_BYTES) {
        memcpy(package, text, length);
        package[length] = 0;
    }
}
