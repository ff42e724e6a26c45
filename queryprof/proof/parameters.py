"""Number the parameters of a statement during a rewrite."""

from __future__ import annotations

from queryprof.planner.values import Values, placeholders, replace_placeholders

NAME = ":queryprof_"


def numbered(number: int) -> str:
    """Return the placeholder of a parameter, numbered from 0."""
    return f"{NAME}{number + 1}"


def placeholder_index(placeholder: str) -> int:
    return int(placeholder.removeprefix(NAME)) - 1


class Parameters:
    """The values of numbered parameters. Placeholders become :queryprof_1, :queryprof_2, ..., so
    that a rewrite can move and repeat them.
    """

    def __init__(self) -> None:
        self._values: list[object] = []
        self._names: list[str] = []

    def number_parameters(self, sql: str, values: Values) -> str:
        """Return the text with numbered placeholders, and store the values."""
        first = len(self._values)
        names = placeholders(sql)
        if isinstance(values, dict):
            wanted = list(dict.fromkeys(name[1:] for name in names))
            self._values += [values[name] for name in wanted]
            self._names += wanted
            return replace_placeholders(
                sql, [numbered(first + wanted.index(name[1:])) for name in names]
            )
        self._values += values
        self._names += [""] * len(values)
        known: dict[str, int] = {}
        numbers = []
        for place, name in enumerate(names):
            own = int(name[1:]) - 1 if name[1:].isdecimal() else len(known)
            numbers.append(known.setdefault(name if name != "?" else f"?{place}", own))
        return replace_placeholders(sql, [numbered(first + number) for number in numbers])

    @property
    def count(self) -> int:
        return len(self._values)

    def add(self, name: str, value: object) -> str:
        """Add a parameter, and return its placeholder."""
        self._values.append(value)
        self._names.append(name if any(self._names) else "")
        return numbered(len(self._values) - 1)

    def value(self, placeholder: str) -> object:
        return self._values[placeholder_index(placeholder)]

    def restore_placeholders(self, sql: str) -> tuple[str, Values]:
        """Return the text with placeholders as a program would write them, and its values. The
        placeholders have names if all parameters had names.
        """
        numbers = [placeholder_index(name) for name in placeholders(sql)]
        names = [self._names[number] for number in numbers]
        if numbers and all(names) and len(set(numbers)) == len(set(names)):
            named = dict(zip(names, (self._values[number] for number in numbers), strict=True))
            return replace_placeholders(sql, [f":{name}" for name in names]), named
        return replace_placeholders(sql, ["?"] * len(numbers)), tuple(
            self._values[n] for n in numbers
        )
