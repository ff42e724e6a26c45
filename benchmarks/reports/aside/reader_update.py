"""lemon24/reader#10. "DB cannot be written to for the whole time update_feeds runs": the cursor of
the feeds is open while each feed is fetched from the network.

Cause: update_feeds() fetches a feed (0.06 s) for each row of an open SELECT: the cursor keeps the
shared lock, so the other thread's COMMIT waits until the loop has ended.

Line: db.execute of the SELECT in update_feeds() (the loop over it).

Fix: fetchall() before the network. No WAL (the default journal).
"""

import sqlite3
import threading
import time
from _main import main


def setup():
    db = sqlite3.connect("reader.db")
    db.executescript("""CREATE TABLE feeds (url TEXT PRIMARY KEY, title TEXT, updated INTEGER, stale INTEGER);
      CREATE TABLE entries (id INTEGER PRIMARY KEY, feed TEXT, title TEXT, read INTEGER DEFAULT 0); CREATE INDEX entries_feed ON entries (feed);""")
    with db:
        db.executemany(
            "INSERT INTO feeds VALUES (?,?,?,?)",
            ((f"https://feed{i}.example/", f"feed {i}", i, i % 2) for i in range(30)),
        )
        db.executemany(
            "INSERT INTO entries (feed, title) VALUES (?,?)",
            ((f"https://feed{i % 30}.example/", f"entry {i}") for i in range(3000)),
        )


def parse(url):
    time.sleep(0.06)
    return url.upper()


def feeds(db, all_at_once):
    cursor = db.execute("SELECT url, title FROM feeds WHERE stale = 1 ORDER BY url")
    return cursor.fetchall() if all_at_once else cursor


def update_feeds(found, all_at_once):
    db = sqlite3.connect("reader.db", timeout=20)
    for url, title in feeds(db, all_at_once):
        found[url] = parse(url), title
    with db:
        db.executemany(
            "UPDATE feeds SET stale = 0, title = ? WHERE url = ?",
            [(title, url) for url, (_, title) in found.items()],
        )
    db.close()


def mark_as_read(db, entry):
    db.execute("UPDATE entries SET read = 1 WHERE id = ?", (entry,))
    db.commit()


def read_articles():
    db = sqlite3.connect("reader.db", timeout=20)
    for entry in range(1, 13):
        mark_as_read(db, entry)
        time.sleep(0.05)
    return db.execute("SELECT sum(read), count(*) FROM entries").fetchone()


def run(all_at_once):
    found = {}
    update = threading.Thread(target=update_feeds, args=(found, all_at_once))
    update.start()
    time.sleep(0.03)
    result = read_articles()
    update.join()
    return result, len(found)


main(setup, lambda: run(False), lambda: run(True))
