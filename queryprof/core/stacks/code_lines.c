#include "stacks/code_lines.h"

#include <string.h>

#include "memory/region.h"
#include "memory/texts.h"
#include "runtime/allocation.h"
#include "runtime/exception.h"
#include "runtime/index.h"
#include "runtime/periodic_work.h"
#include "stacks/frames.h"
#include "stacks/line_tables.h"
#include "stacks/template_lines.h"

enum {
    CODES = 16384,  /* maximum number of known code objects */
    PLACES = 131072 /* number of slots for instructions with known lines */
};

enum { RECENT_CODES = 128 };

typedef struct {
    PyCodeObject *code;       /* owned */
    PyObject *template_lines; /* owned; NULL if the code is not a template's */
    uint8_t kind;
    bool is_guess;         /* the owner was found without the globals */
    qp_line_search search; /* valid only in the entry of the table */
} known_code;

typedef struct {
    const PyCodeObject *code; /* identity of a known code object */
    int instruction;
    uint32_t line;
} known_place;

static struct {
    known_code recent[RECENT_CODES]; /* borrowed from `codes`, by address: found at once */
    known_code *codes;
    uint32_t code_count;
    qp_index code_index;
    known_place *places;
    uint32_t place_count;
    qp_index place_index;
    qp_index line_index; /* finds a line row by its content */
} table;

static qp_line_row *line_rows(void)
{
    return qp_first_row(QP_LINE_ROWS);
}

static uint64_t hash_line(const qp_line_row *line)
{
    return qp_hash_mix(qp_hash_mix(line->function, line->file), line->line);
}

/* Returns the number of a line. Replaces the kind in its row, which may have been a guess. */
static uint32_t add_line(const qp_line_row *wanted)
{
    uint32_t slot = qp_index_begin(&table.line_index, hash_line(wanted));
    for (; table.line_index.slots[slot]; slot = qp_index_next(&table.line_index, slot)) {
        uint32_t number = table.line_index.slots[slot] - 1;
        qp_line_row *known = &line_rows()[number];
        if (known->function == wanted->function && known->file == wanted->file &&
            known->line == wanted->line) {
            known->kind = wanted->kind;
            known->first_line = wanted->first_line ? wanted->first_line : known->first_line;
            return number;
        }
    }
    bool has_texts = wanted->function != QP_TEXT_FULL && wanted->file != QP_TEXT_FULL;
    uint32_t number = has_texts ? qp_rows_add(QP_LINE_ROWS, 1) : UINT32_MAX;
    if (number == UINT32_MAX) {
        return QP_LINE_OTHER;
    }
    line_rows()[number] = *wanted;
    table.line_index.slots[slot] = number + 1;
    return number;
}

bool qp_code_lines_start(void)
{
    table.codes = qp_allocate(CODES, sizeof *table.codes);
    table.places = qp_allocate(PLACES, sizeof *table.places);
    if (!table.codes || !table.places || !qp_index_start(&table.code_index, 2 * CODES) ||
        !qp_index_start(&table.place_index, 2 * PLACES) ||
        !qp_index_start(&table.line_index, 2 * QP_LINES)) {
        return false;
    }
    const qp_line_row other = {.function = qp_text_find_or_add("(other)", 7),
                               .kind = QP_CODE_LIBRARY};
    return add_line(&other) == QP_LINE_OTHER;
}

static void clear_places(void)
{
    if (table.place_count) { /* do not touch unused pages, so that they stay unallocated */
        memset(table.place_index.slots, 0, 2 * PLACES * sizeof *table.place_index.slots);
    }
    table.place_count = 0;
}

void qp_code_lines_clear(void)
{
    memset(table.recent, 0, sizeof table.recent);
    if (table.code_count) {
        memset(table.code_index.slots, 0, 2 * CODES * sizeof *table.code_index.slots);
    }
    clear_places();
    uint32_t count = table.code_count;
    table.code_count = 0;
    /* Releasing an object may run code of the program, which may search code objects. */
    PyCodeObject **dropped = qp_allocate(count, sizeof *dropped);
    for (uint32_t i = 0; dropped && i < count; i++) {
        dropped[i] = table.codes[i].code;
        Py_CLEAR(table.codes[i].template_lines); /* a str, whose release runs no code */
    }
    for (uint32_t i = 0; dropped && i < count; i++) {
        Py_DECREF((PyObject *)dropped[i]);
    } /* if out of memory, the code objects stay alive */
    qp_free(dropped);
}

void qp_code_lines_stop(void)
{
    if (table.codes && table.places && table.code_index.slots && table.place_index.slots) {
        qp_code_lines_clear();
    }
    qp_code_owners_clear();
    qp_free(table.codes);
    qp_free(table.places);
    qp_index_stop(&table.code_index);
    qp_index_stop(&table.place_index);
    qp_index_stop(&table.line_index);
    memset(&table, 0, sizeof table);
}

