#include "statements/statements.h"

#include "statements/kinds.h"

#include <string.h>

#include "memory/region.h"
#include "memory/texts.h"
#include "runtime/allocation.h"
#include "runtime/clock.h"
#include "runtime/exception.h"
#include "runtime/index.h"
#include "runtime/recording.h"
#include "runtime/thread_local.h"
#include "sql/normal_form.h"

enum {
    CACHE_SETS = 16384,
    CACHE_WAYS = 2,
    KEPT_TEXT_LENGTH = 256 /* longer texts are identified only by hash and length, and are not kept
                            * alive */
};

typedef struct {
    PyObject *text; /* owned; NULL when empty or too long to keep */
    Py_hash_t hash;
    Py_ssize_t size; /* 1 + the length; 0 if the entry is empty, because untouched memory is zero */
    uint32_t statement;
} cached_text;

/* A normal form that no database has accepted yet. It may contain anything that the program passes
 * as SQL, such as a password. So it stays out of the region until a database accepts it. */
typedef struct {
    char *form; /* owned; NULL if the form is already the row's text */
    uint32_t length;
} held_form;

static struct {
    qp_index index;  /* finds a row by its form */
    held_form *held; /* indexed by row */
    cached_text *cache;
    char *scratch; /* QP_STATEMENT_BYTES for one normal form */
} table;

const qp_statement_row *qp_statement_get_row(uint32_t number)
{
    return (const qp_statement_row *)qp_first_row(QP_STATEMENT_ROWS) + number;
}

uint32_t qp_statements_held;

static const char *normal_form(uint32_t number, uint32_t *length)
{
    const held_form *held = &table.held[number];
    *length = held->length;
    return held->form ? held->form : qp_text_bytes(qp_statement_get_row(number)->text, length);
}

/* Returns the row with this form. If the form is new, returns UINT32_MAX and sets `*slot` to its
 * slot in the index. */
static uint32_t find_form(const char *form, size_t length, uint32_t *slot)
{
    *slot = qp_index_begin(&table.index, qp_hash_bytes(form, length));
    for (; table.index.slots[*slot]; *slot = qp_index_next(&table.index, *slot)) {
        uint32_t number = table.index.slots[*slot] - 1;
        uint32_t known_length;
        const char *known = normal_form(number, &known_length);
        if (known_length == length && !memcmp(known, form, length)) {
            return number;
        }
    }
    return UINT32_MAX;
}

static qp_statement_row *statement_row(uint32_t number)
{
    return (qp_statement_row *)qp_first_row(QP_STATEMENT_ROWS) + number;
}

/* Adds a row at a free slot of the index. Returns its number; QP_STATEMENT_OTHER if there is no
 * room. */
static uint32_t add_statement(uint32_t slot, qp_text text, qp_statement_row kinds)
{
    bool fits = qp_row_count(QP_STATEMENT_ROWS) < QP_STATEMENTS && text != QP_TEXT_FULL;
    uint32_t number = fits ? qp_rows_add(QP_STATEMENT_ROWS, 1) : UINT32_MAX;
    if (number == UINT32_MAX) {
        return QP_STATEMENT_OTHER;
    }
    *statement_row(number) = kinds;
    statement_row(number)->text = text;
    table.index.slots[slot] = number + 1;
    return number;
}

/* Makes the normal form of a statement the text of its row, so that readers see it. If there is no
 * room, the text does not change. */
static void publish_form(uint32_t number)
{
    held_form *held = &table.held[number];
    qp_text text = held->form ? qp_text_add(held->form, held->length) : QP_TEXT_FULL;
    if (text != QP_TEXT_FULL) {
        statement_row(number)->text = text;
        qp_free(held->form);
        *held = (held_form){0};
        qp_statements_held--;
    }
}

static uint32_t find_or_add_form(const char *form, size_t length)
{
    uint32_t slot;
    uint32_t number = find_form(form, length, &slot);
    if (number == UINT32_MAX) {
        bool has_room = qp_row_count(QP_STATEMENT_ROWS) < QP_STATEMENTS;
        qp_text text = has_room ? qp_text_add(form, length) : QP_TEXT_FULL;
        return add_statement(slot, text, qp_statement_classify(form, length));
    }
    publish_form(number);
    return number;
}

/* Returns the row of a text (any bytes) that a database may never accept. If the row is new, only
 * the text's keywords are stored in the region. */
