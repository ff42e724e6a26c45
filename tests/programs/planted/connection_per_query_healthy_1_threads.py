"""A connection for each thread, kept."""
import os
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor

local = threading.local()


def connection() -> sqlite3.Connection:
    if not hasattr(local, "connection"):
        local.connection = sqlite3.connect("words.db")
    return local.connection


def anagrams(prefix: str) -> int:
    groups: dict[str, int] = {}
    query = "SELECT word FROM word WHERE word >= ? AND word < ?"
    for (word,) in connection().execute(query, (prefix, prefix + "~")):
        key = "".join(sorted(word))
        groups[key] = groups.get(key, 0) + 1
    return max(groups.values())


if os.path.exists("words.db"):
    os.remove("words.db")
setup = sqlite3.connect("words.db")
setup.execute("CREATE TABLE word (word TEXT PRIMARY KEY) WITHOUT ROWID")
setup.executemany("INSERT INTO word VALUES (?)", ((f"{i:06}",) for i in range(100_000)))
setup.commit()
setup.close()
with ThreadPoolExecutor(3) as pool:
    print(sum(pool.map(anagrams, [f"0{n:02}" for n in range(100)])))
os.remove("words.db")
