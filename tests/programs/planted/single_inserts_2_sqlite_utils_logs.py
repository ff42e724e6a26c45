# category: single_inserts
# fix: insert_all(?!\(\) and upsert_all\(\) commit)
import json

import sqlite_utils


def lines(count: int):
    for number in range(count):
        yield json.dumps({"id": number, "level": "warn" if number % 3 else "info", "ms": number % 77})


def store(db: sqlite_utils.Database, line: str) -> None:
    record = json.loads(line)
    record["slow"] = record["ms"] > 50
    db["entry"].insert(record, pk="id")  # culprit


def main() -> None:
    db = sqlite_utils.Database(memory=True)
    for line in lines(2500):
        store(db, line)  # culprit
    print(db["entry"].count)


main()
