/* The tables of a recording: the fields of each table's rows, and the table's capacity.
 *
 * A row is plain data: numbers of rows of other tables, offsets of texts, figures. So a row has the
 * same meaning for every reader, in this process or outside. A row never moves. The columns that
 * readers see are in columns.c, by name; the rest is the core's own.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A text: the offset of its beginning in the table of texts (see texts.h). */
typedef uint32_t qp_text;

typedef enum {
    /* Names: they stay for as long as the process records. */
    QP_TEXTS,
    QP_STATEMENT_ROWS,
    QP_LINE_ROWS,
    QP_STACK_ROWS,
    QP_SPAN_ROWS,
    QP_THREAD_ROWS,
    QP_LOOP_ROWS,
    QP_STEP_ROWS,
    QP_PLAN_ROWS,
    /* Sums. */
    QP_AGGREGATE_ROWS,
    QP_SPREAD_ROWS,
    QP_OCTAVE_ROWS,
    QP_ERROR_ROWS,
    QP_EXEMPLAR_ROWS,
    QP_STACK_SAMPLE_ROWS,
    QP_TIMELINE_ROWS,
    QP_REPEAT_ROWS,
    QP_STATUS_ROWS,
    QP_SLOW_SPAN_ROWS,
    QP_SPAN_RUN_ROWS,
    QP_HANDOFF_ROWS,
    QP_STALL_ROWS,
    QP_STALL_EVENT_ROWS,
    QP_CAUSE_ROWS,
    QP_TASK_ROWS,
    QP_FILE_WORK_ROWS,
    QP_LOCK_ROWS,
    QP_LOCK_EVENT_ROWS,
    QP_PARAMETER_ROWS,
    QP_LINE_TIME_ROWS,
    QP_RECENT_CALL_ROWS,
    QP_HELD_ROWS,
    QP_CALL_ROWS,
    QP_TABLES
} qp_table;

enum { QP_FIRST_SUMS = QP_AGGREGATE_ROWS };

enum {
    QP_TEXT_BYTES = 5 * 1024 * 1024,
    QP_STATEMENTS = 32768,
    QP_LINES = 131072,
    QP_STACKS = 262144,
    QP_NAMES = 1024, /* spans, and threads */
    QP_LOOPS = 128,
    QP_STEPS = 1024,
    QP_PLANS = 2048,
    QP_AGGREGATES = 49152,
    QP_SPREADS = 4096,
    QP_OCTAVE_COUNTS = 24576,
    QP_ERRORS = 1024,
    QP_EXEMPLARS = 32768,
    QP_STACK_SAMPLES = 8192,
    QP_TIMELINE_INTERVALS = 512,
    QP_REPEATS = 512,
    QP_STATUSES = 512,
    QP_SLOW_SPANS = 256,
    QP_HANDOFFS = 256,
    QP_STALLS = 128,
    QP_STALL_EVENTS = 64,
    QP_CAUSES = 8192,
    QP_TASKS = 1024,
    QP_FILE_WORKS = 8192,
    QP_LOCKS = 2048,
    QP_LOCK_EVENTS = 4096,
    QP_PARAMETERS = 4096,
    QP_LINE_TIMES = 4096,
    QP_RECENT_CALLS = 65536,
    QP_HELD = 64,
    QP_YOUNG = 16,
    QP_CALLS = QP_YOUNG + 4096
};

/* A statement: all SQL texts with one normal form. */
typedef struct {
    qp_text text;
    qp_text note;         /* label of the statement; QP_TEXT_NONE if none */
    uint32_t texts;       /* number of scanned texts, which is larger than the number of different
                           * texts if the cache of texts is too small */
    uint8_t changes_rows; /* for this field and the next four: see statements/kinds.h */
    uint8_t changes_uncounted;
    uint8_t can_be_explained;
    uint8_t schema_change;
    uint8_t script_change;
    uint8_t system; /* qp_system */
} qp_statement_row;

/* A line of code, at which a frame of a call path or stack was. */
typedef struct {
    qp_text function; /* qualified name of the function */
    qp_text file;
    uint32_t line;       /* 0 if unknown */
    uint32_t kind;       /* qp_code_owner */
    uint32_t first_line; /* first line of the function; 0 if unknown */
} qp_line_row;

