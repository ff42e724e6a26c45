"""A CRM with views, collations, LIKE, JSON, WITHOUT ROWID and UPSERT: run `crm.py FILE fill`, then
`crm.py FILE`.
"""

import json
import random
import sqlite3
import sys

CONTACTS, NOTES, TAGS = 40_000, 60_000, 50_000


def fill(connection: sqlite3.Connection, draw: random.Random) -> None:
    connection.executescript(
        """
        CREATE TABLE contact (id INTEGER PRIMARY KEY, name TEXT COLLATE NOCASE, email TEXT, owner INTEGER, data TEXT);
        CREATE TABLE note (id INTEGER PRIMARY KEY, contact INTEGER, author INTEGER, at INTEGER, text TEXT);
        CREATE TABLE tag (contact INTEGER, name TEXT, weight INTEGER, PRIMARY KEY (contact, name)) WITHOUT ROWID;
        CREATE TABLE setting (key TEXT PRIMARY KEY, value TEXT);
        CREATE VIEW recent AS
            SELECT c.id, c.name, n.at, n.text FROM contact c JOIN note n ON n.contact = c.id;
        """
    )
    connection.executemany(
        "INSERT INTO contact VALUES (?, ?, ?, ?, ?)",
        (
            (
                i,
                f"Name{draw.randrange(90_000)} {i}",
                f"p{i}@example.org",
                draw.randrange(300),
                json.dumps({"city": f"city {draw.randrange(400)}"}),
            )
            for i in range(CONTACTS)
        ),
    )
    connection.executemany(
        "INSERT INTO note VALUES (?, ?, ?, ?, ?)",
        (
            (i, draw.randrange(CONTACTS), draw.randrange(300), i, "a note " * 5)
            for i in range(NOTES)
        ),
    )
    connection.executemany(
        "INSERT OR IGNORE INTO tag VALUES (?, ?, ?)",
        (
            (draw.randrange(CONTACTS), f"tag {draw.randrange(500)}", draw.randrange(9))
            for _ in range(TAGS)
        ),
    )


def work(connection: sqlite3.Connection, draw: random.Random) -> None:
    def ask(sql: str, *values: object) -> list[tuple[int, ...]]:
        return connection.execute(sql, values).fetchall()

    for _ in range(8):
        ask("SELECT id, name FROM contact WHERE name LIKE ?", f"name{draw.randrange(9_000)} %")
        ask(
            "SELECT id FROM contact WHERE email = ? COLLATE NOCASE",
            f"P{draw.randrange(CONTACTS)}@example.org",
        )
        ask(
            "SELECT name, at, text FROM recent WHERE id = ? ORDER BY at DESC",
            draw.randrange(CONTACTS),
        )
        ask(
            "SELECT id, name FROM contact WHERE json_extract(data, '$.city') = ? AND owner = ?",
            f"city {draw.randrange(400)}",
            draw.randrange(300),
        )
        ask(
            "SELECT contact, weight FROM tag WHERE name = ? AND weight > ?",
            f"tag {draw.randrange(500)}",
            7,
        )
        ask(
            "SELECT count(*) FROM note WHERE author = ? AND at > ?",
            draw.randrange(300),
            NOTES - 9_000,
        )
        ask(
            "SELECT c.id FROM contact c WHERE c.owner = ? AND NOT EXISTS"
            " (SELECT 1 FROM note n WHERE n.contact = c.id AND n.author = c.owner)",
            draw.randrange(300),
        )
        ask(
            "INSERT INTO setting VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            "theme",
            "dark",
        )
        ask(
            "INSERT INTO note (contact, author, at, text) VALUES (?, ?, ?, ?)",
            1,
            1,
            NOTES,
            "a note",
        )
    connection.commit()


database = sqlite3.connect(sys.argv[1])
if "fill" in sys.argv:
    fill(database, random.Random(1))
    database.commit()
else:
    work(database, random.Random(2))
database.close()
