#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* RUSAGE_THREAD */
#endif
#include "threads/thread_usage.h"

#include "memory/region.h"
#include "runtime/recording.h"
#include "runtime/thread_local.h"

static qp_thread_row *thread_rows(void)
{
    return qp_first_row(QP_THREAD_ROWS);
}

static void add_usage(qp_usage *to, const qp_usage *usage)
{
    to->user_ns += usage->user_ns;
    to->system_ns += usage->system_ns;
    to->voluntary_switches += usage->voluntary_switches;
    to->involuntary_switches += usage->involuntary_switches;
    to->read_bytes += usage->read_bytes;
    to->written_bytes += usage->written_bytes;
    to->read_calls += usage->read_calls;
    to->write_calls += usage->write_calls;
}

/* Adds usage to the usage of the threads with a name. The caller must hold the lock. */
static void add_to_name(uint16_t thread, const qp_usage *usage)
{
    if (thread < qp_row_count(QP_THREAD_ROWS)) {
        thread_rows()[thread].is_used = true;
        add_usage(&thread_rows()[thread].usage, usage);
    }
}

static int64_t nonnegative_difference(int64_t now, int64_t before)
{
    return now > before ? now - before : 0;
}

static qp_usage usage_difference(const qp_usage *now, const qp_usage *base)
{
    return (qp_usage){nonnegative_difference(now->user_ns, base->user_ns),
                      nonnegative_difference(now->system_ns, base->system_ns),
                      nonnegative_difference(now->voluntary_switches, base->voluntary_switches),
                      nonnegative_difference(now->involuntary_switches, base->involuntary_switches),
                      nonnegative_difference(now->read_bytes, base->read_bytes),
                      nonnegative_difference(now->written_bytes, base->written_bytes),
                      nonnegative_difference(now->read_calls, base->read_calls),
                      nonnegative_difference(now->write_calls, base->write_calls)};
}

#ifdef __linux__
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "runtime/cpu_time.h"

static struct {
    pthread_mutex_t lock;
    uint64_t last_thread; /* number of the newest thread when the recording began */
    uint32_t next;        /* row where the search for a free row starts */
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

void qp_thread_usage_lock(void)
{
    pthread_mutex_lock(&table.lock);
}

void qp_thread_usage_unlock(void)
{
    pthread_mutex_unlock(&table.lock);
}

static int64_t timeval_ns(struct timeval time)
{
    return (int64_t)time.tv_sec * 1000000000 + (int64_t)time.tv_usec * 1000;
}

/* Returns the bytes read by this function itself. */
static int64_t read_io(qp_usage *usage)
{
    char text[512];
    int file = open("/proc/thread-self/io", O_RDONLY | O_CLOEXEC);
    ssize_t size = file < 0 ? -1 : read(file, text, sizeof text - 1);
    if (file >= 0) {
        close(file);
    }
    text[size > 0 ? size : 0] = 0;
    long long figures[4];
    if (sscanf(text, "rchar: %lld wchar: %lld syscr: %lld syscw: %lld", &figures[0], &figures[1],
               &figures[2], &figures[3]) == 4) {
        usage->read_bytes = figures[0];
        usage->written_bytes = figures[1];
        usage->read_calls = figures[2];
        usage->write_calls = figures[3];
    }
    return size > 0 ? size : 0;
}

/* Reads the usage of the running thread since its start. */
static bool read_usage(qp_usage *usage, int64_t *read_bytes)
{
    struct rusage used;
    *read_bytes = 0;
    if (getrusage(RUSAGE_THREAD, &used) != 0) {
        return false;
    }
    *usage = (qp_usage){.user_ns = timeval_ns(used.ru_utime),
                        .system_ns = timeval_ns(used.ru_stime),
                        .voluntary_switches = used.ru_nvcsw,
                        .involuntary_switches = used.ru_nivcsw};
    *read_bytes = read_io(usage);
    return true;
}

/* Excludes the bytes that were read to get the figures, because these bytes do not belong to the
 * program. */
static void exclude_own_reading(qp_task_row *task, int64_t read_bytes)
{
    task->base.read_bytes += read_bytes;
    task->base.read_calls += read_bytes != 0;
    qp_head->own_read_bytes += read_bytes;
}

/* Returns the row of the running thread; NULL if another thread has the row now. */
static qp_task_row *running_thread_row(void)
{
    if (qp_here.usage_recording != qp_recording ||
        qp_here.usage_row >= qp_row_count(QP_TASK_ROWS)) {
        return NULL;
    }
    qp_task_row *task = (qp_task_row *)qp_first_row(QP_TASK_ROWS) + qp_here.usage_row;
    return task->kernel_id && task->recording == qp_here.usage_recording ? task : NULL;
}

static uint32_t free_row(void)
{
    const qp_task_row *tasks = qp_first_row(QP_TASK_ROWS);
    uint32_t count = qp_row_count(QP_TASK_ROWS);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = (table.next + i) % count;
        if (!tasks[at].kernel_id) {
            table.next = at + 1;
            return at;
        }
    }
    return qp_rows_add(QP_TASK_ROWS, 1);
}

