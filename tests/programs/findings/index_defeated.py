import sqlite3
import tempfile

folder = tempfile.mkdtemp()
db = sqlite3.connect(f"{folder}/users.db")
db.execute("CREATE TABLE users (id INTEGER PRIMARY KEY, email TEXT)")
db.executemany(
    "INSERT INTO users VALUES (?, ?)", [(i, f"User{i}@example.org") for i in range(20_000)]
)
db.execute("CREATE INDEX users_email ON users (email)")
db.commit()


def user(email: str) -> int:
    query = "SELECT id FROM users WHERE lower(email) = ?"
    return int(db.execute(query, (email.lower(),)).fetchone()[0])  # culprit


assert all(user(f"User{number}@example.org") == number for number in range(0, 20_000, 100))
db.close()
