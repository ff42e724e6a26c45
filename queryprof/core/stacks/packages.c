#include "stacks/packages.h"

#include <string.h>

#include "runtime/dictionary.h"

void qp_package_of(PyObject *globals, char package[QP_PACKAGE_BYTES])
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
    if (length < QP_PACKAGE_BYTES) {
        memcpy(package, text, length);
        package[length] = 0;
    }
}
