# category: long_transaction
# fix: before BEGIN|after COMMIT|other work
import hashlib
import os
import sqlite3
import threading

PATH = "gallery.db"


def thumbnail(picture: bytes) -> bytes:
    return hashlib.pbkdf2_hmac("sha256", picture, b"size=200", 120_000)


class Uploads:
    def __init__(self) -> None:
        self.db = sqlite3.connect(PATH, timeout=30)
        self.db.execute("PRAGMA synchronous = OFF")

    def add(self, picture: bytes) -> None:
        cursor = self.db.execute("INSERT INTO picture (size) VALUES (?)", (len(picture),))  # culprit
        small = thumbnail(picture)  # culprit
        self.db.execute("UPDATE picture SET thumb = ? WHERE id = ?", (small, cursor.lastrowid))
        self.db.commit()


def upload() -> None:
    uploads = Uploads()
    for number in range(12):
        uploads.add(bytes([number]) * 1000)
    uploads.db.close()


def count_views() -> None:
    db = sqlite3.connect(PATH, timeout=30, isolation_level=None)
    db.execute("PRAGMA synchronous = OFF")
    for number in range(12):
        db.execute("INSERT INTO view VALUES (?)", (number,))
    db.close()


if os.path.exists(PATH):
    os.remove(PATH)
with sqlite3.connect(PATH) as setup:
    setup.executescript("CREATE TABLE picture (id INTEGER PRIMARY KEY, size INTEGER, thumb BLOB); CREATE TABLE view (n)")
setup.close()
threads = [threading.Thread(target=upload), threading.Thread(target=count_views)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
os.remove(PATH)
