"""fetchone() of queries that SQLite answers row by row: nothing is made in vain."""
import sqlite3


class Seats:
    def __init__(self) -> None:
        self.db = sqlite3.connect(":memory:")
        self.db.execute("CREATE TABLE seat (hall INTEGER, row INTEGER, number INTEGER, taken INTEGER)")
        self.db.execute("CREATE INDEX seat_hall ON seat (hall, taken, row)")
        rows = ((h, r, n, (h + r + n) % 3 == 0) for h in range(40) for r in range(40) for n in range(40))
        self.db.executemany("INSERT INTO seat VALUES (?, ?, ?, ?)", rows)

    def first_free(self, hall: int) -> tuple[int, int]:
        query = "SELECT row, number FROM seat WHERE hall = ? AND taken = 0 ORDER BY row"
        return self.db.execute(query, (hall,)).fetchone()

    def plan(self, hall: int) -> str:
        cells = self.db.execute("SELECT row, number, taken FROM seat WHERE hall = ?", (hall,))
        lines: dict[int, list[str]] = {}
        for row, _number, taken in cells:
            lines.setdefault(row, []).append(".#"[taken])
        return "\n".join("".join(line) for line in lines.values())


seats = Seats()
print([seats.first_free(hall) for hall in range(40)])
print(sum(seats.plan(hall).count("#") for hall in range(40)))
