"""The triggers that a write fires, by the SQL that created them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from queryprof.sql.clauses import WRITES, all_comparisons_of, clauses_of, column_of, verb_of
from queryprof.sql.tokens import tokens_of

EVENTS = ("INSERT", "UPDATE", "DELETE")
BEFORE_EVENT = frozenset({"BEFORE", "AFTER", "INSTEAD", "OF"})


@dataclass(frozen=True, slots=True)
class Trigger:
    """A trigger.

    Attributes:
        event: INSERT, UPDATE or DELETE; table: in small letters.
        columns: whose UPDATE alone it is for, in small letters; empty: of any.
    """

    name: str
    event: str
    table: str
    columns: tuple[str, ...]


def triggers_in(created: Iterable[str]) -> tuple[Trigger, ...]:
    """The triggers that some statements create."""
    return tuple(filter(None, map(trigger_in, created)))


def triggers_of(statement: str, triggers: Iterable[Trigger]) -> Iterator[Trigger]:
    """Those that a statement fires, which changes a table."""
    verb, table = verb_of(statement).replace("REPLACE", "INSERT"), clauses_of(statement).changed
    given = {column_of(one.left) for one in all_comparisons_of(statement) if one.clause == "SET"}
    for one in triggers if verb in WRITES else ():
        is_fired = (one.event, one.table) == (verb, table)
        if is_fired and not (one.columns and given.isdisjoint(one.columns)):
            yield one


def trigger_in(sql: str) -> Trigger | None:
    """The trigger that a statement creates (https://www.sqlite.org/lang_createtrigger.html)."""
    tokens = tokens_of(sql)
    words = [token.keyword for token in tokens]
    if words[:1] != ["CREATE"] or "TRIGGER" not in words[1:3]:
        return None
    event = next((at for at, word in enumerate(words) if word in EVENTS), 0)
    on = next((at for at, word in enumerate(words) if at > event and word == "ON"), 0)
    if not event or not on or on + 1 >= len(tokens):
        return None
    named = [one for one in tokens[:event] if one.named and one.keyword not in BEFORE_EVENT]
    has_schema = tokens[on + 2 : on + 3] and tokens[on + 2].text == "."
    table = tokens[on + 3 if has_schema else on + 1 :][:1]
    return Trigger(
        sql[named[-1].start :][: len(named[-1].text)].strip('"`[]'),
        words[event],
        table[0].named if table else "",
        tuple(one.named for one in tokens[event + 2 : on] if one.named),
    )
