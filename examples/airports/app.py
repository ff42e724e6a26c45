"""Answers questions about the world's airports, from SQLite."""

from __future__ import annotations

import os
import sqlite3
import sys
import tempfile
from collections import Counter

import airportsdata

CITIES = ("London", "Paris", "Tokyo", "Nairobi", "Lima", "Oslo", "Quito", "Cairo", "Perth", "Riga")
VISITS = 300


def create(connection: sqlite3.Connection) -> None:
    """Loads all airports, in one transaction: nothing is wrong here."""
    connection.execute(
        "CREATE TABLE airport (icao TEXT PRIMARY KEY, name TEXT, city TEXT, country TEXT,"
        " elevation REAL, lat REAL, lon REAL)"
    )
    connection.execute("CREATE INDEX airport_country ON airport (country)")
    connection.execute("CREATE TABLE visit (id INTEGER PRIMARY KEY, icao TEXT)")
    with connection:
        connection.executemany(
            "INSERT INTO airport VALUES (:icao, :name, :city, :country, :elevation, :lat, :lon)",
            airportsdata.load().values(),
        )


def countries(connection: sqlite3.Connection) -> Counter[str]:
    """How many airports each country has: an N+1 query, where one GROUP BY would do."""
    airports: Counter[str] = Counter()
    for (country,) in connection.execute("SELECT DISTINCT country FROM airport").fetchall():
        rows = connection.execute("SELECT name FROM airport WHERE country = ?", (country,))
        airports[country] = len(rows.fetchall())
    return airports


def find_city(connection: sqlite3.Connection, city: str) -> list[str]:
    """The airports of a city: a search through the whole table, for want of an index."""
    rows = connection.execute("SELECT name FROM airport WHERE city = ? ORDER BY name", (city,))
    return [name for (name,) in rows]


def log_visits(connection: sqlite3.Connection, icao: str) -> None:
    """Notes visits to an airport: each in a transaction of its own."""
    for _ in range(VISITS):
        connection.execute("INSERT INTO visit (icao) VALUES (?)", (icao,))
        connection.commit()


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = sys.argv[1] if len(sys.argv) > 1 else os.path.join(directory, "airports.db")
        connection = sqlite3.connect(path)
        create(connection)
        for country, airports in countries(connection).most_common(3):
            print(f"{country}: {airports} airports")
        for city in CITIES * 3:
            found = find_city(connection, city)
        print(f"{city}: {', '.join(found)}")
        log_visits(connection, "EGLL")
        connection.close()


if __name__ == "__main__":
    main()
