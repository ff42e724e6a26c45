"""Names of tables are in the text, values are not: twelve texts, all kept prepared."""
import sqlite3

MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]


class Archive:
    def __init__(self) -> None:
        self.db = sqlite3.connect(":memory:")
        for month in MONTHS:
            self.db.execute(f"CREATE TABLE mail_{month} (sender TEXT, size INTEGER)")
            self.db.execute(f"CREATE INDEX sender_{month} ON mail_{month} (sender)")
            rows = ((f"user{i % 50}", i % 4000) for i in range(5000))
            self.db.executemany(f"INSERT INTO mail_{month} VALUES (?, ?)", rows)

    def volume(self, month: str, sender: str) -> int:
        sql = f"SELECT size FROM mail_{month} WHERE sender = ?"
        return sum(size for (size,) in self.db.execute(sql, (sender,)))


archive = Archive()
year = {
    sender: sum(archive.volume(month, sender) for month in MONTHS)
    for sender in (f"user{number}" for number in range(50))
}
print(max(year.items(), key=lambda pair: pair[1]))
