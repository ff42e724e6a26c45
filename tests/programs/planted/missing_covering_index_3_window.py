# category: missing_covering_index
# fix: covering|\("?sensor"?, "?at"?, "?value"?
import os
import threading

from sqlalchemy import Column, Float, Index, Integer, LargeBinary, MetaData, Table, create_engine, select

metadata = MetaData()
trace = Table(
    "trace", metadata,
    Column("id", Integer, primary_key=True), Column("sensor", Integer), Column("at", Integer),
    Column("value", Float), Column("raw", LargeBinary),
    Index("ix_trace_sensor_at", "sensor", "at"),
)


class Plotter:
    def __init__(self, engine):
        self.engine = engine
        self.curves = {}

    def draw(self, sensors):
        with self.engine.connect() as connection:
            for sensor in sensors:
                self.curves[sensor] = self.points(connection, sensor, 100, 900)

    def points(self, connection, sensor, start, end):
        query = (
            select(trace.c.at, trace.c.value)
            .where(trace.c.sensor == sensor, trace.c.at.between(start, end)).order_by(trace.c.at)
        )
        return [(at, value) for at, value in connection.execute(query)]  # culprit


if os.path.exists("trace.db"):
    os.remove("trace.db")
engine = create_engine("sqlite:///trace.db")
metadata.create_all(engine)
with engine.begin() as connection:
    raw = connection.connection.cursor()
    raw.executemany(
        "INSERT INTO trace (sensor, at, value, raw) VALUES (?, ?, ?, zeroblob(1500))",
        ((n % 40, n // 40, n / 7) for n in range(37_000)),
    )
plotter = Plotter(engine)
worker = threading.Thread(target=plotter.draw, args=([n % 40 for n in range(240)],))
worker.start()
worker.join()
assert len(plotter.curves[7]) == 801
