/* Schemas: the tables and indexes that a connection sees, as a number that is the same whenever
 * they are known to be the same, and a different one when they may differ.
 *
 * The number is a hash of the statements that have changed the schema since the database was empty.
 * Connections to one file share it; a file that was not empty when it was first seen has a separate
 * one. The caller must hold the GIL. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "statements/kinds.h"

enum { QP_SCHEMA_REPEATABLE = 24 };

/* The changes of a schema so far. */
typedef struct {
    uint64_t state; /* hash of all changes */
    uint32_t count;
    uint64_t done[QP_SCHEMA_REPEATABLE]; /* that change nothing when they are repeated */
} qp_lineage;

/* The schema of a connection. Zeroed: nothing is known yet. */
typedef struct {
    bool is_known;
    bool is_open;   /* changed in a transaction, perhaps, that may be rolled back */
    uint16_t file;  /* 1 + the place of its file's lineage; 0: a private database */
    qp_lineage own; /* changes only of the connection (TEMP, ATTACH, PRAGMA), or in no file */
} qp_schema;

/* The number of the schema that a connection sees; `path` is its file ("" without one). */
uint64_t qp_schema_state(qp_schema *schema, const char *path);

/* Applies a change; `event` identifies the statement. */
void qp_schema_apply(qp_schema *schema, qp_schema_change change, uint64_t event);
