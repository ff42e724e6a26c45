"""A program that uses SQLite as programs do, in an order that only its seed decides.

`python random_programs.py SEED STATEMENTS` prints the result of each statement and writes its
databases into the working directory, so that two runs can be compared.
"""

from __future__ import annotations

import gc
import random
import sqlite3
import sys
from collections.abc import Callable, Iterator
from typing import Any, Literal

ISOLATION_LEVELS: tuple[Literal["DEFERRED", "IMMEDIATE"] | None, ...] = (
    None,
    "DEFERRED",
    "IMMEDIATE",
)
FILES = ("one.db", "two.db", ":memory:")
VIRTUAL = (
    "CREATE VIRTUAL TABLE IF NOT EXISTS v0 USING rtree(id, low, high)",
    "CREATE VIRTUAL TABLE IF NOT EXISTS v1 USING fts4(a, b)",
    "CREATE VIRTUAL TABLE IF NOT EXISTS v2 USING fts5(a, b)",
)
SELECTS = (
    "SELECT a, b FROM t{n} WHERE a > {k} ORDER BY a, b, rowid",
    "SELECT count(*), sum(a) FROM t{n} JOIN t{m} USING (a)",
    "SELECT DISTINCT b FROM t{n} ORDER BY 1 LIMIT {k}",
    "SELECT name, type FROM sqlite_master ORDER BY 1, 2",
    "SELECT changes(), total_changes(), last_insert_rowid()",
    "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r LIMIT {k}) SELECT n FROM r",
    'SELECT "a", "no such column" FROM t{n} ORDER BY rowid',
    "SELECT ask({k}), ask(a) FROM t{n} ORDER BY rowid LIMIT 3",
    "SELECT * FROM w{n} ORDER BY 1, 2 LIMIT {k}",
    "SELECT count(*) FROM aside{n}.t{m}",
    "SELECT id FROM v0 WHERE low <= {k} ORDER BY 1",
    "SELECT docid, a FROM v1 WHERE v1 MATCH 'word{k}' ORDER BY 1",
    "SELECT rowid, b FROM v2 WHERE v2 MATCH 'word{k}' ORDER BY 1",
    "PRAGMA table_info(t{n})",
    "SELECT fail({k})",
    "SELECT nothing FROM t{n}",
    "SELEC {k}",
)
CHANGES = (
    "INSERT INTO t{n} (a, b) VALUES ({k}, changes())",
    "INSERT INTO t{n} (a, b) SELECT a + {k}, b FROM t{m} ORDER BY rowid LIMIT 5",
    "INSERT INTO t{n} (a) VALUES ({k}) ON CONFLICT DO UPDATE SET b = total_changes()",
    "INSERT INTO t{n} (a, b) VALUES ({k}, 'x') RETURNING rowid, changes()",
    "REPLACE INTO t{n} (a, b) VALUES ({k}, ask({k}))",
    "UPDATE t{n} SET b = changes() WHERE a % 7 = {k} % 7",
    "DELETE FROM t{n} WHERE a % 11 = {k} % 11",
    "DELETE FROM t{n}",
    "INSERT INTO v0 VALUES (NULL, {k}, {k} + 5)",
    "INSERT INTO v1 (a, b) VALUES ('word{k} and', 'word{n}')",
    "INSERT INTO v2 (a, b) VALUES ('word{k} and', 'word{n}')",
    "UPDATE v2 SET b = 'word{n}' WHERE rowid = {k}",
    "DELETE FROM v1 WHERE docid = {k}",
    "INSERT INTO aside{n}.t{m} (a, b) VALUES ({k}, 0)",
)
TRIGGER = " BEGIN UPDATE t{m} SET b = changes() WHERE a = new.a; END"
SCHEMAS = (
    "CREATE TABLE IF NOT EXISTS t{n} (a INTEGER, b DEFAULT (changes()), UNIQUE (a, b))",
    "DROP TABLE IF EXISTS t{n}",
    "CREATE INDEX IF NOT EXISTS i{n} ON t{n} (b, a)",
    "DROP INDEX IF EXISTS i{n}",
    "ALTER TABLE t{n} ADD COLUMN c{k}",
    "CREATE VIEW IF NOT EXISTS w{n} AS SELECT a, changes() AS c FROM t{m}",
    "DROP VIEW IF EXISTS w{n}",
    "CREATE TRIGGER IF NOT EXISTS g{n} AFTER INSERT ON t{n}{trigger}",
    "DROP TRIGGER IF EXISTS g{n}",
    "ANALYZE",
    *VIRTUAL,
    "DROP TABLE IF EXISTS v{n}",
)
TRANSACTIONS = (
    "BEGIN",
    "BEGIN IMMEDIATE",
    "COMMIT",
    "ROLLBACK",
    "SAVEPOINT s{n}",
    "RELEASE s{n}",
    "ROLLBACK TO s{n}",
    "ATTACH 'two.db' AS aside{n}",
    "DETACH aside{n}",
)


