import sqlite3
import tempfile

folder = tempfile.mkdtemp()
db = sqlite3.connect(f"{folder}/users.db")
db.execute("CREATE TABLE users (id INTEGER PRIMARY KEY, email TEXT)")
db.executemany(
    "INSERT INTO users VALUES (?, ?)", [(i, f"User{i}@example.org") for i in range(20_000)]
)
db.execute("CREATE INDEX users_email ON users (lower(email))")
db.commit()
for number in range(15):
    row = db.execute("SELECT id FROM users WHERE lower(email) = ?", (f"user{number}@example.org",))
    assert row.fetchone() == (number,)
db.close()
