"""Find the triggers that a write fires, from the CREATE TRIGGER statements."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from queryprof.sql.clauses import WRITES, all_comparisons_of, clauses_of, verb_of
from queryprof.sql.operands import operand_column
from queryprof.sql.tokens import Token, tokens_of

EVENTS = ("INSERT", "UPDATE", "DELETE")
BEFORE_EVENT = frozenset({"BEFORE", "AFTER", "INSTEAD", "OF"})


@dataclass(frozen=True, slots=True)
class Trigger:
    """A trigger.

    Attributes:
        event: INSERT, UPDATE or DELETE.
        table: the table's name in lower case.
        columns: columns whose UPDATE fires the trigger, in lower case; empty for all.
        has_condition: whether the trigger runs only if its WHEN condition is true.
    """

    name: str
    event: str
    table: str
    columns: tuple[str, ...]
    has_condition: bool = False


def remaining_triggers(created: Iterable[str]) -> tuple[Trigger, ...]:
    """Return the triggers that statements create and do not drop later."""
    found: dict[str, Trigger] = {}
    for sql in created:
        if trigger := created_trigger(sql):
            found[trigger.name.lower()] = trigger
        elif name := _dropped_trigger(sql):
            found.pop(name, None)
    return tuple(found.values())


def _dropped_trigger(sql: str) -> str:
    tokens = tokens_of(sql)
    is_drop = [token.keyword for token in tokens[:2]] == ["DROP", "TRIGGER"]
    return _unquoted_name(tokens[-1]).lower() if is_drop and len(tokens) > 2 else ""


def _unquoted_name(token: Token) -> str:
    """Return a name without quotes, in its original case. SQLite also accepts a string as a
    name.
    """
    text = token.text
    if token.kind not in ("name", "text") or len(text) < 2:
        return text
    return text[1:-1].replace(text[0] * 2, text[0])


def fired_triggers(statement: str, triggers: Iterable[Trigger]) -> Iterator[Trigger]:
    """Yield the triggers that a statement fires.

    An upsert (ON CONFLICT DO UPDATE) fires the triggers of both events.
    """
    verb, table = verb_of(statement).replace("REPLACE", "INSERT"), clauses_of(statement).changed
    words = [token.keyword for token in tokens_of(statement)]
    verbs = {verb, "UPDATE"} if ("DO", "UPDATE") in pairwise(words) else {verb}
    given = {
        operand_column(one.left) for one in all_comparisons_of(statement) if one.clause == "SET"
    }
    for one in triggers if verb in WRITES else ():
        is_fired = one.event in verbs and one.table == table
        if is_fired and not (one.columns and given.isdisjoint(one.columns)):
            yield one


def created_trigger(sql: str) -> Trigger | None:
    """Return the trigger that a statement creates
    (https://www.sqlite.org/lang_createtrigger.html).
    """
    tokens = tokens_of(sql)
    words = [token.keyword for token in tokens]
    if words[:1] != ["CREATE"] or "TRIGGER" not in words[1:3]:
        return None
    event = next((at for at, word in enumerate(words) if word in EVENTS), 0)
    on = next((at for at, word in enumerate(words) if at > event and word == "ON"), 0)
    if not event or not on or on + 1 >= len(tokens):
        return None
    named = [one for one in tokens[:event] if one.keyword not in BEFORE_EVENT]
    has_schema = tokens[on + 2 : on + 3] and tokens[on + 2].text == "."
    table = tokens[on + 3 if has_schema else on + 1 :][:1]
    return Trigger(
        _unquoted_name(named[-1]),
        words[event],
        table[0].named if table else "",
        tuple(one.named for one in tokens[event + 2 : on] if one.named),
        "WHEN" in words[on : words.index("BEGIN", on) if "BEGIN" in words[on:] else on],
    )
