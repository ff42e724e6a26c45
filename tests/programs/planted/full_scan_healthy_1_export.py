# healthy: reads the whole table because it exports the whole table
import csv
import io
import sqlite3


def open_library():
    db = sqlite3.connect(":memory:")
    db.execute("CREATE TABLE loan (id INTEGER PRIMARY KEY, member TEXT, isbn TEXT, days INTEGER)")
    db.executemany(
        "INSERT INTO loan VALUES (?, ?, ?, ?)",
        ((n, f"m{n % 700}", f"978{n:010d}", n % 30) for n in range(120_000)),
    )
    return db


def lines(db):
    for number, member, isbn, days in db.execute("SELECT id, member, isbn, days FROM loan"):
        fine = max(0, days - 21) * 0.25
        yield number, member.upper(), f"{isbn[:3]}-{isbn[3:]}", days, f"{fine:.2f}"


def export(db):
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(["loan", "member", "isbn", "days", "fine"])
    writer.writerows(lines(db))
    return out.getvalue()


text = export(open_library())
assert text.count("\n") == 120_001
