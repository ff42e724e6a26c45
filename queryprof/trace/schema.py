"""The trace file's schema: one annotated SQL text, and how older versions become this one.

A trace is a SQLite file. Every column says its unit; all times are nanoseconds, all instants
nanoseconds since 1970 (Unix time). Sums of different traces add up, so a merge is exact.

History:
    1   the first version
    2   event loops: loop, lag, step, stall and what hangs on them
    3   plan, and of process: unasked_plans, read_bytes, written_bytes
    4   where work belongs: span_total, span_repeat, span_status, handoff, thread_usage and what
        hangs on them
    5   of process: clock_tick_ns, unmeasured
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

APPLICATION_ID = 0x51507266
"""In the header of every trace ("QPrf"): tells a trace from any other SQLite file."""

SCHEMA_VERSION = 5
"""In the header (user_version) of every trace."""

LOOP_SCHEMA = """
-- The event loops of one library that ran in one thread, added up.
CREATE TABLE loop (
    id INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,                -- asyncio, uvloop, trio, twisted
    thread_id INTEGER NOT NULL REFERENCES thread (id),
    has_steps INTEGER NOT NULL,        -- 0: its steps cannot be seen, only how late it is
    runs INTEGER NOT NULL,             -- how often a loop started
    run_ns INTEGER NOT NULL,           -- from start to stop, waiting included
    busy_ns INTEGER NOT NULL,          -- in steps
    steps INTEGER NOT NULL,
    waiting INTEGER NOT NULL,          -- callbacks ready at a step's beginning, sum over steps
    waiting_max INTEGER NOT NULL,
    UNIQUE (kind, thread_id)
);

-- How late a loop started what was due.
CREATE TABLE lag (
    loop_id INTEGER NOT NULL REFERENCES loop (id),
    source TEXT NOT NULL,              -- timer: the program's own; beat: queryprof's, ten a second
    count INTEGER NOT NULL,
    total_ns INTEGER NOT NULL,
    max_ns INTEGER NOT NULL,
    PRIMARY KEY (loop_id, source)
) WITHOUT ROWID;

CREATE TABLE lag_histogram (           -- buckets as in `histogram`
    loop_id INTEGER NOT NULL REFERENCES loop (id),
    source TEXT NOT NULL,
    bucket INTEGER NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (loop_id, source, bucket)
) WITHOUT ROWID;

-- What a loop ran: the steps of one coroutine function or callback.
CREATE TABLE step (
    id INTEGER PRIMARY KEY,
    loop_id INTEGER NOT NULL REFERENCES loop (id),
    frame_id INTEGER NOT NULL REFERENCES frame (id), -- the function; its first line
    count INTEGER NOT NULL,
    total_ns INTEGER NOT NULL,
    max_ns INTEGER NOT NULL,
    database_ns INTEGER NOT NULL,      -- in calls of the driver, on the loop
    gc_ns INTEGER NOT NULL,            -- in garbage collections
    UNIQUE (loop_id, frame_id)
);

CREATE TABLE step_histogram (          -- buckets as in `histogram`
    step_id INTEGER NOT NULL REFERENCES step (id),
    bucket INTEGER NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (step_id, bucket)
) WITHOUT ROWID;

-- The database time of steps: the first 24 pairs of a step; what is missing is in database_ns.
CREATE TABLE step_cause (
    step_id INTEGER NOT NULL REFERENCES step (id),
    statement_id INTEGER NOT NULL REFERENCES statement (id),
    path_id INTEGER NOT NULL REFERENCES stack (id),
    calls INTEGER NOT NULL,
    ns INTEGER NOT NULL,
    PRIMARY KEY (step_id, statement_id, path_id)
) WITHOUT ROWID;

-- Steps that took longer than the threshold, by what ran and where it was seen meanwhile.
CREATE TABLE stall (
    id INTEGER PRIMARY KEY,
    loop_id INTEGER NOT NULL REFERENCES loop (id),
    frame_id INTEGER NOT NULL REFERENCES frame (id), -- what ran; '' when it cannot be seen
    path_id INTEGER NOT NULL REFERENCES stack (id),  -- the program's frames, where it was seen
    stack_id INTEGER REFERENCES stack (id),          -- of the longest one; NULL: not taken
    count INTEGER NOT NULL,
    total_ns INTEGER NOT NULL,
    max_ns INTEGER NOT NULL,
    database_ns INTEGER NOT NULL,
    gc_ns INTEGER NOT NULL,
    gil_ns INTEGER NOT NULL,           -- until it let other threads run, when asked to
    cpu_ns INTEGER NOT NULL,           -- that the thread ran or was ready to ...
    cpu_of_ns INTEGER NOT NULL,        -- ... in so much of the time (the rest was not watched)
    delayed INTEGER NOT NULL,          -- callbacks and timers that had to wait
    delay_ns INTEGER NOT NULL,         -- for so long, added up
    samples INTEGER NOT NULL,          -- looks at the stack
    UNIQUE (loop_id, frame_id, path_id)
);

