"""An importer that commits each thousand rows."""
import hashlib
import os
import sqlite3


class Hashes:
    def __init__(self, path: str, every: int = 5000) -> None:
        self.db = sqlite3.connect(path)
        self.db.execute("CREATE TABLE hash (name TEXT, digest TEXT)")
        self.waiting: list[tuple[str, str]] = []
        self.every = every

    def add(self, name: str, content: bytes) -> None:
        self.waiting.append((name, hashlib.sha256(content).hexdigest()))
        if len(self.waiting) >= self.every:
            self.flush()

    def flush(self) -> None:
        with self.db:
            self.db.executemany("INSERT INTO hash VALUES (?, ?)", self.waiting)
        self.waiting.clear()


if os.path.exists("hashes.db"):
    os.remove("hashes.db")
hashes = Hashes("hashes.db")
for number in range(20_000):
    hashes.add(f"f{number}", str(number).encode() * 2000)
hashes.flush()
hashes.db.close()
os.remove("hashes.db")
