#include "memory/texts.h"

#include <string.h>

#include "memory/region.h"
#include "runtime/exception.h"
#include "runtime/index.h"

enum { NAMES = 65536 /* the size of the table that finds equal texts */ };

static struct {
    qp_index index; /* the index of texts; its numbers are offsets of texts */
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
    char *to = (char *)qp_first_row(QP_TEXTS) + at;
    memcpy(to, &size, sizeof size);
    memcpy(to + sizeof size, bytes, length);
    return at;
}

const char *qp_text_bytes(qp_text text, uint32_t *length)
{
    const char *at = (const char *)qp_first_row(QP_TEXTS) + text;
    memcpy(length, at, sizeof *length);
    return at + sizeof *length;
}

qp_text qp_text_find_or_add(const char *bytes, size_t length)
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

/* Returns the UTF-8 of a str, with lone surrogates as escapes. Valid until the caller releases
 * `*owner` (owned by the caller; may be NULL). */
static const char *utf8_of(PyObject *str, Py_ssize_t *length, PyObject **owner)
{
    const char *bytes = PyUnicode_AsUTF8AndSize(str, length);
    *owner = NULL;
    if (!bytes) {
        qp_exception_clear();
        *owner = PyUnicode_AsEncodedString(str, "utf-8", "backslashreplace");
        bytes = *owner ? PyBytes_AS_STRING(*owner) : "";
        *length = *owner ? PyBytes_GET_SIZE(*owner) : 0;
    }
    return bytes;
}

qp_text qp_text_from_str(PyObject *str)
{
    qp_exception exception = qp_exception_take();
    Py_ssize_t length;
    PyObject *owner;
    const char *bytes = utf8_of(str, &length, &owner);
    qp_text text = qp_text_find_or_add(bytes, (size_t)length);
    Py_XDECREF(owner);
    qp_exception_put_back(&exception); /* also drops an error from above */
    return text;
}

qp_text qp_text_replace(qp_text old, PyObject *str, uint32_t most, uint32_t *added)
{
    qp_exception exception = qp_exception_take();
    Py_ssize_t length;
    PyObject *owner;
    const char *bytes = utf8_of(str, &length, &owner);
    uint32_t old_length = 0;
    char *there = old == QP_TEXT_FULL ? NULL : (char *)qp_text_bytes(old, &old_length);
    qp_text text = QP_TEXT_FULL;
    if (there && (size_t)length <= old_length) {
        uint32_t size = (uint32_t)length;
        memcpy(there - sizeof size, &size, sizeof size);
        memcpy(there, bytes, (size_t)length);
        text = old;
    } else if ((size_t)length <= most) {
        text = qp_text_add(bytes, (size_t)length);
        *added = text == QP_TEXT_FULL ? 0 : (uint32_t)length;
    }
    Py_XDECREF(owner);
    qp_exception_put_back(&exception);
    return text;
}
