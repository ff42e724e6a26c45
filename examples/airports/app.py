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
    """Load all airports, in one transaction. Nothing is wrong here."""
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
    """Count the airports of each country: an N+1 query. One GROUP BY would be enough."""
    airports: Counter[str] = Counter()
    for (country,) in connection.execute("SELECT DISTINCT country FROM airport").fetchall():
        rows = connection.execute("SELECT name FROM airport WHERE country = ?", (country,))
        airports[country] = len(rows.fetchall())
    return airports


def find_city(connection: sqlite3.Connection, city: str) -> list[str]:
    """Find the airports of a city. Without an index, SQLite searches the whole table."""
    rows = connection.execute("SELECT name FROM airport WHERE city = ? ORDER BY name", (city,))
    return [name for (name,) in rows]


def log_visits(connection: sqlite3.Connection, icao: str) -> None:
    """Insert visits to an airport, each in its own transaction."""
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
