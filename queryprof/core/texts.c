#include "texts.h"

#include <string.h>

#include "index.h"
#include "region.h"

enum { NAMES = 65536 /* equal ones are found again among so many */ };

static struct {
    qp_index index; /* its numbers are texts */
    uint32_t names;
} table;

bool qp_texts_start(void)
{
    return qp_index_start(&table.index, 2 * NAMES) && qp_text_add("", 0) == QP_TEXT_NONE;
}

void qp_texts_stop(void)
{
    qp_index_stop(&table.index);
    table.names = 0;
}

qp_text qp_text_add(const char *bytes, size_t length)
{
    uint32_t size = (uint32_t)length;
    enum { ALIGNMENT = sizeof size };
    if (length > QP_TEXT_BYTES - 2 * ALIGNMENT) {
        return QP_TEXT_FULL;
    }
    uint32_t padded = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    uint32_t at = qp_rows_add(QP_TEXTS, ALIGNMENT + padded);
    if (at == UINT32_MAX) {
        return QP_TEXT_FULL;
    }
    char *to = (char *)qp_rows(QP_TEXTS) + at;
    memcpy(to, &size, sizeof size);
    memcpy(to + sizeof size, bytes, length);
    return at;
}

const char *qp_text_bytes(qp_text text, uint32_t *length)
{
    const char *at = (const char *)qp_rows(QP_TEXTS) + text;
    memcpy(length, at, sizeof *length);
    return at + sizeof *length;
}

qp_text qp_text_of(const char *bytes, size_t length)
{
    if (!length) {
        return QP_TEXT_NONE;
    }
    uint32_t slot = qp_index_begin(&table.index, qp_hash_bytes(bytes, length));
    for (; table.index.slots[slot]; slot = qp_index_next(&table.index, slot)) {
        qp_text known = table.index.slots[slot] - 1;
        uint32_t known_length;
        const char *known_bytes = qp_text_bytes(known, &known_length);
        if (known_length == length && !memcmp(known_bytes, bytes, length)) {
            return known;
        }
    }
    qp_text added = qp_text_add(bytes, length);
    if (added != QP_TEXT_FULL && table.names < NAMES) {
        table.names++;
        table.index.slots[slot] = added + 1;
    }
    return added;
}

qp_text qp_text_of_str(PyObject *str)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    Py_ssize_t length = 0;
    PyObject *escaped = NULL;
    const char *bytes = PyUnicode_AsUTF8AndSize(str, &length);
    if (!bytes) {
        PyErr_Clear();
        escaped = PyUnicode_AsEncodedString(str, "utf-8", "backslashreplace");
        bytes = escaped ? PyBytes_AS_STRING(escaped) : "";
        length = escaped ? PyBytes_GET_SIZE(escaped) : 0;
    }
    qp_text text = qp_text_of(bytes, (size_t)length);
    Py_XDECREF(escaped);
    PyErr_Restore(type, value, traceback); /* also drops an error of the above */
    return text;
}

PyObject *qp_text_str(qp_text text)
{
    uint32_t length;
    const char *bytes = qp_text_bytes(text, &length);
    return PyUnicode_DecodeUTF8(bytes, length, "replace");
}
