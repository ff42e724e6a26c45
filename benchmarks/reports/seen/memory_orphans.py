"""basicmachines-co/basic-memory#1581 (pull request 1584). Cleaning up orphaned embeddings "uses a
correlated DELETE that stalls cleanup and blocks writers".

Cause: the subquery of DELETE ... WHERE rowid IN (SELECT id FROM chunks ... embeddings.source_hash
...) names a column of the outer table, so the list of the project's chunks is made again for each
embedding.

Line: db.execute in delete_orphans().

Fix: join the two tables inside the subquery, which then runs once. No index is missing.
"""

import sqlite3
from _main import main

CORRELATED = """DELETE FROM embeddings WHERE id IN (SELECT id FROM chunks WHERE project_id = :project AND NOT (model = :model AND embeddings.source_hash = chunks.source_hash AND status = 'ready'))"""
JOINED = """DELETE FROM embeddings WHERE id IN (SELECT c.id FROM chunks AS c JOIN embeddings AS e ON e.id = c.id WHERE c.project_id = :project AND NOT (c.model = :model AND e.source_hash = c.source_hash AND c.status = 'ready'))"""


def setup():
    db = sqlite3.connect("memory.db")
    db.executescript("""CREATE TABLE projects (id INTEGER PRIMARY KEY, name TEXT UNIQUE);
      CREATE TABLE chunks (id INTEGER PRIMARY KEY, project_id INTEGER, entity_id INTEGER, source_hash TEXT, model TEXT, status TEXT); CREATE INDEX chunks_project ON chunks (project_id);
      CREATE TABLE embeddings (id INTEGER PRIMARY KEY, source_hash TEXT, vector BLOB);""")
    with db:
        db.executemany("INSERT INTO projects VALUES (?,?)", ((i, f"project {i}") for i in range(3)))
        db.executemany(
            "INSERT INTO chunks VALUES (?,?,?,?,?,?)",
            ((i, i % 3, i // 4, f"h{i}", "small", "ready") for i in range(2400)),
        )
        db.executemany(
            "INSERT INTO embeddings VALUES (?,?,?)",
            ((i, f"h{i}" if i % 25 else "old", b"v" * 256) for i in range(2400)),
        )


def project_id(db, name):
    return db.execute("SELECT id FROM projects WHERE name = ?", (name,)).fetchone()[0]


def delete_orphans(db, name, statement):
    cursor = db.execute(statement, {"project": project_id(db, name), "model": "small"})
    return cursor.rowcount


def statistics(db):
    return db.execute(
        "SELECT count(*), count(DISTINCT entity_id) FROM chunks JOIN embeddings USING (id)"
    ).fetchone()


def clean(statement):
    db = sqlite3.connect("memory.db")
    with db:
        deleted = delete_orphans(db, "project 1", statement)
    return deleted, statistics(db)


main(setup, lambda: clean(CORRELATED), lambda: clean(JOINED))
