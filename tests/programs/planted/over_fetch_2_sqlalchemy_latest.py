# category: over_fetch|temp_btree_sort
# fix: LIMIT|CREATE INDEX \w+ ON visit \(patient, day\)
from sqlalchemy import Column, Index, Integer, MetaData, String, Table, create_engine, select

metadata = MetaData()
visit = Table(
    "visit",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("patient", Integer),
    Column("day", Integer),
    Column("doctor", String),
    Index("visit_patient", "patient"),
)
engine = create_engine("sqlite://")
metadata.create_all(engine)


def last_doctor(connection, patient: int) -> str:
    query = select(visit.c.doctor).where(visit.c.patient == patient).order_by(visit.c.day.desc())
    row = connection.execute(query).first()  # culprit
    return row.doctor


def letters(patients: range) -> list[str]:
    with engine.connect() as connection:
        return [f"{patient}: see {last_doctor(connection, patient)}" for patient in patients]  # culprit


with engine.begin() as connection:
    rows = [{"patient": i % 12, "day": i * 7919 % 3001, "doctor": f"d{i % 50}"} for i in range(60_000)]
    connection.execute(visit.insert(), rows)
for _ in range(10):
    assert len(letters(range(12))) == 12
