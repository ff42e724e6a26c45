import sqlite3

db = sqlite3.connect(":memory:")
db.execute("CREATE TABLE setting (name TEXT PRIMARY KEY, value TEXT)")
db.execute("INSERT INTO setting VALUES ('currency', 'EUR'), ('rate', '1.1')")


def setting(name: str) -> str:
    row = db.execute("SELECT value FROM setting WHERE name = ?", (name,)).fetchone()  # culprit
    return str(row[0])


def price(amount: float) -> str:
    return f"{amount * float(setting('rate')):.2f} {setting('currency')}"


assert [price(i) for i in range(5000)][1] == "1.10 EUR"
