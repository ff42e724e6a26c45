# category: correlated_subquery
# fix: GROUP BY|CREATE INDEX \w+ ON visit \(clinic\b
import sqlite3

LIST = """
SELECT clinic.name,
       (SELECT max(visit.day) FROM visit WHERE visit.clinic = clinic.id) AS last_day
FROM clinic WHERE clinic.county = ?
"""


class Overview:
    def __init__(self, db):
        self.db = db

    def last_visits(self, county):
        return {name: day for name, day in self.db.execute(LIST, (county,))}  # culprit

    def __iter__(self):
        for county in range(5):
            yield county, self.last_visits(county)


def prepare():
    db = sqlite3.connect(":memory:")
    db.execute("CREATE TABLE clinic (id INTEGER PRIMARY KEY, name TEXT, county INTEGER)")
    db.execute("CREATE TABLE visit (id INTEGER PRIMARY KEY, clinic INTEGER, day INTEGER)")
    db.execute("CREATE INDEX clinic_county ON clinic (county)")
    db.executemany("INSERT INTO clinic VALUES (?, ?, ?)", ((n, f"clinic {n}", n % 5) for n in range(400)))
    db.executemany(
        "INSERT INTO visit (clinic, day) VALUES (?, ?)", ((n * 7 % 400, n % 365) for n in range(40_000))
    )
    return db


overview = dict(Overview(prepare()))
assert len(overview[3]) == 80
