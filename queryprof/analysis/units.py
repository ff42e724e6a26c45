"""Format numbers for reports: durations with three digits and a unit, counts with commas."""

UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))

UNKNOWN = "?"
"""The text for an unknown figure, which must not look like 0."""


def duration(ns: float | None) -> str:
    """Format a duration in ns as 1.23 s, 45.6 ms, 789 µs or 12 ns."""
    if ns is None:
        return UNKNOWN
    for size, unit in UNITS:
        value = ns / size
        if value >= 0.9995 or unit == "ns":
            digits = 0 if unit == "ns" or value >= 99.95 else 1 if value >= 9.995 else 2
            return f"{value:,.{digits}f} {unit}"
    raise AssertionError("unreachable: the last unit takes everything")


def seconds(ns: float) -> str:
    """Format a duration in ns as seconds with six decimals, for columns that are compared."""
    return f"{ns / 1e9:,.6f}"


def count(value: float) -> str:
    """Format a count with commas."""
    return f"{value:,.0f}"


def average(value: float | None) -> str:
    """Format a mean per execution, with one decimal if below 100 and not whole. None is "?"."""
    if value is None:
        return UNKNOWN
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:,.1f}"


def format_factor(value: float) -> str:
    """Format a factor: x1.2, x1.23, x12.3, x194,000."""
    return f"x{value:,.0f}" if value >= 100 else f"x{value:.3g}"


def percent(share: float) -> str:
    """Format a share (0 to 1) as 12.3%."""
    return f"{share * 100:.1f}%"


def counted(value: int, noun: str) -> str:
    """Format a count with its noun: 1 error, 2 errors."""
    return f"{value:,} {noun}{'' if value == 1 else 's'}"


def each_of_in_words(number: int, noun: str) -> str:
    """Return "each of 3 spans", or "1 span"."""
    return f"each of {counted(number, noun)}" if number > 1 else counted(number, noun)


def each_if_several(number: int) -> str:
    """Return " each", or "" if the number is 1."""
    return " each" if number > 1 else ""


def shorten(text: str, most: int) -> str:
    """Shorten a text to at most `most` characters, after a whole word, with "..."."""
    if len(text) <= most:
        return text
    cut = text[: most - 3]  # the text before "..."
    return f"{cut[: cut.rfind(' ')] if ' ' in cut else cut[:-1]} ..."


def rows_in_words(number: float) -> str:
    """Format a mean number of rows: "1 row", "2.5 rows"."""
    text = average(number)
    return f"{text} row" if text == "1" else f"{text} rows"


def scanned_rows_in_words(steps: float) -> str:
    """Format the number of scanned rows. SQLite counts the steps between rows, one fewer than the
    rows.
    """
    return rows_in_words(steps + 1)


def format_bytes(value: float | None) -> str:
    """Format bytes as 12 B, 3.4 kB, 5.6 MB or 7.8 GB (powers of 1,000). None is "?"."""
    if value is None:
        return UNKNOWN
    for unit in ("B", "kB", "MB"):
        if abs(value) < 999.5:
            return f"{value:,.0f} B" if unit == "B" else f"{value:.3g} {unit}"
        value /= 1000
    return f"{value:,.3g} GB"