static uint32_t find_or_add_unaccepted(const char *sql, size_t size, qp_dialect dialect)
{
    uint32_t slot;
    size_t length = qp_write_normal_form(sql, size, dialect, QP_TEXT_SQL, table.scratch);
    uint32_t number = find_form(table.scratch, length, &slot);
    if (number != UINT32_MAX) {
        return number;
    }
    qp_statement_row kinds = qp_statement_classify(table.scratch, length);
    held_form held = {.form = qp_allocate(length + 1, 1), .length = (uint32_t)length};
    if (!held.form) {
        return QP_STATEMENT_OTHER;
    }
    memcpy(held.form, table.scratch, length);
    length = qp_write_normal_form(sql, size, dialect, QP_TEXT_NO_SQL, table.scratch);
    number = add_statement(slot, qp_text_find_or_add(table.scratch, length), kinds);
    if (number == QP_STATEMENT_OTHER) {
        qp_free(held.form);
        return number;
    }
    table.held[number] = held;
    qp_statements_held++;
    return number;
}

bool qp_statements_start(void)
{
    table.cache = qp_allocate(CACHE_SETS * CACHE_WAYS, sizeof *table.cache);
    table.held = qp_allocate(QP_STATEMENTS, sizeof *table.held);
    table.scratch = qp_allocate(QP_STATEMENT_BYTES, 1);
    if (!qp_index_start(&table.index, 2 * QP_STATEMENTS) || !qp_known_columns_start() ||
        !table.cache || !table.held || !table.scratch) {
        qp_statements_stop();
        return false;
    }
    qp_statement_of_name("(other)");
    qp_statement_of_name("(unknown)");
    return true;
}

void qp_statements_stop(void)
{
    for (size_t i = 0; table.cache && i < CACHE_SETS * CACHE_WAYS; i++) {
        Py_CLEAR(table.cache[i].text);
    }
    for (uint32_t i = 0; table.held && i < QP_STATEMENTS; i++) {
        qp_free(table.held[i].form);
    }
    qp_statements_held = 0;
    qp_index_stop(&table.index);
    qp_free(table.held);
    qp_free(table.cache);
    qp_free(table.scratch);
    qp_known_columns_stop();
    memset(&table, 0, sizeof table);
}

uint32_t qp_statement_of_name(const char *name)
{
    return find_or_add_form(name, strlen(name));
}

/* Sets the database system of a statement, unless an earlier text has set it. Later texts may go to
 * other systems. */
static void set_system(uint32_t number, qp_system system)
{
    if (number > QP_STATEMENT_UNKNOWN && !statement_row(number)->system) {
        statement_row(number)->system = (uint8_t)system;
    }
}

/* Scans a text that is not in the cache. `is_held` means that no database has accepted or refused
 * the text yet. */
static uint32_t scan_text(PyObject *sql, qp_dialect dialect, qp_text_kind kind, bool is_held)
{
    Py_ssize_t length;
    qp_exception exception = qp_exception_take();
    PyObject *escaped = NULL;
    const char *bytes = PyUnicode_AsUTF8AndSize(sql, &length);
    if (!bytes) { /* lone surrogates: the driver will refuse the text, but the error needs a
                   * statement */
        qp_exception_clear();
        escaped = PyUnicode_AsEncodedString(sql, "utf-8", "backslashreplace");
        bytes = escaped ? PyBytes_AS_STRING(escaped) : NULL;
        length = escaped ? PyBytes_GET_SIZE(escaped) : 0;
    }
    uint32_t number = QP_STATEMENT_UNKNOWN;
    if (bytes) {
        size_t size = (size_t)length;
        number = is_held
                     ? find_or_add_unaccepted(bytes, size, dialect)
                     : find_or_add_form(table.scratch, qp_write_normal_form(bytes, size, dialect,
                                                                            kind, table.scratch));
        statement_row(number)->texts++;
    }
    Py_XDECREF(escaped);
    qp_exception_put_back(&exception); /* also drops an escaping error */
    return number;
}

static bool is_cached(const cached_text *entry, PyObject *sql, Py_hash_t hash, Py_ssize_t length)
{
    if (entry->text == sql) {
        return true;
    }
    if (entry->hash != hash || entry->size != length + 1) {
        return false;
    }
    return !entry->text || (PyUnicode_KIND(entry->text) == PyUnicode_KIND(sql) &&
                            !memcmp(PyUnicode_DATA(entry->text), PyUnicode_DATA(sql),
                                    (size_t)length * PyUnicode_KIND(sql)));
}

/* Returns str's hash, not the hash of a subclass, so that no code of the program runs. Most texts
 * already contain their hash, in the field that the public header declares. */
static inline Py_hash_t text_hash(PyObject *sql)
{
    Py_hash_t hash = ((PyASCIIObject *)sql)->hash;
    return hash != -1 ? hash : PyUnicode_Type.tp_hash(sql);
}

