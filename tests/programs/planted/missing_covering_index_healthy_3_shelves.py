# healthy: groups of a table whose index has all that is read, in their order
import sqlite3


class Library:
    def __init__(self):
        self.db = sqlite3.connect(":memory:")
        self.db.execute("CREATE TABLE volume (id INTEGER PRIMARY KEY, shelf INTEGER, pages INTEGER, title TEXT)")
        self.db.execute("CREATE INDEX volume_shelf_pages ON volume (shelf, pages)")

    def fill(self, volumes):
        self.db.executemany("INSERT INTO volume (shelf, pages, title) VALUES (?, ?, ?)", volumes)

    def shelves_above(self, pages):
        query = "SELECT shelf, sum(pages) FROM volume GROUP BY shelf HAVING sum(pages) > ?"
        return [shelf for shelf, _ in self.db.execute(query, (pages,))]


def bent(shelves):
    return sum(sum(range(shelf % 50)) for shelf in shelves for _ in range(60))


library = Library()
library.fill((n * 7919 % 101, n % 600, f"volume {n}") for n in range(20_000))
assert [bent(library.shelves_above(limit)) for limit in range(0, 4000, 100)]
