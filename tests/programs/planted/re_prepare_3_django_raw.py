# category: re_prepare
# fix: parameter|params
import django
from django.conf import settings

settings.configure(DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}})
django.setup()
from django.db import connection

SCHEMA = """
CREATE TABLE trip (id INTEGER PRIMARY KEY, van INTEGER, km INTEGER, litres REAL);
CREATE INDEX trip_van ON trip (van, km);
CREATE TABLE van (id INTEGER PRIMARY KEY, plate TEXT, driver TEXT);
"""


def query(sql: str) -> list[tuple]:
    with connection.cursor() as cursor:
        cursor.execute(sql)  # culprit
        return cursor.fetchall()


def usage(van: int, least: int) -> float:
    rows = query(  # culprit
        f"""SELECT v.plate, v.driver, min(t.litres / t.km), max(t.litres / t.km), count(*), total(t.km)
            FROM van AS v JOIN trip AS t ON t.van = v.id
            WHERE v.id = {van} AND t.km > {least} AND v.plate LIKE 'V%'
            GROUP BY v.plate, v.driver HAVING count(*) > 0 ORDER BY v.plate"""
    )
    return sum(row[3] for row in rows)


with connection.cursor() as cursor:
    for part in SCHEMA.split(";"):
        cursor.execute(part)
    cursor.executemany("INSERT INTO van VALUES (%s, %s, %s)", [(i, f"V{i}", f"d{i}") for i in range(4000)])
    cursor.executemany("INSERT INTO trip VALUES (%s, %s, %s, %s)", [(i, i % 4000, 1 + i % 90, i / 9) for i in range(8000)])
print(sum(usage(van, van % 50) for van in range(4000)))
