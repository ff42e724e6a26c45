# category: lock_upgrade
# fix: fetchall|IMMEDIATE
import os
import sqlite3


class Crawler:
    """Marks pages while it reads them; another process (here a connection) adds links meanwhile."""

    def __init__(self, path):
        self.db = sqlite3.connect(path, timeout=3)
        self.failed = []

    def todo(self):
        yield from self.db.execute("SELECT id, url FROM page WHERE state = 'new'")

    def run(self, hook):
        for page, url in self.todo():
            hook(url)
            try:
                self.mark(page)
            except sqlite3.OperationalError as error:
                self.failed.append((page, str(error)))

    def mark(self, page):
        with self.db:
            self.db.execute("UPDATE page SET state = 'done' WHERE id = ?", (page,))  # culprit


def discover(url):
    with links:
        links.execute("INSERT INTO link (url) VALUES (?)", (url + "/next",))


if os.path.exists("crawl.db"):
    os.remove("crawl.db")
links = sqlite3.connect("crawl.db", timeout=3)
links.execute("PRAGMA journal_mode = WAL")
links.executescript(
    "CREATE TABLE page (id INTEGER PRIMARY KEY, url TEXT, state TEXT); CREATE TABLE link (url TEXT);"
)
with links:
    links.executemany("INSERT INTO page (url, state) VALUES (?, 'new')", ((f"/p{n}",) for n in range(60)))
crawler = Crawler("crawl.db")
crawler.run(discover)
assert len(crawler.failed) == 59