void qp_thread_usage_register(uint64_t id, uint16_t name, uint32_t recording)
{
    qp_thread_usage_lock();
    qp_here.usage_row = free_row();
    qp_here.usage_recording = recording;
    if (qp_here.usage_row != UINT32_MAX) {
        qp_task_row *task = (qp_task_row *)qp_first_row(QP_TASK_ROWS) + qp_here.usage_row;
        *task = (qp_task_row){
            .thread = name, .recording = recording, .kernel_id = qp_thread_kernel_id()};
        if (id <= table.last_thread) {
            int64_t read_bytes;
            read_usage(&task->base, &read_bytes);
            exclude_own_reading(task, read_bytes);
        }
    }
    qp_thread_usage_unlock();
}

void qp_thread_usage_store(void)
{
    qp_usage now;
    int64_t read_bytes;
    qp_thread_usage_lock();
    qp_task_row *task = running_thread_row();
    if (task && read_usage(&now, &read_bytes)) {
        task->usage = usage_difference(&now, &task->base);
        exclude_own_reading(task, read_bytes);
    }
    qp_thread_usage_unlock();
}

void qp_thread_usage_exclude(int64_t written_bytes, int64_t write_calls)
{
    qp_thread_usage_lock();
    qp_task_row *task = running_thread_row();
    if (task) {
        task->base.written_bytes += written_bytes;
        task->base.write_calls += write_calls;
    }
    qp_head->own_written_bytes += written_bytes;
    qp_thread_usage_unlock();
}

void qp_thread_usage_end(void)
{
    qp_usage now;
    int64_t read_bytes;
    bool is_known = read_usage(&now, &read_bytes);
    qp_thread_usage_lock();
    qp_task_row *task = running_thread_row();
    if (task) {
        qp_usage used = usage_difference(&now, &task->base);
        task->kernel_id = 0;
        qp_head->own_read_bytes += read_bytes;
        if (is_known) {
            add_to_name((uint16_t)task->thread, &used);
        }
    }
    qp_thread_usage_unlock();
}

void qp_thread_usage_count_living(int64_t kernel_id, uint16_t name, const qp_usage *now,
                                  const qp_usage *before)
{
    qp_thread_usage_lock();
    qp_task_row *task = qp_first_row(QP_TASK_ROWS);
    const qp_task_row *end = task + qp_row_count(QP_TASK_ROWS);
    while (task < end && task->kernel_id != kernel_id) {
        task++;
    }
    qp_usage used = usage_difference(now, task < end ? &task->base : before);
    if (task < end) { /* use the name in the row, because a thread that is ending has lost its
                       * name */
        add_usage(&task->base, &used);
        task->usage = (qp_usage){0};
        name = (uint16_t)task->thread;
    }
    add_to_name(name, &used);
    qp_thread_usage_unlock();
}

void qp_thread_usage_start(void)
{
    PyThreadState *newest = PyInterpreterState_ThreadHead(PyInterpreterState_Get());
    table.last_thread = PyThreadState_GetID(newest);
    table.next = 0;
}

void qp_thread_usage_after_fork(void)
{
    table.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER; /* the thread that held the lock may
                                                              * not exist in the child */
}
#else
void qp_thread_usage_lock(void) {}

void qp_thread_usage_unlock(void) {}

void qp_thread_usage_register(uint64_t id, uint16_t name, uint32_t recording)
{
    (void)id, (void)name, (void)recording;
}

void qp_thread_usage_store(void) {}

void qp_thread_usage_exclude(int64_t written_bytes, int64_t write_calls)
{
    (void)written_bytes, (void)write_calls;
}

void qp_thread_usage_end(void) {}

void qp_thread_usage_count_living(int64_t kernel_id, uint16_t name, const qp_usage *now,
                                  const qp_usage *before)
{
    (void)kernel_id;
    const qp_usage used = usage_difference(now, before);
    add_to_name(name, &used);
}

void qp_thread_usage_start(void) {}

void qp_thread_usage_after_fork(void) {}
#endif

void qp_thread_usage_clear(void)
{
    qp_thread_usage_lock();
    for (uint32_t i = 0; i < qp_row_count(QP_THREAD_ROWS); i++) {
        thread_rows()[i].is_used = false;
        thread_rows()[i].usage = (qp_usage){0};
    }
    qp_thread_usage_unlock();
}
