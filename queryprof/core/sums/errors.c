#include "sums/errors.h"

#include <string.h>

#include "memory/region.h"
#include "memory/texts.h"
#include "statements/statements.h"

enum { NAME_BYTES = 200 };

/* Writes the qualified name of an exception's type; no code of the program runs. */
static void name_exception(PyObject *exception_type, char name[NAME_BYTES])
{
    PyTypeObject *type = (PyTypeObject *)exception_type;
    PyObject *module = NULL;
    if (PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) && type->tp_dict) {
        module = PyDict_GetItemString(type->tp_dict, "__module__"); /* borrowed */
    }
    const char *prefix = module && PyUnicode_CheckExact(module) ? PyUnicode_AsUTF8(module) : NULL;
    bool plain = !prefix || !strcmp(prefix, "builtins");
    PyOS_snprintf(name, NAME_BYTES, "%s%s%s", plain ? "" : prefix, plain ? "" : ".", type->tp_name);
}

void qp_error_count(const qp_key *key, PyObject *exception_type)
{
    char bytes[NAME_BYTES];
    name_exception(exception_type, bytes);
    qp_text name = qp_text_of(bytes, strlen(bytes));
    qp_error_row *rows = qp_rows(QP_ERROR_ROWS);
    uint32_t count = qp_row_count(QP_ERROR_ROWS);
    for (uint32_t i = 0; i < count; i++) {
        if (rows[i].name == name && qp_same_key(&rows[i].key, key)) {
            rows[i].count++;
            return;
        }
    }
    /* The last row is for all further types. */
    uint32_t added = count < QP_ERRORS ? qp_rows_add(QP_ERROR_ROWS, 1) : count - 1;
    if (added == UINT32_MAX) {
        return;
    }
    if (added < QP_ERRORS - 1) {
        rows[added] = (qp_error_row){.key = *key, .name = name, .count = 1};
        return;
    }
    rows[added].key = (qp_key){.statement = QP_STATEMENT_OTHER};
    rows[added].name = qp_text_of("(other)", 7);
    rows[added].count++;
}
