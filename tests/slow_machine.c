/*
 * A machine that is slow at the wrong moments, for `make test-steady`: loaded by LD_PRELOAD, into
 * the tests and all that they start. What comes late here may come late anywhere, under load or in
 * a virtual machine; a test that passes beside this library does not depend on the machine's speed.
 *
 *     call                                        is delayed by 0 to 20 ms
 *     fsync, fdatasync                            each time, before the call: the disk is busy
 *     nanosleep, clock_nanosleep, usleep          each time, after the call: the thread wakes late
 *     select, poll, epoll_wait, epoll_pwait       once in 20 calls, after a call that waited
 *     sem_timedwait, sem_clockwait,               once in 20 calls, after the call: they stand
 * behind pthread_cond_timedwait, _clockwait          each change of Python's thread, by the
 * thousand clock_gettime                               once in 100 calls, after the call: the time
 * that it returned is old when it is used
 *
 * SLOW_MACHINE_SEED begins the sequence of random numbers, of each process together with its
 * number. A delay never changes a result: what a call returned, and errno, are kept.
 *
 * Not for: musl's programs (another libc) and programs under valgrind, which remove it from their
 * environment.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { LONGEST_NS = 20000000, ALWAYS = 1, OF_WAITS = 20, OF_CLOCK = 100 };

static _Atomic uint64_t calls;
static uint64_t seed;

__attribute__((constructor)) static void begin(void)
{
    const char *text = getenv("SLOW_MACHINE_SEED");
    seed = text ? strtoull(text, NULL, 10) : 0;
}

/* The splitmix64 generator (S. Vigna): its state is a counter, so that threads share it without a
 * lock. */
static uint64_t random_number(void)
{
    uint64_t z = (seed << 32) + (uint64_t)getpid() * 0xD1342543DE82EF95u;
    z += (atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed) + 1) * 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

/* Waits for 0 to 20 ms, once in so many calls; by the system call, which this library does not
 * delay. */
static void delay(uint64_t once_in)
{
    uint64_t number = random_number();
    if (number % once_in == 0) {
        int kept = errno;
        struct timespec time = {0, (long)((number >> 32) % LONGEST_NS)};
        syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &time, NULL);
        errno = kept;
    }
}

/* The libc's own function; looked up at the first call, which may come before `begin`. */
#define REAL(name)                                 \
    static __typeof__(&name) _Atomic known;        \
    __typeof__(&name) real = known;                \
    if (!real) {                                   \
        *(void **)&real = dlsym(RTLD_NEXT, #name); \
        known = real;                              \
    }

int fsync(int file)
{
    REAL(fsync)
    delay(ALWAYS);
    return real(file);
}

int fdatasync(int file)
{
    REAL(fdatasync)
    delay(ALWAYS);
    return real(file);
}

int nanosleep(const struct timespec *time, struct timespec *left)
{
    REAL(nanosleep)
    int result = real(time, left);
    delay(ALWAYS);
    return result;
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *time, struct timespec *left)
{
    REAL(clock_nanosleep)
    int result = real(clock, flags, time, left);
    delay(ALWAYS);
    return result;
}

int usleep(useconds_t time)
{
    REAL(usleep)
    int result = real(time);
    delay(ALWAYS);
    return result;
}

int select(int count, fd_set *read, fd_set *write, fd_set *except, struct timeval *time)
{
    REAL(select)
    int waits = !time || time->tv_sec || time->tv_usec;
    int result = real(count, read, write, except, time);
    if (waits) {
        delay(OF_WAITS);
    }
    return result;
}

int poll(struct pollfd *files, nfds_t count, int time_ms)
{
    REAL(poll)
    int result = real(files, count, time_ms);
    if (time_ms) {
        delay(OF_WAITS);
    }
    return result;
}

int epoll_wait(int file, struct epoll_event *events, int most, int time_ms)
{
    REAL(epoll_wait)
    int result = real(file, events, most, time_ms);
    if (time_ms) {
        delay(OF_WAITS);
    }
    return result;
}

int epoll_pwait(int file, struct epoll_event *events, int most, int time_ms,
                const sigset_t *signals)
{
    REAL(epoll_pwait)
    int result = real(file, events, most, time_ms, signals);
    if (time_ms) {
        delay(OF_WAITS);
    }
    return result;
}

int sem_timedwait(sem_t *semaphore, const struct timespec *end)
{
    REAL(sem_timedwait)
    int result = real(semaphore, end);
    delay(OF_WAITS);
    return result;
}

int sem_clockwait(sem_t *semaphore, clockid_t clock, const struct timespec *end)
{
    REAL(sem_clockwait)
    int result = real(semaphore, clock, end);
    delay(OF_WAITS);
    return result;
}

int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                           const struct timespec *end)
{
    REAL(pthread_cond_timedwait)
    int result = real(condition, mutex, end);
    delay(OF_WAITS);
    return result;
}

int pthread_cond_clockwait(pthread_cond_t *condition, pthread_mutex_t *mutex, clockid_t clock,
                           const struct timespec *end)
{
    REAL(pthread_cond_clockwait)
    int result = real(condition, mutex, clock, end);
    delay(OF_WAITS);
    return result;
}

int clock_gettime(clockid_t clock, struct timespec *time)
{
    REAL(clock_gettime)
    int result = real(clock, time);
    delay(OF_CLOCK);
    return result;
}
