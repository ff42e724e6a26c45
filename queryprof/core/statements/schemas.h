/* Schemas: the tables and indexes that a connection sees, as a number. Equal numbers mean equal
 * schemas. Different numbers mean that the schemas may differ.
 *
 * The number is a hash of the statements that have changed the schema since the database was empty.
 * Connections to one file share the number. A file that was not empty when it was first seen has a
 * unique number. The caller must hold the GIL. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "statements/kinds.h"

enum { QP_SCHEMA_REPEATABLE = 24 };

/* The changes of a schema so far. */
typedef struct {
    uint64_t state; /* hash of all changes */
    uint32_t count;
    uint64_t done[QP_SCHEMA_REPEATABLE]; /* statements that change nothing when they are repeated */
} qp_lineage;

/* The schema of a connection. All zeros: nothing is known yet. */
typedef struct {
    bool is_known;
    bool is_open;   /* the schema may have changed in a transaction that may be rolled back */
    uint16_t file;  /* 1 + the slot of the file's lineage; 0: a private database */
    qp_lineage own; /* changes only of the connection (TEMP, ATTACH, PRAGMA), or of a private
                     * database */
} qp_schema;

/* Returns the number of the schema that a connection sees. `path` is the connection's file (""
 * without a file). */
uint64_t qp_schema_number(qp_schema *schema, const char *path);

/* Applies a change; `event` identifies the statement. */
void qp_schema_apply_change(qp_schema *schema, qp_schema_change change, uint64_t event);