CREATE TABLE stall_cause (
    stall_id INTEGER NOT NULL REFERENCES stall (id),
    statement_id INTEGER NOT NULL REFERENCES statement (id),
    path_id INTEGER NOT NULL REFERENCES stack (id),
    calls INTEGER NOT NULL,
    ns INTEGER NOT NULL,
    PRIMARY KEY (stall_id, statement_id, path_id)
) WITHOUT ROWID;
"""

PLAN_SCHEMA = """
-- How SQLite runs a statement on a database, as EXPLAIN QUERY PLAN told when the statement was
-- first met with a schema: one row for each different answer.
CREATE TABLE plan (
    statement_id INTEGER NOT NULL REFERENCES statement (id),
    database TEXT NOT NULL,            -- its file; ':memory:' when it has none
    tree TEXT NOT NULL,                -- a line a step, two spaces deeper than what it is part of
    PRIMARY KEY (statement_id, database, tree)
) WITHOUT ROWID;
"""

WORK_SCHEMA = """
-- The spans of one name that have ended, added up.
CREATE TABLE span_total (
    span_id INTEGER PRIMARY KEY REFERENCES span (id),
    count INTEGER NOT NULL,
    errors INTEGER NOT NULL,           -- left by an exception
    cpu_count INTEGER NOT NULL,        -- spans whose CPU time is known ...
    cpu_ns INTEGER NOT NULL,           -- ... and that of all these
    database_ns INTEGER NOT NULL,      -- in the driver, inner spans and other threads included
    total_ns INTEGER NOT NULL,         -- wall time
    max_ns INTEGER NOT NULL,
    queries INTEGER NOT NULL,          -- execute, executemany, executescript
    queries_max INTEGER NOT NULL       -- in one span
);

CREATE TABLE span_histogram (          -- buckets as in `histogram`
    span_id INTEGER NOT NULL REFERENCES span (id),
    figure TEXT NOT NULL,              -- duration (ns), queries (a number)
    bucket INTEGER NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (span_id, figure, bucket)
) WITHOUT ROWID;

-- Statements that one call path executed more than ten times in one span.
CREATE TABLE span_repeat (
    span_id INTEGER NOT NULL REFERENCES span (id),
    statement_id INTEGER NOT NULL REFERENCES statement (id),
    path_id INTEGER NOT NULL REFERENCES stack (id),
    spans INTEGER NOT NULL,
    executions INTEGER NOT NULL,       -- in these spans
    most INTEGER NOT NULL,             -- in one of them
    PRIMARY KEY (span_id, statement_id, path_id)
) WITHOUT ROWID;

CREATE TABLE span_status (             -- how requests ended
    span_id INTEGER NOT NULL REFERENCES span (id),
    status INTEGER NOT NULL,           -- of HTTP
    count INTEGER NOT NULL,
    PRIMARY KEY (span_id, status)
) WITHOUT ROWID;

-- Functions that were handed to other threads and called a driver there.
CREATE TABLE handoff (
    id INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,                -- whose threads: thread pool, anyio, aiosqlite, twisted
    path_id INTEGER NOT NULL REFERENCES stack (id), -- who handed them over
    span_id INTEGER NOT NULL REFERENCES span (id),
    count INTEGER NOT NULL,
    errors INTEGER NOT NULL,           -- raised something
    cancelled INTEGER NOT NULL,        -- never ran, or its end was not waited for
    UNIQUE (kind, path_id, span_id)
);

CREATE TABLE handoff_time (            -- where the time of a handoff went
    handoff_id INTEGER NOT NULL REFERENCES handoff (id),
    part TEXT NOT NULL,                -- queue, run, handback, total
    count INTEGER NOT NULL,
    total_ns INTEGER NOT NULL,
    max_ns INTEGER NOT NULL,
    PRIMARY KEY (handoff_id, part)
) WITHOUT ROWID;

CREATE TABLE handoff_histogram (       -- buckets as in `histogram`
    handoff_id INTEGER NOT NULL REFERENCES handoff (id),
    part TEXT NOT NULL,
    bucket INTEGER NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (handoff_id, part, bucket)
) WITHOUT ROWID;

