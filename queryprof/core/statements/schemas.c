#include "statements/schemas.h"

#include "runtime/index.h"

#include <sys/stat.h>

enum { FILES = 128 };

static struct {
    uint64_t identity; /* hash of path and inode; 0 if free */
    qp_lineage lineage;
} files[FILES];

static uint64_t unknown_changes; /* number of unknown changes so far, which makes each of them
                                  * unique */
static uint64_t elsewhere;       /* part of the schema number of every connection */

/* Murmur3's finalizer (https://github.com/aappleby/smhasher): every bit of the input counts. */
static uint64_t mix_hash(uint64_t a, uint64_t b)
{
    uint64_t x = a * QP_GOLDEN_RATIO ^ b;
    x = (x ^ x >> 33) * 0xff51afd7ed558ccdu;
    x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53u;
    return (x ^ x >> 33) | 1;
}

static uint64_t hash_text(const char *text)
{
    uint64_t hash = 0;
    for (; *text; text++) {
        hash = mix_hash(hash, (unsigned char)*text);
    }
    return hash;
}

static void apply_change(qp_lineage *lineage, uint64_t event)
{
    lineage->state = mix_hash(lineage->state, event);
    lineage->count = 0;
}

static void apply_unknown_change(qp_lineage *lineage)
{
    apply_change(lineage, ++unknown_changes << 1);
}

static void apply_once(qp_lineage *lineage, uint64_t event)
{
    for (uint32_t i = 0; i < lineage->count; i++) {
        if (lineage->done[i] == event) {
            return;
        }
    }
    lineage->state = mix_hash(lineage->state, event);
    if (lineage->count < QP_SCHEMA_REPEATABLE) {
        lineage->done[lineage->count++] = event;
    }
}

/* Identifies a file, and sets whether it is empty. Never opens it: closing a file drops the locks
 * that the process has on it (https://www.sqlite.org/howtocorrupt.html, 2.2). */
static uint64_t file_identity(const char *path, bool *is_empty)
{
    uint64_t identity = hash_text(path);
    *is_empty = false;
    struct stat status;
    if (stat(path, &status) == 0) {
        identity = mix_hash(mix_hash(identity, (uint64_t)status.st_dev), (uint64_t)status.st_ino);
        *is_empty = status.st_size == 0;
    }
    return identity;
}

/* Returns 1 + the slot of a file's schema. Replaces another file if the table is full. */
static uint16_t find_or_add_file(const char *path)
{
    bool is_empty;
    uint64_t identity = file_identity(path, &is_empty);
    int place = (int)(identity % FILES);
    for (int i = 0; i < FILES; i++) {
        int at = (int)((identity + (uint64_t)i) % FILES);
        if (files[at].identity == identity) {
            if (is_empty) { /* the file was created again, or its content is not written yet */
                apply_unknown_change(&files[at].lineage);
            }
            return (uint16_t)(at + 1);
        }
        if (!files[at].identity) {
            place = at;
            break;
        }
    }
    if (files[place].identity) {
        apply_unknown_change(&files[place].lineage);
    } else {
        files[place].lineage.state = is_empty ? 0 : identity;
    }
    files[place].identity = identity;
    return (uint16_t)(place + 1);
}

static void find_file(qp_schema *schema, const char *path)
{
    schema->is_known = true;
    schema->file = path[0] ? find_or_add_file(path) : 0;
}

uint64_t qp_schema_number(qp_schema *schema, const char *path)
{
    if (!schema->is_known) {
        find_file(schema, path);
    }
    return mix_hash(schema->own.state + elsewhere,
                    schema->file ? files[schema->file - 1].lineage.state : 0);
}

void qp_schema_apply_change(qp_schema *schema, qp_schema_change what, uint64_t event)
{
    bool is_shared = schema->file && what != QP_SCHEMA_ASIDE;
    qp_lineage *lineage = is_shared ? &files[schema->file - 1].lineage : &schema->own;
    bool was_open = schema->is_open;
    schema->is_open = what < QP_SCHEMA_ELSEWHERE;
    switch (what) {
    case QP_SCHEMA_ENSURED:
        apply_once(lineage, event);
        break;
    case QP_SCHEMA_ASIDE:
    case QP_SCHEMA_CHANGED:
        apply_change(lineage, event);
        break;
    case QP_SCHEMA_UNKNOWN:
        apply_unknown_change(lineage);
        break;
    case QP_SCHEMA_ELSEWHERE:
        elsewhere = mix_hash(elsewhere, ++unknown_changes);
        break;
    case QP_SCHEMA_ROLLED_BACK:
        if (was_open) {
            apply_change(&schema->own, what);
            apply_change(lineage, what);
        }
        break;
    case QP_SCHEMA_COMMITTED:
    case QP_SCHEMA_KEPT:
        break;
    }
}
