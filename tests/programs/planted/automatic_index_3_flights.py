# category: automatic_index
# fix: CREATE INDEX \w+ ON "?ticket"? \("?(flight_no|day)"?\b|an index for the join
import sqlite_utils

db = sqlite_utils.Database(memory=True)


def load():
    db["flight"].create({"flight_no": str, "day": int, "seats": int})
    db["flight"].create_index(["day"])
    db["ticket"].create({"flight_no": str, "day": int, "paid": int})
    with db.conn:
        db.conn.executemany(
            "INSERT INTO flight VALUES (?, ?, 180)", ((f"QP{n % 20}", n // 20) for n in range(600))
        )
        db.conn.executemany(
            "INSERT INTO ticket VALUES (?, ?, 99)", ((f"QP{n % 20}", n // 20 % 30) for n in range(24_000))
        )


def occupancy(day):
    rows = db.query(  # culprit
        "select f.flight_no, count(t.paid) * 1.0 / f.seats as full from flight f"
        " left join ticket t on t.flight_no = f.flight_no and t.day = f.day"
        " where f.day between :first and :last group by f.flight_no",
        {"first": day, "last": day + 6},
    )
    return {row["flight_no"]: row["full"] for row in rows}  # culprit


def calendar(days):
    return [max(occupancy(day).values()) for day in days]


load()
assert len(calendar(range(30))) == 30
