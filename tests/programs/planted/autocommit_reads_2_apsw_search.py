# category: autocommit_reads|many_cheap|duplicate_query
# fix: one transaction|BEGIN|WAL|memory|keep the result
import os

import apsw


def open_ranges(path: str, count: int) -> apsw.Connection:
    connection = apsw.Connection(path)
    connection.execute("CREATE TABLE range (number INTEGER PRIMARY KEY, low INTEGER, country TEXT)")
    with connection:
        rows = ((i, i * 37 + i % 5, f"c{i % 200}") for i in range(count))
        connection.executemany("INSERT INTO range VALUES (?, ?, ?)", rows)
    return connection


class Locator:
    def __init__(self, connection: apsw.Connection, count: int) -> None:
        self.connection = connection
        self.count = count

    def low(self, number: int) -> int:
        query = "SELECT low FROM range WHERE number = ?"
        return next(self.connection.execute(query, (number,)))[0]  # culprit

    def find(self, address: int) -> int:
        left, right = 0, self.count
        while right - left > 1:
            middle = (left + right) // 2
            if self.low(middle) <= address:  # culprit
                left = middle
            else:
                right = middle
        return left


if os.path.exists("ranges.db"):
    os.remove("ranges.db")
locator = Locator(open_ranges("ranges.db", 30_000), 30_000)
print(sum(locator.find(address) for address in range(0, 1_000_000, 250)))
locator.connection.close()
os.remove("ranges.db")
