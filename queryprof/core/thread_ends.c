#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* RUSAGE_THREAD */
#endif
#include "thread_ends.h"

#include "threads.h"

#ifdef __linux__
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cpu_time.h"

enum { ENDS = 256, IO_FIGURES = 4 };

typedef struct {
    long kernel_id;
    uint16_t name;
    uint32_t recording; /* in which `name` is valid */
    struct rusage usage;
    unsigned long long io[IO_FIGURES];
} thread_end;

static struct {
    pthread_mutex_t lock; /* never held while waiting for anything */
    thread_end ends[ENDS];
    int count;
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void read_io(unsigned long long io[IO_FIGURES])
{
    char text[512];
    int file = open("/proc/thread-self/io", O_RDONLY | O_CLOEXEC);
    ssize_t size = file < 0 ? -1 : read(file, text, sizeof text - 1);
    if (file >= 0) {
        close(file);
    }
    text[size > 0 ? size : 0] = 0;
    if (sscanf(text, "rchar: %llu wchar: %llu syscr: %llu syscw: %llu", &io[0], &io[1], &io[2],
               &io[3]) != IO_FIGURES) {
        io[0] = io[1] = io[2] = io[3] = 0;
    }
}

void qp_thread_end_note(uint16_t name, uint32_t recording)
{
    thread_end end = {.kernel_id = qp_thread_kernel_id(), .name = name, .recording = recording};
    if (getrusage(RUSAGE_THREAD, &end.usage) != 0) {
        return;
    }
    read_io(end.io);
    pthread_mutex_lock(&table.lock);
    if (table.count < ENDS) { /* else its last second is lost */
        table.ends[table.count++] = end;
    }
    pthread_mutex_unlock(&table.lock);
}

void qp_thread_ends_after_fork(void)
{
    table.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER; /* its holder may be gone */
    table.count = 0;
}

bool qp_thread_ends_waiting(void)
{
    pthread_mutex_lock(&table.lock);
    bool waiting = table.count > 0;
    pthread_mutex_unlock(&table.lock);
    return waiting;
}

static unsigned long long ns_of(struct timeval time)
{
    return (unsigned long long)time.tv_sec * 1000000000 + (unsigned long long)time.tv_usec * 1000;
}

static PyObject *row_of(const thread_end *end)
{
    PyObject *name = qp_thread_name(end->name);
    const struct rusage *usage = &end->usage;
    return name ? Py_BuildValue("(lN(KKLLKKKK))", end->kernel_id, name, ns_of(usage->ru_utime),
                                ns_of(usage->ru_stime), (long long)usage->ru_nvcsw,
                                (long long)usage->ru_nivcsw, end->io[0], end->io[1], end->io[2],
                                end->io[3])
                : NULL;
}

PyObject *qp_thread_ends_take(void)
{
    static thread_end taken[ENDS]; /* filled and emptied under the GIL */
    pthread_mutex_lock(&table.lock);
    int count = table.count;
    for (int i = 0; i < count; i++) {
        taken[i] = table.ends[i];
    }
    table.count = 0;
    pthread_mutex_unlock(&table.lock);
    PyObject *rows = PyList_New(0);
    for (int i = 0; rows && i < count; i++) {
        if (taken[i].recording != qp_recording) {
            continue;
        }
        PyObject *row = row_of(&taken[i]);
        if (!row || PyList_Append(rows, row) < 0) {
            Py_CLEAR(rows);
        }
        Py_XDECREF(row);
    }
    return rows;
}
#else
void qp_thread_end_note(uint16_t name, uint32_t recording)
{
    (void)name;
    (void)recording;
}

void qp_thread_ends_after_fork(void) {}

bool qp_thread_ends_waiting(void)
{
    return false;
}

PyObject *qp_thread_ends_take(void)
{
    return PyList_New(0);
}
#endif