/* A stack of frames: the innermost frame's line, and the stack around that frame (0 if the frame is
 * the outermost). */
typedef struct {
    uint32_t outer;
    uint32_t line;
} qp_stack_row;

/* The key of an aggregate. */
typedef struct {
    uint32_t statement;
    uint32_t path;
    uint16_t span;
    uint16_t thread;
    uint32_t operation;
} qp_key; /* without padding */

static inline bool qp_same_key(const qp_key *a, const qp_key *b)
{
    return !memcmp(a, b, sizeof *a);
}

enum { QP_ROW_BUCKETS = 7 /* all buckets of most histograms */ };

/* A histogram: how many durations are in each bucket (see histogram.h). */
typedef struct {
    uint32_t spread; /* 1 + the row with more buckets; 0 if all buckets are here */
    uint16_t bucket[QP_ROW_BUCKETS];
    uint16_t count[QP_ROW_BUCKETS]; /* 0 if free */
} qp_histogram;

enum { QP_OCTAVES = 40, QP_BUCKETS_PER_OCTAVE = 16 };

/* A histogram with more buckets: by octave, 1 + the row of the counts; 0 if none. */
typedef struct {
    uint16_t octaves[QP_OCTAVES];
} qp_spread_row;

typedef struct {
    uint32_t counts[QP_BUCKETS_PER_OCTAVE];
} qp_octave_row;

/* Durations: their number, sum, maximum and distribution. */
typedef struct {
    int64_t count;
    int64_t total_ns;
    int64_t max_ns;
    qp_histogram histogram;
} qp_distribution;

/* Sums are listed once. From the list, these macros generate the members of a struct, and the code
 * that adds the members of `more` to the members of `to`. */
#define QP_DECLARE_SUM(name) int64_t name;
#define QP_ADD_SUM(name) to->name += more->name;

/* SQLite's own counters of statements (sqlite3_stmt_status), added up over the `counted` executions
 * for which they are known. page_fetches is added up over only the sampled executions. */
#define QP_COUNTERS(SUM) \
    SUM(counted)         \
    SUM(vm_steps)        \
    SUM(full_scan_steps) \
    SUM(sorts) SUM(automatic_indexes) SUM(page_fetches) SUM(page_fetch_samples)

typedef struct {
    QP_COUNTERS(QP_DECLARE_SUM)
} qp_counters;

/* Extremes of calls and executions. The initial minimum is INT64_MAX, the initial maximum 0. */
typedef struct {
    int64_t min_ns;
    int64_t max_ns;
    int64_t execution_max_ns;
} qp_extremes;

/* A row whose changes can be listed (see changes.h) begins with the number of the mark after which
 * it changed last. */
typedef struct {
    uint32_t mark;
    uint32_t sequence; /* odd while the row is being changed */
    qp_key key;
    int64_t count;
    int64_t errors;
    int64_t rows;
    int64_t total_ns;
    int64_t self_ns;
    /* Sum over the executions that this operation began. The duration of an execution includes its
     * fetches. */
    double execution_sum_sq_ns2;
    qp_counters counters;
    qp_extremes now;    /* since the mark */
    qp_extremes before; /* before the mark */
    qp_histogram histogram;
    int64_t carried; /* entries of the histogram that an earlier part has counted */
} qp_aggregate;

/* The errors of one type with one key. */
typedef struct {
    qp_key key;
    qp_text name;
    int64_t count;
} qp_error_row;

/* One of the slowest executions of a statement. */
typedef struct {
    qp_key key;
    uint64_t serial; /* 0 if none */
    int64_t started_unix_ns;
    int64_t duration_ns;
    int64_t rows;
    uint32_t stack; /* 0 if not taken */
    qp_text sql;    /* QP_TEXT_FULL if not kept, like the next field */
    qp_text parameters;
    uint32_t sequence;
} qp_exemplar_row;

/* The executions and the time of a stack sample. */
typedef struct {
    uint32_t statement;
    uint32_t stack;
    int64_t executions;
    int64_t ns;
} qp_stack_sample_row;

/* An interval of the timeline. */
typedef struct {
    int64_t calls;
    int64_t rows;
    int64_t self_ns;
} qp_interval_row;

