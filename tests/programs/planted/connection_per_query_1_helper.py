# category: connection_per_query
# fix: one connection|keep it|threading.local
import sqlite3
from contextlib import closing
from pathlib import Path

DATABASE = Path("inventory.db")


def fetch(sql: str, *values):
    with closing(sqlite3.connect(DATABASE)) as db:  # culprit
        return db.execute(sql, values).fetchone()  # culprit


class Stock:
    def level(self, sku: str) -> int:
        return fetch("SELECT amount FROM stock WHERE sku = ?", sku)[0]  # culprit

    def missing(self, order: dict[str, int]) -> list[str]:
        return [sku for sku, wanted in order.items() if self.level(sku) < wanted]  # culprit


def create() -> None:
    DATABASE.unlink(missing_ok=True)
    with closing(sqlite3.connect(DATABASE)) as db, db:
        for name in ("supplier", "rack", "pallet", "carrier", "gate", "shift", "return", "label", "scan", "audit"):
            db.execute(f"CREATE TABLE '{name}' (id INTEGER PRIMARY KEY, name TEXT UNIQUE, changed TEXT)")
        db.execute("CREATE TABLE stock (sku TEXT PRIMARY KEY, amount INTEGER)")
        db.executemany("INSERT INTO stock VALUES (?, ?)", ((f"sku{i}", i % 30) for i in range(3000)))


create()
print(len(Stock().missing({f"sku{i}": 12 for i in range(3000)})))
DATABASE.unlink()
