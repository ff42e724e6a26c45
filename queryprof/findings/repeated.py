"""Findings about statements that repeat with the same parameters, or whose texts differ only in
values.
"""

from __future__ import annotations

from collections.abc import Iterator

from queryprof.analysis.library_frames import LAZY
from queryprof.analysis.units import average, counted, percent
from queryprof.findings import shares
from queryprof.findings.finding import Finding, Severity, first_text_if_true
from queryprof.findings.groups import StatementGroup
from queryprof.findings.heavy_causes import python_calls_evidence
from queryprof.findings.loop_shapes import loads_by_position
from queryprof.findings.n_plus_one import parent_query
from queryprof.findings.program import Program
from queryprof.findings.span_repeats import FEW
from queryprof.findings.units_of_work import (
    IN_A_READER,
    IN_A_REQUEST,
    is_in_request,
    is_of_a_reader,
)
from queryprof.sql.operands import functions_in
from queryprof.sql.tokens import parameters_in, tokens_of

REPEATED_SHARE = 0.5
MIN_SAMPLES = 4
SURE_SAMPLES = 12
"""With this many samples, the share of repeats is rarely off by much: if 25% of all executions are
repeats, 50% of the samples are repeats in only one of 20 recordings (binomial distribution).
"""

MIN_PREPARE_SHARE = 0.5
MIN_TEXTS = 50
CACHED_TEXTS = 128
"""The number of prepared statements that a sqlite3 connection keeps (`cached_statements` of
sqlite3.connect).
"""


AS_PARAMETERS = (
    "Pass the values as parameters, so that the text is prepared once. This also prevents SQL"
    " injection."
)
OF_ROWS = (
    "Each text inserts a different number of rows. Insert chunks of one size, or use executemany()."
)
"""The fix for statements such as INSERT ... VALUES (?, ?), (?, ?)."""

AS_MANY = (
    "If the values are in the text, pass them as parameters, with one ? per list value (', '.join("
    "'?' * len(values))). This also prevents SQL injection. If they are parameters already, repeat"
    " the last value until the list has one of a few lengths, such as the next power of two."
)


IN_LISTS = "It is unknown whether the lists differ in their values or only in their lengths. "


OTHERS_WRITE = (
    "Another process writes, perhaps between these executions: a kept result may then be outdated."
)


SLOW_SHARE = 0.2
"""A query whose few repeats take at least this share of the time is reported."""


def find_duplicate_queries(program: Program) -> Iterator[Finding | None]:
    if any(one.verb == "ATTACH" and one.totals.executions > 1 for one in program.all_groups):
        return  # the same text may read another file
    for group in program.groups:
        ratio = (
            group.given.repeats / group.given.samples if group.given.samples >= MIN_SAMPLES else 0.0
        )
        is_sure = group.given.samples >= SURE_SAMPLES
        runs = group.totals.executions
        how_many = (
            f"{percent(ratio)} of {average(group.given.samples)} sampled executions repeated"
            " recent parameters, and the process wrote nothing in between"
        )
        is_equal = not (program.writes or parameters_in(group.statement))
        repeated_share = (runs - group.processes) / max(1, runs)
        is_slow = program.share_of(group, group.cost_ns * repeated_share) >= SLOW_SHARE
        are_few_slow = is_equal and is_slow and runs < FEW
        # If there are no parameters and no writes, one repeated sample is enough, and no sample is
        # needed for few slow executions.
        if are_few_slow or (is_equal and group.given.repeats):
            how_many = "the query has no parameters, and the program wrote nothing"
            ratio, is_sure = repeated_share, runs >= FEW
        few = "The query ran only a few times." if are_few_slow else "Few executions were sampled."
        others = program.writing_process_ids - group.process_ids
        is_heavy = program.share_of(group, group.cost_ns) >= SLOW_SHARE
        in_request = not is_heavy and is_in_request(program, group)
        # the values of parameters come from the requests; a constant query may be worth keeping
        may_be_usual = not is_heavy or bool(parameters_in(group.statement))
        is_of_reader = may_be_usual and is_of_a_reader(program, group)
        is_doubtful = bool(others or in_request or is_of_reader)
        is_said = are_few_slow or (runs >= FEW and ratio >= REPEATED_SHARE)
        if (
            is_said
            and group.reads
            and not is_volatile(group.statement)
            and not program.belongs_to_other_call(group)
            and not _is_lazy_load(program, group)
            and not _varies_with_parent(program, group)
        ):
            yield program.make_finding(
                "duplicate_query",
                group,
                group.cost_ns * ratio,
                (
                    f"{counted(runs, 'execution')}; {how_many}",
                    *python_calls_evidence(program, group),
                ),
                "Run the query once, before the loop or once per request, and keep the result. Or"
                " cache it (functools.lru_cache; in a coroutine, a dict) and clear the cache after"
                " each write.",
                program.innermost_loop(group),
                doubt=first_text_if_true(
                    (others, OTHERS_WRITE),
                    (in_request, IN_A_REQUEST),
                    (is_of_reader, IN_A_READER),
                    (not is_sure, few),
                ),
                most=_highest_severity(is_doubtful=is_doubtful, is_sure=is_sure),
            )


