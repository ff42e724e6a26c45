#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* strdup under -std=c11 */
#endif
#include "counters/database_paths.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "runtime/index.h"

enum {
    PATHS = 8192,
    SLOTS = 2 * PATHS, /* twice as many as paths, so that the slots are never full */
    MASK = SLOTS - 1
};

/* The paths of databases, and the identities of the files that were last opened at these paths.
 * Paths are never freed, because later recordings may refer to them. */
static struct {
    char *_Atomic text;
    _Atomic uint64_t identity; /* identity of the file; 0 if it is not known */
} paths[PATHS];

static _Atomic uint32_t last;         /* the last number given to a path */
static _Atomic uint32_t slots[SLOTS]; /* numbers of paths, by the path's hash */

/* Returns the identity of the file at a path; 0 if there is no file. Preserves errno. */
static uint64_t file_identity(const char *path)
{
    struct stat found;
    int error = errno;
    bool is_found = path && stat(path, &found) == 0;
    errno = error;
    return is_found ? (uint64_t)found.st_dev * QP_GOLDEN_RATIO ^ (uint64_t)found.st_ino : 0;
}

static bool is_main_database(uint32_t number)
{
    const char *text = paths[number].text; /* NULL while another thread adds the path */
    return text && text[0] != '(';
}

/* Returns the number of the main database in the file with this identity, or 0. */
static uint32_t main_database_with(uint64_t identity)
{
    for (uint32_t i = 1; identity && i < PATHS && i <= last; i++) {
        if (paths[i].identity == identity && is_main_database(i)) {
            return i;
        }
    }
    return 0;
}

/* Returns the number of the main database in this file under another name (a hard link), or 0. */
static uint32_t hard_linked_database(uint64_t identity)
{
    uint32_t known = main_database_with(identity);
    return known && file_identity(paths[known].text) == identity ? known : 0;
}

/* Assigns a file's identity to a path. Clears the identity from older paths, because the system has
 * reused it. */
static void assign_identity(uint32_t number, uint64_t identity)
{
    if (paths[number].identity == identity) {
        return;
    }
    for (uint32_t i = main_database_with(identity); i && is_main_database(number);
         i = main_database_with(identity)) {
        paths[i].identity = 0;
    }
    paths[number].identity = identity;
}

/* Adds a path that has no slot yet. Returns its number; 0 if the table is full. */
static uint32_t add_path(const char *path)
{
    uint32_t number = last + 1 < PATHS ? atomic_fetch_add(&last, 1) + 1 : PATHS;
    char *own = number < PATHS ? strdup(path) : NULL;
    if (own) {
        paths[number].text = own;
    }
    return own ? number : 0;
}

/* Returns the number of a path; 0 if the table is full. */
static uint32_t path_number(const char *path, uint64_t identity)
{
    uint32_t own = 0;
    uint32_t at = path ? (uint32_t)qp_hash_bytes(path, strlen(path)) & MASK : 0;
    for (; path; at = (at + 1) & MASK) {
        uint32_t known = slots[at];
        if (!known) {
            uint32_t same = path[0] == '(' ? 0 : hard_linked_database(identity);
            if (same) {
                return same;
            }
            own = own ? own : add_path(path);
            if (!own) {
                return 0;
            }
            if (atomic_compare_exchange_strong(&slots[at], &known, own)) {
                known = own;
            }
        }
        if (!strcmp(paths[known].text, path)) { /* another thread may have added the path */
            assign_identity(known, identity);
            return known;
        }
    }
    return 0;
}

static uint32_t attached_number(uint64_t identity)
{
    char name[sizeof "(attached 0123456789abcdef)"];
    snprintf(name, sizeof name, "(attached %016llx)", (unsigned long long)identity);
    uint32_t known = main_database_with(identity);
    bool has_room = last < PATHS / 2; /* the other half is for main databases */
    return known ? known : has_room ? path_number(name, identity) : path_number("(attached)", 0);
}

uint32_t qp_database_path_number(const char *path, bool of_main)
{
    uint64_t identity = file_identity(path);
    return of_main ? path_number(path, identity) : attached_number(identity);
}

uint64_t qp_database_file_identity(uint32_t number)
{
    return paths[number].identity;
}

const char *qp_database_path_text(uint32_t number)
{
    const char *path = paths[number].text;
    if (path && !is_main_database(number)) { /* a connection may have opened the file as its main
                                              * database since */
        uint32_t known = main_database_with(paths[number].identity);
        path = known ? paths[known].text : path;
    }
    return path ? path : "";
}