static inline uint32_t statement_of(PyObject *sql, qp_dialect dialect, qp_system system)
{
    if (!sql || !PyUnicode_Check(sql)) {
        return QP_STATEMENT_UNKNOWN;
    }
    Py_hash_t hash = text_hash(sql);
    Py_ssize_t length = PyUnicode_GET_LENGTH(sql);
    cached_text *set = &table.cache[((size_t)hash & (CACHE_SETS - 1)) * CACHE_WAYS];
    if (is_cached(&set[0], sql, hash, length)) {
        if (set[0].statement == QP_STATEMENT_OTHER) {
            qp_head->folded_statements++;
        }
        return set[0].statement;
    }
    cached_text entry;
    if (is_cached(&set[1], sql, hash, length)) {
        entry = set[1];
        set[1] = set[0];
    } else {
        uint64_t from = qp_clock_ticks();
        entry = (cached_text){.hash = hash,
                              .size = length + 1,
                              .statement = scan_text(sql, dialect, QP_TEXT_SQL, true)};
        set_system(entry.statement, system);
        qp_own_ticks += qp_elapsed_ticks(from, qp_clock_ticks());
        if (length <= KEPT_TEXT_LENGTH && PyUnicode_CheckExact(sql)) {
            entry.text = Py_NewRef(sql);
        }
        PyObject *evicted = set[1].text;
        set[1] = set[0];
        Py_XDECREF(evicted); /* an exact str: no code of the program runs */
    }
    set[0] = entry; /* the most recent text is compared first */
    if (entry.statement == QP_STATEMENT_OTHER) {
        qp_head->folded_statements++;
    }
    return entry.statement;
}

uint32_t qp_statement_of_object(PyObject *sql)
{
    return statement_of(sql, QP_SQLITE, QP_SYSTEM_SQLITE);
}

/* Returns the text of a query that is not a str (a new reference), or NULL. `receiver` is the
 * cursor, which psycopg2 needs to quote names, or NULL. Raises nothing. */
static PyObject *query_text(PyObject *query, PyObject *receiver)
{
    qp_exception exception = qp_exception_take();
    PyObject *text = NULL;
    if (PyBytes_Check(query)) {
        text = PyUnicode_DecodeUTF8(PyBytes_AS_STRING(query), PyBytes_GET_SIZE(query), "replace");
    } else if (PyObject_HasAttrString(query, "as_string")) {
        bool was_muted = qp_here.muted;
        qp_here.muted = true;
        text = PyObject_CallMethod(query, "as_string", "O", receiver ? receiver : Py_None);
        qp_here.muted = was_muted;
    }
    qp_exception_clear(); /* without a text, the statement stays unknown */
    qp_exception_put_back(&exception);
    return text;
}

uint32_t qp_statement_of_query(PyObject *query, PyObject *receiver, qp_dialect dialect,
                               qp_system system)
{
    if (!query || PyUnicode_Check(query)) {
        return statement_of(query, dialect, system);
    }
    PyObject *text = query_text(query, receiver);
    /* The query's code may have ended the recording. */
    uint32_t statement = table.cache ? statement_of(text, dialect, system) : QP_STATEMENT_UNKNOWN;
    Py_XDECREF(text);
    return statement;
}

/* Assigns another statement to a text in the cache. */
static void change_cached_statement(PyObject *sql, uint32_t statement)
{
    Py_hash_t hash = text_hash(sql);
    Py_ssize_t length = PyUnicode_GET_LENGTH(sql);
    cached_text *set = &table.cache[((size_t)hash & (CACHE_SETS - 1)) * CACHE_WAYS];
    for (int way = 0; way < CACHE_WAYS; way++) {
        if (is_cached(&set[way], sql, hash, length)) {
            set[way].statement = statement;
        }
    }
}

uint32_t qp_statement_of_accepted(uint32_t number, PyObject *sql, const qp_column_question *columns)
{
    if (!columns) {
        publish_form(number);
        return number;
    }
    qp_column_question_store(columns);
    /* Scan again even if no column was new, because another text may have been accepted since this
     * text was scanned. */
    uint32_t taken = scan_text(sql, QP_SQLITE, QP_TEXT_SQL, false);
    set_system(taken, (qp_system)statement_row(number)->system);
    if (taken != number) {
        change_cached_statement(sql, taken);
    }
    return taken;
}

uint32_t qp_statement_of_refused(uint32_t number, PyObject *sql, qp_dialect dialect,
                                 qp_text_kind kind)
{
    bool is_text = sql && PyUnicode_Check(sql) && number > QP_STATEMENT_UNKNOWN;
    if (!is_text) {
        return number;
    }
    uint32_t refused = scan_text(sql, dialect, kind, false);
    set_system(refused, (qp_system)statement_row(number)->system);
    return refused;
}

bool qp_statement_is_known(uint32_t number)
{
    return number < qp_row_count(QP_STATEMENT_ROWS);
}

bool qp_statement_is_script(uint32_t number)
{
    uint32_t length;
    const char *form = normal_form(number, &length);
    return memchr(form, ';', length) != NULL; /* the normal form drops the semicolon after the
                                               * last statement */
}

bool qp_statement_form_is_unaccepted(uint32_t number)
{
    return table.held && table.held[number].form;
}