-- What the threads of one name used, as the system counts it.
CREATE TABLE thread_usage (
    thread_id INTEGER PRIMARY KEY REFERENCES thread (id),
    user_ns INTEGER NOT NULL,          -- CPU time
    system_ns INTEGER NOT NULL,
    voluntary_switches INTEGER NOT NULL, -- of context: it waited
    involuntary_switches INTEGER NOT NULL, -- it was made to wait
    read_bytes INTEGER NOT NULL,       -- through calls that read, page cache included ...
    written_bytes INTEGER NOT NULL,
    read_calls INTEGER NOT NULL,       -- ... in so many system calls
    write_calls INTEGER NOT NULL
);

-- The same by the wall clock: intervals aligned to multiples of the width, which is the same
-- number of seconds for all rows and stands in `setting` (usage_width_ns).
CREATE TABLE thread_timeline (
    thread_id INTEGER NOT NULL REFERENCES thread (id),
    start_unix_ns INTEGER NOT NULL,
    cpu_ns INTEGER NOT NULL,
    read_bytes INTEGER NOT NULL,
    written_bytes INTEGER NOT NULL,
    PRIMARY KEY (thread_id, start_unix_ns)
) WITHOUT ROWID;
"""

MIGRATIONS: Mapping[int, str] = {
    1: LOOP_SCHEMA,
    2: PLAN_SCHEMA + "ALTER TABLE process ADD COLUMN unasked_plans INTEGER NOT NULL DEFAULT 0;"
    " ALTER TABLE process ADD COLUMN read_bytes INTEGER;"
    " ALTER TABLE process ADD COLUMN written_bytes INTEGER;",
    3: WORK_SCHEMA,
    4: "ALTER TABLE process ADD COLUMN clock_tick_ns REAL;"
    " ALTER TABLE process ADD COLUMN unmeasured TEXT;",
}
"""By version: the SQL that makes a trace of that version one of the next."""

SCHEMA = (
    """
-- One row for each process that was recorded.
CREATE TABLE process (
    id INTEGER PRIMARY KEY,
    pid INTEGER NOT NULL,
    parent_pid INTEGER NOT NULL,
    host TEXT NOT NULL,
    argv TEXT NOT NULL,                -- JSON list of strings
    directory TEXT NOT NULL,           -- working directory at the start
    python_version TEXT NOT NULL,
    sqlite_version TEXT NOT NULL,      -- of the standard library's sqlite3; '': it was not used
    queryprof_version TEXT NOT NULL,
    start_unix_ns INTEGER NOT NULL,
    end_unix_ns INTEGER NOT NULL,      -- or when it was last seen to do something
    clean_end INTEGER NOT NULL,        -- 1: it ended by itself; 0: killed, or still running
    clock TEXT NOT NULL,               -- what timed the calls
    rows_estimated INTEGER NOT NULL,   -- 1: times of operation 'next' are estimates
    counters_off TEXT,                 -- why SQLite's counters are unknown; NULL: they are on
    call_cost_ns REAL NOT NULL,        -- what the profiler added to one call, calibrated at start
    flushes INTEGER NOT NULL,          -- turns: once a second, what was in flight was added up
    flush_ns INTEGER NOT NULL,         -- time that they took, and that was spent on new statements
    folded_statements INTEGER NOT NULL, -- executions whose statement is '(other)' for want of room
    folded_calls INTEGER NOT NULL,     -- calls whose call path is unknown for want of room
    lost_counters INTEGER NOT NULL,    -- executions whose counters are unknown for want of room
    unasked_plans INTEGER NOT NULL,    -- questions for plans left out for want of time or room
    -- Through the process's calls that read and write, queryprof's own left out; NULL: unknown.
    read_bytes INTEGER,
    written_bytes INTEGER,
    clock_tick_ns REAL,                -- of what timed the calls; NULL: unknown
    unmeasured TEXT                    -- JSON list: imported database modules that are not measured;
                                       -- NULL: unknown
);

-- A statement: a SQL text without its literals, comments, white space and case of keywords.
-- Names in parentheses are no SQL: (connect), (close), (other), (unknown).
CREATE TABLE statement (
    id INTEGER PRIMARY KEY,
    text TEXT NOT NULL UNIQUE,
    note TEXT                          -- what a library told of it
);

-- A place in the program.
CREATE TABLE frame (
    id INTEGER PRIMARY KEY,
    function TEXT NOT NULL,            -- qualified name
    file TEXT NOT NULL,
    line INTEGER NOT NULL,             -- 0: unknown
    kind TEXT NOT NULL,                -- user, library, standard
    UNIQUE (function, file, line)
);

