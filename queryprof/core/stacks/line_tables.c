#include "stacks/line_tables.h"

#include <stdint.h>

enum {
    UNIT = 2, /* bytes of an instruction's code unit */
    ONE_LINE = 10,
    NO_COLUMNS = 13,
    LONG = 14,
    NONE = 15
};

static bool is_unknown_format; /* a table and PyCode_Addr2Line have differed */

typedef struct {
    const uint8_t *bytes;
    int size;
    int at;
} reader;

static unsigned next_byte(reader *r)
{
    return r->at < r->size ? r->bytes[r->at++] : 0;
}

/* Reads a number: six bits per byte, the lowest first. Bit 6 is set if more bytes follow. */
static unsigned next_number(reader *r)
{
    unsigned read = next_byte(r), value = read & 63;
    for (int shift = 6; (read & 64) && shift < 32; shift += 6) {
        read = next_byte(r);
        value |= (read & 63) << shift;
    }
    return value;
}

static int next_difference(reader *r)
{
    unsigned value = next_number(r);
    return value & 1 ? -(int)(value >> 1) : (int)(value >> 1);
}

static void read_entry(reader *r, qp_line_search *search)
{
    unsigned first = next_byte(r), form = (first >> 3) & 15;
    int difference = 0;
    if (form == LONG || form == NO_COLUMNS) {
        difference = next_difference(r);
    } else if (form >= ONE_LINE && form < NO_COLUMNS) {
        difference = (int)form - ONE_LINE;
    }
    search->computed += difference;
    search->line = form == NONE ? -1 : search->computed;
    search->start = search->end;
    search->end += (int)((first & 7) + 1) * UNIT;
    /* The rest of the entry describes columns. The first byte of an entry has its highest bit
     * set. */
    while (r->at < r->size && !(r->bytes[r->at] & 128)) {
        r->at++;
    }
    search->next = r->at;
}

static int search_table(PyCodeObject *code, int instruction, qp_line_search *search)
{
    if (!search->end || instruction < search->start) {
        bool is_checked = search->is_checked;
        *search = (qp_line_search){.computed = code->co_firstlineno, .is_checked = is_checked};
    }
    reader r = {(const uint8_t *)PyBytes_AS_STRING(code->co_linetable),
                (int)PyBytes_GET_SIZE(code->co_linetable), search->next};
    while (search->end <= instruction && r.at < r.size) {
        read_entry(&r, search);
    }
    return search->end > instruction ? search->line : -1;
}

int qp_line_table_search(PyCodeObject *code, int instruction, qp_line_search *search)
{
    if (is_unknown_format || instruction < 0 || !PyBytes_Check(code->co_linetable)) {
        return PyCode_Addr2Line(code, instruction);
    }
    int line = search_table(code, instruction, search);
    if (!search->is_checked) {
        search->is_checked = true;
        int right = PyCode_Addr2Line(code, instruction);
        is_unknown_format = right != line;
        line = right;
    }
    return line;
}