def _highest_severity(is_doubtful: bool, is_sure: bool) -> Severity:
    if is_doubtful:
        return Severity.LOW
    return Severity.HIGH if is_sure else Severity.MEDIUM


VOLATILE = frozenset(
    {
        *("random", "randomblob", "changes", "total_changes", "last_insert_rowid", "rand", "uuid"),
        *("gen_random_uuid", "nextval", "currval", "lastval", "clock_timestamp", "sysdate"),
        *("statement_timestamp", "transaction_timestamp", "timeofday", "now"),
    }
)
"""Functions whose result changes from call to call (https://www.sqlite.org/deterministic.html,
https://www.postgresql.org/docs/current/functions-datetime.html)."""

TIME_ARGUMENT_OFFSETS = {"strftime": 4} | dict.fromkeys(
    ("date", "time", "datetime", "julianday", "unixepoch"), 2
)
"""Functions that take a time, which may be 'now'. The number is the position of the time, in tokens
after the function's name (https://www.sqlite.org/lang_datefunc.html).
"""

NOW = frozenset({"CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP", "LOCALTIMESTAMP"})


def is_volatile(statement: str) -> bool:
    """Return whether equal executions may return different rows although nothing was written. A
    recorded text has no literals, so a literal in a date function may have been 'now'.
    """
    tokens = tokens_of(statement)
    if VOLATILE & {*functions_in(tokens)} or any(one.keyword in NOW for one in tokens):
        return True
    calls = [at for at, one in enumerate(tokens[:-2]) if tokens[at + 1].text == "("]
    times = [
        time
        for at in calls
        if (further := TIME_ARGUMENT_OFFSETS.get(tokens[at].named))
        for time in tokens[at + further : at + further + 1]
    ]
    return any(time.kind in ("parameter", "text") or time.text == ")" for time in times)


FEW_VALUES = 8
"""With more distinct values than this in the samples, a parent query's rows supply the values."""


def _varies_with_parent(program: Program, group: StatementGroup) -> bool:
    """Return whether the rows of a parent query supply many different values. Some rows may share a
    value, but one query for all rows replaces all executions.
    """
    values = group.given.samples - group.given.repeats
    return values > FEW_VALUES and parent_query(program, group) is not None


def _is_lazy_load(program: Program, group: StatementGroup) -> bool:
    """Return whether the statement loads an attribute for each row of another query. A preload
    would load all these attributes at once, including equal ones.
    """
    note = program.library_note(group) or ""
    return note.startswith(LAZY) and parent_query(program, group) is not None


def find_repeated_preparation(program: Program) -> Iterator[Finding | None]:
    for group in program.groups:
        runs = group.totals.statement_executions
        if not (group.reads or group.writes):
            continue  # a savepoint's name cannot be a parameter
        if loads_by_position(program, group):
            continue  # the position is in the text; find_n_plus_one reports it
        # If more texts alternate than a connection keeps, each text is prepared again.
        prepared = 1.0 if group.texts > CACHED_TEXTS else group.texts / max(runs, 1)
        inserts_many = group.verb == "INSERT" and _rows_per_execution(group) > 1
        of_values = group.compares_with_list and not inserts_many
        is_of_lists = of_values or inserts_many
        if group.texts >= MIN_TEXTS and prepared >= MIN_PREPARE_SHARE and runs >= MIN_TEXTS:
            yield program.make_finding(
                "re_prepare",
                group,
                min(1.0, prepared) * _preparation_ns(program, group),
                (
                    (
                        f"{counted(runs, 'execution')} of about {average(group.texts)}"
                        f" texts that differ {_difference(group, inserts_many)}: SQLite parses and"
                        " plans each of them"
                    ),
                ),
                OF_ROWS if inserts_many else AS_MANY if is_of_lists else AS_PARAMETERS,
                program.innermost_loop(group),
                code="" if is_of_lists else _execute_with_parameters_code(group.statement),
                doubt=IN_LISTS * of_values
                + "The gain is an estimate, from the time to prepare short statements."
                + (
                    " It assumes that the program alternates between more texts than a connection"
                    " caches (128)."
                )
                * (CACHED_TEXTS < group.texts < runs),
                most=Severity.LOW if of_values else Severity.HIGH,
            )


def _rows_per_execution(group: StatementGroup) -> float:
    return group.rows / max(1, group.totals.statement_executions)


def _difference(group: StatementGroup, inserts_many: bool) -> str:
    if inserts_many:
        return "in their number of rows"
    return "in a list" if group.compares_with_list else "only in their values"


def _preparation_ns(program: Program, group: StatementGroup) -> float:
    """Return the time to prepare a group's texts, if each execution has a different text.
    SQLAlchemy compiles a query once for all lengths of a list.
    """
    is_compiled = (
        program.library(group.statement) == "sqlalchemy"
        and group.line_ns is not None
        and not group.compares_with_list
    )
    compiled_ns = shares.COMPILED * group.cost_ns if is_compiled else 0.0
    return max(shares.PREPARED * group.steady_ns, compiled_ns)


def _execute_with_parameters_code(statement: str) -> str:
    return f'connection.execute("{statement[:120]}", parameters)' if len(statement) <= 120 else ""
