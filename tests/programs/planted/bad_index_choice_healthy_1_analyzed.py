# healthy: a common state and a narrow range, with statistics: SQLite takes the right index
import os
import sqlite3

if os.path.exists("tasks.db"):
    os.remove("tasks.db")
db = sqlite3.connect("tasks.db")
db.executescript(
    """CREATE TABLE task (id INTEGER PRIMARY KEY, state TEXT, due INTEGER, note TEXT);
    CREATE INDEX task_state ON task (state);
    CREATE INDEX task_due ON task (due);"""
)
with db:
    rows = (("open" if n % 50 else "done", n * 7919 % 20_011, f"note {n}") for n in range(20_000))
    db.executemany("INSERT INTO task (state, due, note) VALUES (?, ?, ?)", rows)
    db.execute("ANALYZE")
db.close()


def agenda(path, days):
    db = sqlite3.connect(path)
    try:
        rows = db.execute(
            "SELECT due, note FROM task WHERE state = 'open' AND due BETWEEN ? AND ?",
            (days.start, days.stop),
        ).fetchall()
    finally:
        db.close()
    return rows


def render(rows):
    page = []
    for due, note in sorted(rows):
        page.append("".join(c if c.isalnum() else f"&#{ord(c)};" for c in f"{due:>9} {note * 40}"))
    return "\n".join(page)


assert all(render(agenda("tasks.db", range(k, k + 1500))) for k in range(0, 6000, 1500))
