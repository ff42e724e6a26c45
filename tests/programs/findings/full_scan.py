import sqlite3

db = sqlite3.connect(":memory:")
db.execute("CREATE TABLE ticket (id INTEGER PRIMARY KEY, customer INTEGER, state TEXT)")
db.executemany("INSERT INTO ticket VALUES (?, ?, 'open')", [(i, i % 2000) for i in range(20_000)])


def tickets(customer: int) -> list[int]:
    query = "SELECT id FROM ticket WHERE customer = ? AND state = ?"
    return [row[0] for row in db.execute(query, (customer, "open"))]  # culprit


assert all(len(tickets(customer)) == 10 for customer in range(200))