bool qp_code_lines_nearly_full(void)
{
    return table.code_count > CODES - CODES / 4;
}

static known_code *find_in_table(PyCodeObject *code, PyObject *globals)
{
    uint32_t slot = qp_index_begin(&table.code_index, qp_hash_mix(0, (uintptr_t)code));
    for (; table.code_index.slots[slot]; slot = qp_index_next(&table.code_index, slot)) {
        known_code *known = &table.codes[table.code_index.slots[slot] - 1];
        if (known->code == code) {
            if (known->is_guess && globals) {
                known->kind = (uint8_t)qp_code_classify_owner(code, globals);
                known->is_guess = false;
                clear_places();
            }
            return known;
        }
    }
    if (table.code_count == CODES) {
        return NULL;
    }
    qp_exception exception = qp_exception_take();
    known_code *added = &table.codes[table.code_count];
    added->kind = (uint8_t)qp_code_classify_owner(code, globals);
    added->code = (PyCodeObject *)Py_NewRef((PyObject *)code);
    added->template_lines = Py_XNewRef(qp_template_lines(code, globals));
    added->search = (qp_line_search){0};
    added->is_guess = !globals && qp_code_is_generated(code);
    table.code_index.slots[slot] = ++table.code_count;
    if (qp_code_lines_nearly_full()) {
        qp_periodic_request(); /* the round empties the cache; one call adds far fewer code objects
                                */
    }
    qp_exception_put_back(&exception);
    return added;
}

static inline const known_code *find_code(PyCodeObject *code, PyObject *globals)
{
    known_code *recent = &table.recent[((uintptr_t)code >> 5) & (RECENT_CODES - 1)];
    if (recent->code != code || recent->is_guess) {
        const known_code *known = find_in_table(code, globals);
        if (!known) {
            return NULL;
        }
        *recent = *known;
    }
    return recent;
}

bool qp_code_find_owner(PyCodeObject *code, PyObject *globals, qp_code_owner *kind)
{
    const known_code *known = find_code(code, globals);
    *kind = known ? (qp_code_owner)known->kind : QP_CODE_LIBRARY;
    return known != NULL;
}

qp_code_owner qp_code_cached_owner(PyCodeObject *code)
{
    qp_code_owner kind;
    /* Code without a file is generated, or belongs to the main program. */
    PyObject *main = qp_code_is_generated(code) ? PyImport_AddModule("__main__") : NULL;
    qp_code_find_owner(code, main ? PyModule_GetDict(main) : NULL, &kind);
    qp_exception_clear();
    return kind;
}

uint32_t qp_line_add(qp_text function, qp_text file, uint32_t line, qp_code_owner kind)
{
    const qp_line_row row = {
        .function = function, .file = file, .line = line, .kind = kind, .first_line = line};
    return add_line(&row);
}

static uint32_t first_line_of(const PyCodeObject *code)
{
    return code->co_firstlineno > 0 ? (uint32_t)code->co_firstlineno : 0;
}

static uint32_t add_instruction_line(PyCodeObject *code, int instruction)
{
    known_code *known = find_in_table(code, NULL);
    qp_line_search none = {0};
    int line = instruction == QP_NO_INSTRUCTION
                   ? 0
                   : qp_line_table_search(code, instruction, known ? &known->search : &none);
    uint32_t shown = line > 0 ? (uint32_t)line : 0;
    bool is_template = known && known->template_lines;
    const qp_line_row row = {.function = qp_text_from_str(code->co_qualname),
                             .file = qp_text_from_str(code->co_filename),
                             .line = is_template ? qp_template_line(known->template_lines, shown)
                                                 : shown,
                             .kind = known ? known->kind : QP_CODE_LIBRARY,
                             .first_line = is_template ? 0 : first_line_of(code)};
    return add_line(&row);
}

uint32_t qp_line_of_instruction(PyCodeObject *code, int instruction)
{
    uint64_t hash = qp_hash_mix((uintptr_t)code, (uint64_t)instruction);
    uint32_t slot = qp_index_begin(&table.place_index, hash);
    for (; table.place_index.slots[slot]; slot = qp_index_next(&table.place_index, slot)) {
        const known_place *known = &table.places[table.place_index.slots[slot] - 1];
        if (known->code == code && known->instruction == instruction) {
            return known->line;
        }
    }
    uint32_t line = add_instruction_line(code, instruction);
    if (table.place_count == PLACES) {
        clear_places();
        slot = qp_index_begin(&table.place_index, hash);
    }
    if (find_code(code, NULL)) { /* otherwise the code object's address may be reused */
        table.places[table.place_count] = (known_place){code, instruction, line};
        table.place_index.slots[slot] = ++table.place_count;
    }
    return line;
}
