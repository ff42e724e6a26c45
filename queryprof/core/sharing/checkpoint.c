#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* O_NOFOLLOW */
#endif
#include "sharing/checkpoint.h"

#include <Python.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "memory/region.h"
#include "runtime/clock.h"
#include "runtime/recording.h"
#include "sharing/region_file.h"
#include "sharing/shared_region.h"

enum { SLICE = 64 * QP_PAGE, SLOW_NS = 20 * 1000 * 1000 /* a busy disk */ };

static const double FIRST_S = 1; /* a short program should also have a copy */

static struct {
    char path[QP_SHARED_PATH_BYTES];
    double interval_s;
    double next_s; /* time until the next copy; doubles up to the interval */
    bool if_own;
    bool is_made;
    bool is_busy;   /* a thread is copying */
    bool restarts;  /* a part contains the copied data: remove the copy when the copying thread
                     * has finished */
    int table;      /* table being copied; QP_TABLES if the next copy begins */
    size_t at;      /* byte offset of the next slice in the table's rows */
    uint64_t ticks; /* when the current copy began */
    qp_header head; /* header of the copy; `counts` holds the rows copied so far */
} copy = {.table = QP_TABLES};

void qp_checkpoint_configure(const char *path, double interval_s, bool if_own)
{
    size_t bytes = strlen(path) + 1;
    bool fits = bytes <= sizeof copy.path;
    memcpy(copy.path, fits ? path : "", fits ? bytes : 1);
    copy.interval_s = interval_s;
    copy.next_s = FIRST_S < interval_s ? FIRST_S : interval_s;
    copy.if_own = if_own;
    copy.is_made = false;
    copy.table = QP_TABLES;
    copy.ticks = qp_clock_ticks();
}

void qp_checkpoint_after_fork(void)
{
    copy.path[0] = 0;
    copy.is_busy = copy.restarts = false;
}

#ifdef __linux__
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* The order of the tables: sums, calls, then names. */
static qp_table table_in_copy_order(int place)
{
    int sums = QP_TABLES - QP_FIRST_SUMS;
    return (qp_table)(place < sums ? QP_FIRST_SUMS + place : place - sums);
}

/* Copies at most `*budget` bytes of a table, and subtracts them from the budget. Returns false if
 * the file cannot be written. */
static bool copy_rows(int file, size_t *budget)
{
    qp_table table = table_in_copy_order(copy.table);
    size_t left = qp_table_bytes(table) - copy.at;
    size_t bytes = left < *budget ? left : *budget;
    const char *from = qp_table_start[table] + copy.at;
    if (!qp_write_at(file, from, bytes, from - (const char *)qp_head)) {
        return false;
    }
    *budget -= bytes;
    copy.at += bytes;
    if (bytes == left) {
        copy.head.counts[table] = qp_row_counts[table];
        copy.table++;
        copy.at = 0;
    }
    return true;
}

/* Writes the header. The header must be written last, because it makes the copy valid. */
static bool copy_header(int file)
{
    uint32_t counts[QP_TABLES];
    memcpy(counts, copy.head.counts, sizeof counts);
    copy.head = *qp_head;
    memcpy(copy.head.counts, counts, sizeof counts);
    const char *memory = (const char *)qp_head;
    return qp_write_at(file, memory + sizeof copy.head,
                       (size_t)(qp_table_start[0] - memory) - sizeof copy.head, sizeof copy.head) &&
           qp_write_at(file, (const char *)&copy.head, sizeof copy.head, 0);
}

static size_t bytes_in_use(void)
{
    size_t bytes = 0;
    for (int i = 0; i < QP_TABLES; i++) {
        bytes += qp_table_bytes((qp_table)i);
    }
    return bytes;
}

void qp_checkpoint_restart(void)
{
    copy.restarts = copy.is_busy;
    if (copy.is_busy) {
        return;
    }
    if (copy.is_made) {
        unlink(copy.path);
    }
    copy.is_made = false;
    copy.table = QP_TABLES;
    copy.ticks = qp_clock_ticks();
}

/* Copies at most `budget` bytes, without the GIL, because a disk may be slow. The rows may change
 * during the copy, as between slices. */
static void copy_without_gil(size_t budget)
{
    if (!qp_region_fits_file_limit()) {
        copy.table = QP_TABLES;
        return;
    }
    int flags = O_WRONLY | O_NOFOLLOW | O_CLOEXEC | (copy.is_made ? 0 : O_CREAT | O_EXCL);
    int file = qp_move_above_stdio(open(copy.path, flags, 0600));
    if (file < 0 && errno == ENOENT) { /* the file was removed: create a new one next time */
        copy.is_made = false;
    }
    bool written = file >= 0 && (copy.is_made || fchmod(file, 0600) == 0);
    copy.is_made = copy.is_made || file >= 0;
    if (written && copy.table == QP_TABLES) {
        copy.table = 0;
        copy.at = 0;
        written = qp_region_prepare_file(file);
    }
    while (written && budget && copy.table < QP_TABLES) {
        written = copy_rows(file, &budget);
    }
    if (written && copy.table == QP_TABLES) {
        written = copy_header(file);
    }
    if (file >= 0) {
        close(file);
    }
    if (!written) { /* disk full, or directory removed: retry at the next interval */
        copy.table = QP_TABLES;
    }
}

void qp_checkpoint_copy_slice(void)
{
    uint64_t from = qp_clock_ticks();
    double since_s = (double)qp_ticks_to_ns(qp_elapsed_ticks(copy.ticks, from)) * 1e-9;
    bool is_next = copy.table < QP_TABLES || since_s >= copy.next_s;
    if (!copy.path[0] || copy.is_busy || !is_next || (copy.if_own && qp_region_path()[0])) {
        return;
    }
    if (copy.table == QP_TABLES) {
        copy.ticks = from;
        copy.next_s = 2 * copy.next_s < copy.interval_s ? 2 * copy.next_s : copy.interval_s;
    }
    /* Copy everything within one interval, in rounds of a second each. */
    size_t budget = SLICE + (size_t)((double)bytes_in_use() / (copy.next_s + 1));
    copy.is_busy = true;
    PyThreadState *released = PyEval_SaveThread();
    copy_without_gil(budget);
    PyEval_RestoreThread(released);
    copy.is_busy = false;
    if (copy.restarts) {
        qp_checkpoint_restart();
    }
    if (!qp_recording && copy.is_made) { /* the recording has ended */
        unlink(copy.path);
        copy.is_made = false;
    }
    if (qp_ticks_to_ns(qp_elapsed_ticks(from, qp_clock_ticks())) > SLOW_NS) {
        copy.interval_s *= 2;
        copy.next_s = copy.interval_s;
    }
}
#else
void qp_checkpoint_restart(void) {}

void qp_checkpoint_copy_slice(void) {}
#endif