/* The usage of threads as Linux counts it (getrusage(2), proc_pid_io(5)). */
typedef struct {
    int64_t user_ns;
    int64_t system_ns;
    int64_t voluntary_switches;
    int64_t involuntary_switches;
    int64_t read_bytes;
    int64_t written_bytes;
    int64_t read_calls;
    int64_t write_calls;
} qp_usage;

/* The usage of the ended threads with one name. */
typedef struct {
    qp_text name;
    uint32_t is_used; /* whether the figures are known */
    qp_usage usage;
} qp_thread_row;

/* A living thread that has called a driver, and its usage when it was read last. */
typedef struct {
    uint32_t thread;    /* the number of its name; 0 if kernel_id is 0 */
    uint32_t recording; /* only used by the core */
    int64_t kernel_id;  /* the system's number of the thread; 0 if the row is free */
    qp_usage usage;
    qp_usage base; /* usage when recording began */
} qp_task_row;

/* The functions that one call path submitted to other threads. */
typedef struct {
    qp_text kind;
    uint32_t path;
    uint32_t span;
    int64_t count;
    int64_t errors;    /* functions that raised an exception */
    int64_t cancelled; /* never ran, or the program did not wait for their end */
    qp_distribution queue;
    qp_distribution run;
    qp_distribution handback; /* only for functions that an event loop awaits */
    qp_distribution total;    /* time from the submission to the end of the handback */
} qp_handoff_row;

/* The event loops of one kind in threads of one name. */
typedef struct {
    qp_text kind; /* the library */
    uint32_t thread;
    uint32_t has_steps; /* 0 if the library's steps cannot be seen, but only the lag of its
                         * timers */
    int64_t runs;       /* number of loops that have begun */
    int64_t run_ticks;
    int64_t busy_ticks; /* time spent in steps */
    int64_t steps;
    int64_t waiting; /* number of ready callbacks when a step began, added up over the steps */
    int64_t waiting_max;
    qp_distribution timer; /* lag of the program's timers */
    qp_distribution beat;  /* lag of each heartbeat */
} qp_loop;

/* The database time of steps or stalls, by statement and call path. Only the first pairs are
 * listed; database_ticks includes all pairs. */
typedef struct {
    int64_t database_ticks;
    uint32_t first; /* 1 + the number of a row; 0 if the list is empty */
    uint32_t known;
} qp_cause_list;

typedef struct {
    uint32_t next; /* 1 + the row of the next pair in the list; 0 if this is the last pair */
    uint32_t statement;
    uint32_t path;
    int64_t calls;
    int64_t ticks;
} qp_cause_row;

/* The cost of one function's steps in one loop. */
typedef struct {
    uint32_t mark;
    uint32_t loop;
    uint32_t line; /* the function's first line */
    int64_t gc_ticks;
    int64_t max_before_ns; /* the longest step before the mark */
    qp_distribution durations;
    qp_cause_list causes;
} qp_step_row;

/* Steps that took longer than the threshold, by function and call path. */
typedef struct {
    uint32_t loop;
    uint32_t line; /* UINT32_MAX if the running function cannot be seen */
    uint32_t path;
    uint32_t stack; /* 0 if not taken */
    int64_t count;
    int64_t total_ns;
    int64_t max_ns;
    int64_t gc_ns;
    int64_t gil_ns;
    int64_t cpu_ns;    /* time in which the thread ran or was ready to run */
    int64_t cpu_of_ns; /* the part of total_ns for which cpu_ns is known */
    int64_t delayed;   /* number of callbacks and timers that had to wait */
    int64_t delay_ns;  /* total time that these callbacks and timers waited */
    int64_t samples;
    qp_cause_list causes;
} qp_stall_row;

/* One of the longest stalls. */
typedef struct {
    uint32_t loop;
    uint32_t line;
    uint32_t path;
    uint32_t stack;
    uint64_t step; /* only used by the core */
    int64_t started_unix_ns;
    int64_t duration_ns;
} qp_stall_event_row;

/* How SQLite runs a statement on a database. */
typedef struct {
    uint32_t statement;
    qp_text database;
    qp_text tree;
} qp_plan_row;
