# category: connection_per_query
# fix: one engine|create_engine|one connection|keep it
import os

from sqlalchemy import create_engine, text

URL = "sqlite:///weather.db"


def rows(sql: str, **values):
    engine = create_engine(URL)  # culprit
    with engine.connect() as connection:  # culprit
        return connection.execute(text(sql), values).all()  # culprit


def mean(station: int) -> float:
    return rows("SELECT avg(celsius) FROM reading WHERE station = :s", s=station)[0][0]  # culprit


def warmest(stations: range) -> int:
    return max(stations, key=mean)  # culprit


def create() -> None:
    if os.path.exists("weather.db"):
        os.remove("weather.db")
    with create_engine(URL).begin() as connection:
        connection.exec_driver_sql("CREATE TABLE reading (station INTEGER, celsius REAL)")
        connection.exec_driver_sql("CREATE INDEX by_station ON reading (station)")
        values = [(i % 300, i % 41 - 10.5) for i in range(3000)]
        connection.exec_driver_sql("INSERT INTO reading VALUES (?, ?)", values)


create()
print(warmest(range(300)))
os.remove("weather.db")
