# category: many_cheap
# fix: memory|many items|IN \(|JOIN
import random
import sqlite3
from collections.abc import Iterator, Mapping


class Vocabulary(Mapping):
    """Frequencies of words, kept in SQLite."""

    def __init__(self, size: int) -> None:
        self._db = sqlite3.connect(":memory:")
        self._db.execute("CREATE TABLE vocab (word TEXT PRIMARY KEY, freq INTEGER) WITHOUT ROWID")
        self._db.executemany("INSERT INTO vocab VALUES (?, ?)", ((f"w{i}", i % 97) for i in range(size)))

    def __getitem__(self, word: str) -> int:
        row = self._db.execute("SELECT freq FROM vocab WHERE word = ?", (word,)).fetchone()  # culprit
        if row is None:
            raise KeyError(word)
        return row[0]

    def __iter__(self) -> Iterator[str]:
        return (row[0] for row in self._db.execute("SELECT word FROM vocab"))

    def __len__(self) -> int:
        return self._db.execute("SELECT count(*) FROM vocab").fetchone()[0]


def score(vocabulary: Vocabulary, draw: random.Random, budget: int) -> int:
    best = 0
    while budget:
        best = max(best, vocabulary[f"w{draw.randrange(30_000)}"])  # culprit
        budget -= 1
    return best


print(score(Vocabulary(30_000), random.Random(9), 150_000))
