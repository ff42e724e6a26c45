# healthy: a long snapshot for a report, while nobody writes
import os
import time

from sqlalchemy import create_engine, event, text

if os.path.exists("report.db"):
    os.remove("report.db")
engine = create_engine("sqlite:///report.db")


@event.listens_for(engine, "connect")
def on_connect(connection, _record):
    connection.isolation_level = None
    connection.execute("PRAGMA journal_mode = WAL")


@event.listens_for(engine, "begin")
def on_begin(connection):
    connection.exec_driver_sql("BEGIN")


class Report:
    def __init__(self, connection):
        self.connection = connection

    def total(self, month):
        query = text("SELECT sum(cents) FROM sale WHERE month = :month")
        return self.connection.execute(query, {"month": month}).scalar()

    def build(self):
        for month in range(1, 13):
            yield month, self.total(month)
            time.sleep(0.09)  # the plotter


with engine.begin() as connection:
    connection.execute(text("CREATE TABLE sale (id INTEGER PRIMARY KEY, month INTEGER, cents INTEGER)"))
    connection.execute(text("CREATE INDEX sale_month ON sale (month, cents)"))
    rows = [{"m": 1 + n % 12, "c": n} for n in range(1200)]
    connection.execute(text("INSERT INTO sale (month, cents) VALUES (:m, :c)"), rows)
with engine.connect() as connection:
    assert len(dict(Report(connection).build())) == 12
