# category: duplicate_query
# fix: cache|keep|once
import sqlite3


class Tariffs:
    def __init__(self) -> None:
        self.db = sqlite3.connect(":memory:")
        self.db.execute("CREATE TABLE tariff (zone TEXT, kind TEXT, cents INTEGER, PRIMARY KEY (zone, kind))")
        self.db.executemany(
            "INSERT INTO tariff VALUES (?, ?, ?)",
            [(zone, kind, 7 * len(kind)) for zone in "ABCDEF" for kind in ("day", "night", "weekend")],
        )

    def _one(self, query: str, *values: str) -> int:
        return self.db.execute(query, values).fetchone()[0]  # culprit

    def cents(self, zone: str, kind: str) -> int:
        return self._one("SELECT cents FROM tariff WHERE zone = ? AND kind = ?", zone, kind)  # culprit


def kind_of(hour: int) -> str:
    return "night" if hour < 6 or hour > 21 else "day"


def bill(tariffs: Tariffs, usage: list[tuple[str, int, int]]) -> int:
    total = 0
    for zone, hour, kilowatts in usage:
        total += kilowatts * tariffs.cents(zone, kind_of(hour))  # culprit
    return total


meter = [("ABCDEF"[i % 6], i % 24, i % 11) for i in range(120_000)]
print(bill(Tariffs(), meter))
