# category: automatic_index
# fix: CREATE INDEX \w+ ON worklog \(badge\b|an index for the join
import sqlite3

SCHEMA = """
CREATE TABLE engineer (id INTEGER PRIMARY KEY, badge TEXT, team INTEGER, name TEXT);
CREATE INDEX engineer_team ON engineer (team);
CREATE TABLE worklog (id INTEGER PRIMARY KEY, badge TEXT, minutes INTEGER);
"""


class Timesheets:
    def __init__(self):
        self.db = sqlite3.connect(":memory:")
        self.db.executescript(SCHEMA)
        people = [(f"B{n:04d}", n // 10, f"name {n}") for n in range(400)]
        self.db.executemany("INSERT INTO engineer (badge, team, name) VALUES (?, ?, ?)", people)
        logs = ((f"B{n * 13 % 400:04d}", n % 480) for n in range(20_000))
        self.db.executemany("INSERT INTO worklog (badge, minutes) VALUES (?, ?)", logs)

    def of_teams(self, first, last):
        sql = """
            SELECT e.name, sum(w.minutes) FROM engineer e JOIN worklog w ON w.badge = e.badge
            WHERE e.team BETWEEN ? AND ? GROUP BY e.id
        """
        return dict(self.db.execute(sql, (first, last)))  # culprit


def overtime(sheets, teams):
    return [
        (team, name) for team in teams for name, total in sheets.of_teams(team, team + 4).items() if total > 12_000
    ]


assert len(overtime(Timesheets(), range(40))) > 0
