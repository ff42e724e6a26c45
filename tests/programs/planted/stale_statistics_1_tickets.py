# category: stale_statistics
# fix: ANALYZE|optimize
import os
import sqlite3


class Support:
    """Creates its schema with a few demonstration rows, and analyzes it, once."""

    def __init__(self, path):
        if os.path.exists(path):
            os.remove(path)
        self.db = sqlite3.connect(path)
        self.db.executescript(
            """CREATE TABLE ticket (id INTEGER PRIMARY KEY, queue TEXT, customer INTEGER, text TEXT);
            CREATE INDEX ticket_queue ON ticket (queue);
            CREATE INDEX ticket_customer ON ticket (customer);"""
        )
        demo = [(f"queue{n}", n // 5, "demo") for n in range(20)]
        self.db.executemany("INSERT INTO ticket (queue, customer, text) VALUES (?, ?, ?)", demo)
        self.db.execute("ANALYZE")
        self.db.commit()

    def migrate(self, count):
        with self.db:
            self.db.executemany(
                "INSERT INTO ticket (queue, customer, text) VALUES (?, ?, 'old system')",
                ((f"queue{n % 3}", n * 7919 % 5003) for n in range(count)),
            )

    def of_customer(self, queue, customer):
        sql = "SELECT id, text FROM ticket WHERE queue = ? AND customer = ?"
        return self.db.execute(sql, (queue, customer)).fetchall()  # culprit


def agent_view(support, customers):
    return {c: support.of_customer(f"queue{c % 3}", c) for c in customers}


support = Support("support.db")
support.migrate(40_000)
assert len(agent_view(support, range(0, 5000, 25))) == 200
support.db.close()
