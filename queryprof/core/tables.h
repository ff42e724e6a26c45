/* The tables of a recording, declared once: what a row of each holds, and how many there may be.
 *
 * A row is plain data: numbers of rows of other tables, texts by where they stand, figures. So it
 * means the same to whoever reads it, in this process or outside. Rows are never removed, and a row
 * never moves.
 */
#ifndef QP_TABLES_H
#define QP_TABLES_H

#include <stdint.h>

/* A text: where it begins in the table of texts (see texts.h). */
typedef uint32_t qp_text;

/* A statement: what is left of a SQL text when literals do not count. */
typedef struct {
    qp_text text;
    uint32_t changes_rows;      /* and returns none */
    uint32_t changes_uncounted; /* rows that the standard library's driver does not count */
} qp_statement_row;

/* A line of code: where a frame of a call path or stack was. */
typedef struct {
    qp_text function; /* its qualified name */
    qp_text file;
    uint32_t line; /* 0: unknown */
    uint32_t kind; /* qp_code_class */
} qp_line_row;

/* A stack of frames: its innermost one, and the stack around that (0: it is the outermost). */
typedef struct {
    uint32_t outer;
    uint32_t line;
} qp_stack_row;

typedef enum { QP_TEXTS, QP_STATEMENT_ROWS, QP_LINE_ROWS, QP_STACK_ROWS, QP_TABLES } qp_table;

enum {
    QP_TEXT_BYTES = 8 * 1024 * 1024,
    QP_STATEMENTS = 32768,
    QP_LINES = 16384,
    QP_STACKS = 131072
};

#endif
