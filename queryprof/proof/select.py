"""The clauses of a SELECT and its parameters, as far as statements are rewritten: what a text cannot be
split into is left alone, and SQLite judges what comes out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from queryprof.proof.values import Values, placeholders, replaced

TOKEN = re.compile(
    r"""'(?:[^']|'')*' | "(?:[^"]|"")*" | `[^`]*` | \[[^\]]*\] | --[^\n]* | /\*.*?\*/
        | [?:@$]?\w+ | \s+ | .""",
    re.VERBOSE | re.DOTALL,
)  # fmt: skip
CLAUSES = ("SELECT", "FROM", "WHERE", "ORDER", "LIMIT")
OTHERS = frozenset(
    {"GROUP", "HAVING", "WINDOW", "UNION", "EXCEPT", "INTERSECT", "DISTINCT", "WITH"}
)


@dataclass(frozen=True, slots=True)
class Select:
    """The texts of its clauses, without the keywords; "" for one that is not there."""

    columns: str
    source: str
    where: str
    order: str
    limit: str


def select_of(sql: str) -> Select | None:
    """The clauses; None for what is no plain SELECT: compound, grouped, DISTINCT or WITH."""
    parts: dict[str, list[str]] = {}
    depth, clause = 0, ""
    for part in TOKEN.findall(sql.strip().rstrip(";")):
        word = part.upper()
        depth += {"(": 1, ")": -1}.get(part, 0)
        if not depth and word in OTHERS:
            return None
        if not depth and word in CLAUSES:
            if word in parts:
                return None
            clause = word
            parts[clause] = []
        elif not clause and not part.isspace():
            return None
        elif clause:
            parts[clause].append(" " if part.startswith(("--", "/*")) else part)
    texts = {name: "".join(own).strip() for name, own in parts.items()}
    if not texts.get("SELECT") or not texts.get("FROM"):
        return None
    order = re.sub(r"^BY\s+", "", texts.get("ORDER", ""), flags=re.IGNORECASE)
    return Select(
        texts["SELECT"], texts["FROM"], texts.get("WHERE", ""), order, texts.get("LIMIT", "")
    )


def listed(text: str) -> list[str]:
    """The items of a list: commas in brackets and strings separate nothing."""
    items, depth = [""], 0
    for part in TOKEN.findall(text):
        depth += {"(": 1, ")": -1}.get(part, 0)
        if part == "," and not depth:
            items.append("")
        else:
            items[-1] += part
    return [item.strip() for item in items]


class Parameters:
    """The parameters of a statement while it is rewritten: each has a number, and is ?1, ?2, ... in its
    text, so that it can be moved and repeated.
    """

    def __init__(self) -> None:
        self._values: list[object] = []
        self._names: list[str] = []

    def numbered(self, sql: str, values: Values) -> str:
        """The text with numbered parameters."""
        first = len(self._values)
        names = placeholders(sql)
        if isinstance(values, dict):
            wanted = list(dict.fromkeys(name[1:] for name in names))
            self._values += [values[name] for name in wanted]
            self._names += wanted
            return replaced(sql, [f"?{first + wanted.index(name[1:]) + 1}" for name in names])
        self._values += values
        self._names += [""] * len(values)
        known: dict[str, int] = {}
        numbers = []
        for place, name in enumerate(names):
            own = int(name[1:]) - 1 if re.fullmatch(r"\?\d+", name) else len(known)
            numbers.append(known.setdefault(name if name != "?" else f"?{place}", own))
        return replaced(sql, [f"?{first + number + 1}" for number in numbers])

    @property
    def count(self) -> int:
        return len(self._values)

    def add(self, name: str, value: object) -> str:
        """Another one."""
        self._values.append(value)
        self._names.append(name if any(self._names) else "")
        return f"?{len(self._values)}"

    def value(self, placeholder: str) -> object:
        return self._values[int(placeholder[1:]) - 1]

    def finished(self, sql: str) -> tuple[str, Values]:
        """The text as a program would write it, and its values: by name where all had names."""
        numbers = [int(name[1:]) - 1 for name in placeholders(sql)]
        names = [self._names[number] for number in numbers]
        if numbers and all(names) and len(set(numbers)) == len(set(names)):
            named = dict(zip(names, (self._values[number] for number in numbers), strict=True))
            return replaced(sql, [f":{name}" for name in names]), named
        return replaced(sql, ["?"] * len(numbers)), tuple(self._values[n] for n in numbers)


def assembled(select: Select) -> str:
    """The statement of its clauses."""
    parts: Sequence[tuple[str, str]] = (
        ("SELECT", select.columns), ("FROM", select.source), ("WHERE", select.where),
        ("ORDER BY", select.order), ("LIMIT", select.limit),
    )  # fmt: skip
    return " ".join(f"{keyword} {text}" for keyword, text in parts if text)