class Program:
    """A random program: connections, open cursors, and operations on both."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.depth = 0
        self.cursors: list[sqlite3.Cursor] = []
        self.connections = [self.connect(file) for file in (*FILES, FILES[0], FILES[1])]

    def connect(self, file: str) -> sqlite3.Connection:
        """Open a connection with functions of the program, and with random settings."""
        connection = sqlite3.connect(
            file,
            timeout=0,
            cached_statements=self.random.choice((0, 1, 128)),
            isolation_level=self.random.choice(ISOLATION_LEVELS),
        )
        connection.create_function("ask", 1, self.ask)
        connection.create_function("fail", 1, lambda number: 1 // 0)
        connection.row_factory = self.random.choice((None, sqlite3.Row, self.row))
        connection.execute("PRAGMA secure_delete = ON")
        return connection

    def row(self, cursor: sqlite3.Cursor, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """A row factory that runs a query."""
        return (*values, self.ask(1))

    def ask(self, value: str | float | None) -> str | float | None:
        """Run a query on another connection, or on the same one, while a statement runs."""
        if self.depth > 1:
            return value
        self.depth += 1
        try:
            one = self.random.choice(self.connections)
            return len(one.execute("SELECT name FROM sqlite_master").fetchall())
        except sqlite3.Error as error:
            return str(error)
        finally:
            self.depth -= 1

    def text(self, texts: tuple[str, ...]) -> str:
        """Return one of the statements, with numbers."""
        n, m, k = (self.random.randrange(top) for top in (3, 3, 40))
        return self.random.choice(texts).format(n=n, m=m, k=k, trigger=TRIGGER.format(m=m))

    def parameters(self) -> Iterator[tuple[object, object]]:
        """Yield parameters of an executemany. It runs queries in between, and may raise."""
        for i in range(self.random.randrange(6)):
            if self.random.random() < 0.05:
                raise ValueError("no more")
            yield i, self.ask(i)

    def one(self) -> sqlite3.Connection:
        """Return any of the connections."""
        return self.random.choice(self.connections)

    def select(self) -> object:
        return [tuple(row) for row in self.one().execute(self.text(SELECTS)).fetchall()]

    def abandon(self) -> object:
        """Read a row, then keep the cursor or drop it."""
        cursor = self.one().cursor()
        cursor.execute(self.text(SELECTS))
        row = cursor.fetchone()
        if self.random.random() < 0.5:
            self.cursors.append(cursor)
        return row and tuple(row)

    def go_on(self) -> object:
        """Read on from an open cursor."""
        cursor = self.cursors.pop(self.random.randrange(len(self.cursors)))
        rows = [tuple(row) for row in cursor.fetchmany(3)]
        if self.random.random() < 0.5:
            self.cursors.append(cursor)
        elif self.random.random() < 0.5:
            cursor.close()
        return rows

    def change(self) -> object:
        cursor = self.one().execute(self.text(CHANGES))
        return cursor.rowcount, cursor.lastrowid

    def many(self) -> object:
        sql = f"INSERT INTO t{self.random.randrange(3)} (a, b) VALUES (?, ?)"
        return self.one().executemany(sql, self.parameters()).rowcount

    def schema(self) -> object:
        return self.one().execute(self.text(SCHEMAS)).rowcount

    def transaction(self) -> object:
        connection = self.one()
        if self.random.random() < 0.6:
            self.random.choice((connection.commit, connection.rollback))()
        else:
            connection.execute(self.text(TRANSACTIONS))
        return connection.in_transaction, connection.total_changes

    def script(self) -> object:
        texts = [self.text(self.random.choice((SCHEMAS, CHANGES))) for _ in range(3)]
        self.one().executescript("; ".join(texts))
        return None

    def reconnect(self) -> object:
        """Close a connection with its open statements, and open another one."""
        place = self.random.randrange(len(self.connections))
        if self.random.random() < 0.8:
            self.connections[place].close()
        self.connections[place] = self.connect(self.random.choice(FILES))
        gc.collect()  # a connection and its statements refer to each other
        return place

    def tidy(self) -> object:
        """End transactions that lock the files, so that later statements do not all fail."""
        self.cursors.clear()
        for connection in self.connections:
            connection.commit()
        for n in range(3):
            self.one().execute(f"CREATE TABLE IF NOT EXISTS t{n} (a INTEGER, b, UNIQUE (a, b))")
        for connection in self.connections:
            connection.commit()
        return None

    def step(self) -> tuple[object, ...]:
        """Do one of these things."""
        chosen: Callable[[], object] = self.random.choices(
            (
                self.select,
                self.abandon,
                self.go_on,
                self.change,
                self.many,
                self.schema,
                self.transaction,
                self.script,
                self.reconnect,
                self.tidy,
            ),
            (20, 10, 10, 25, 8, 8, 14, 2, 1, 6),
        )[0]
        try:
            return chosen.__name__, chosen()
        except (sqlite3.Error, sqlite3.Warning, ValueError, IndexError) as error:
            return chosen.__name__, type(error).__name__, str(error)

    def end(self) -> None:
        """Commit or drop everything that is open, so that the files have the expected content."""
        self.cursors.clear()
        for connection in self.connections:
            connection.rollback()
            connection.close()


def main() -> None:
    seed, statements = map(int, sys.argv[1:])
    gc.disable()  # dropped objects are freed at the same place in every run
    program = Program(seed)
    for number in range(statements):
        print(number, *program.step())
    program.end()


if __name__ == "__main__":
    main()
