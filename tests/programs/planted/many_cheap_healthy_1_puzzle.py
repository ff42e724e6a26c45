"""Some lookups between much computing."""
import random
import sqlite3

db = sqlite3.connect(":memory:")
db.execute("CREATE TABLE seed (id INTEGER PRIMARY KEY, value INTEGER)")
db.executemany("INSERT INTO seed VALUES (?, ?)", ((i, i * 7919 % 1000) for i in range(2000)))


def seed(number: int) -> int:
    return db.execute("SELECT value FROM seed WHERE id = ?", (number,)).fetchone()[0]


def collatz(number: int) -> int:
    steps = 0
    while number > 1:
        number = number // 2 if number % 2 == 0 else 3 * number + 1
        steps += 1
    return steps


def search(rounds: int) -> int:
    draw = random.Random(2)
    best = 0
    while rounds > 0:
        start = seed(draw.randrange(2000))
        best = max(best, *(collatz(start + n) for n in range(1, 30)))
        rounds -= 1
    return best


print(search(400))