-- A call path (innermost frames of the program's own code) or a whole stack.
CREATE TABLE stack (
    id INTEGER PRIMARY KEY,
    frames TEXT NOT NULL UNIQUE        -- ids of frames, innermost first, joined by commas
);

CREATE TABLE span (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE          -- '': outside of any span
);

CREATE TABLE thread (
    id INTEGER PRIMARY KEY,
    process_id INTEGER NOT NULL REFERENCES process (id),
    name TEXT NOT NULL,
    UNIQUE (process_id, name)
);

-- What the calls of one operation, for one statement from one call path, add up to.
CREATE TABLE aggregate (
    id INTEGER PRIMARY KEY,
    statement_id INTEGER NOT NULL REFERENCES statement (id),
    path_id INTEGER NOT NULL REFERENCES stack (id),
    span_id INTEGER NOT NULL REFERENCES span (id),
    thread_id INTEGER NOT NULL REFERENCES thread (id),
    operation TEXT NOT NULL,           -- execute, fetchone, next, commit, ...
    count INTEGER NOT NULL,            -- calls
    errors INTEGER NOT NULL,           -- calls that raised
    rows INTEGER NOT NULL,             -- fetched by, or changed for, the program
    total_ns INTEGER NOT NULL,         -- in the calls
    self_ns INTEGER NOT NULL,          -- total_ns without profiled calls made inside
    min_ns INTEGER NOT NULL,           -- shortest call
    max_ns INTEGER NOT NULL,           -- longest call
    -- Of the executions that the operation began (itself and the fetches it led to):
    execution_max_ns INTEGER NOT NULL,
    execution_sum_sq_ns2 REAL NOT NULL, -- sum of squared durations, ns^2
    -- SQLite's own counters, of the `counted` executions for which they are known:
    counted INTEGER NOT NULL,
    vm_steps INTEGER NOT NULL,
    full_scan_steps INTEGER NOT NULL,
    sorts INTEGER NOT NULL,
    automatic_indexes INTEGER NOT NULL, -- rows put into automatic indexes
    reprepares INTEGER NOT NULL,
    page_fetches INTEGER NOT NULL,     -- of the page_fetch_samples executions for which known
    page_fetch_samples INTEGER NOT NULL,
    UNIQUE (statement_id, path_id, span_id, thread_id, operation)
);

-- Durations of executions: how many fell in each bucket. Bucket b < 16 is b ns; above, an octave
-- has 16 buckets: from (16 + b % 16) << (b / 16 - 1) ns on.
CREATE TABLE histogram (
    aggregate_id INTEGER NOT NULL REFERENCES aggregate (id),
    bucket INTEGER NOT NULL,
    executions INTEGER NOT NULL,
    PRIMARY KEY (aggregate_id, bucket)
) WITHOUT ROWID;

CREATE TABLE error (
    statement_id INTEGER NOT NULL REFERENCES statement (id),
    path_id INTEGER NOT NULL REFERENCES stack (id),
    operation TEXT NOT NULL,
    exception TEXT NOT NULL,           -- its type
    count INTEGER NOT NULL,
    PRIMARY KEY (statement_id, path_id, operation, exception)
) WITHOUT ROWID;

-- The slowest executions of each statement.
CREATE TABLE exemplar (
    id INTEGER PRIMARY KEY,
    statement_id INTEGER NOT NULL REFERENCES statement (id),
    path_id INTEGER NOT NULL REFERENCES stack (id),
    span_id INTEGER NOT NULL REFERENCES span (id),
    thread_id INTEGER NOT NULL REFERENCES thread (id),
    operation TEXT NOT NULL,
    started_unix_ns INTEGER NOT NULL,
    duration_ns INTEGER NOT NULL,
    rows INTEGER NOT NULL,
    stack_id INTEGER REFERENCES stack (id), -- NULL: not taken
    sql TEXT,                          -- NULL unless parameters were asked for
    parameters TEXT                    -- as in the column above
);
CREATE INDEX exemplar_of_statement ON exemplar (statement_id, duration_ns);

-- Whole stacks, of all slow executions (10 ms and more) and of 1 in 64 others weighted by 64:
-- estimates of how many executions, and how much time, each stack stands for.
CREATE TABLE stack_sample (
    statement_id INTEGER NOT NULL REFERENCES statement (id),
    stack_id INTEGER NOT NULL REFERENCES stack (id),
    executions INTEGER NOT NULL,
    ns INTEGER NOT NULL,
    PRIMARY KEY (statement_id, stack_id)
) WITHOUT ROWID;

-- Database work by the wall clock: intervals aligned to multiples of the width, which is the same
-- power of two for all rows and stands in `setting`.
CREATE TABLE timeline (
    start_unix_ns INTEGER PRIMARY KEY,
    calls INTEGER NOT NULL,
    rows INTEGER NOT NULL,
    self_ns INTEGER NOT NULL
);

CREATE TABLE setting (
    name TEXT PRIMARY KEY,             -- timeline_width_ns, usage_width_ns
    value INTEGER NOT NULL
) WITHOUT ROWID;
"""
    + LOOP_SCHEMA
    + PLAN_SCHEMA
    + WORK_SCHEMA
)
