# category: offset_pagination
# fix: keyset|after it|WHERE \w+ > |yield_per
from collections.abc import Iterator

from sqlalchemy import create_engine, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column


class Base(DeclarativeBase):
    pass


class Donor(Base):
    __tablename__ = "donor"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    postcode: Mapped[int]
    letter: Mapped[str]


class DonorRepository:
    def __init__(self, session: Session, batch: int = 100) -> None:
        self.session = session
        self.batch = batch

    def batches(self) -> Iterator[list[tuple[int, str]]]:
        offset = 0
        query = select(Donor.id, Donor.name).order_by(Donor.id)
        while rows := self.session.execute(query.limit(self.batch).offset(offset)).all():  # culprit
            yield [tuple(row) for row in rows]
            offset += self.batch


engine = create_engine("sqlite://")
Base.metadata.create_all(engine)
with Session(engine) as session:
    session.connection().connection.cursor().executemany(
        "INSERT INTO donor (name, postcode, letter) VALUES (?, ?, ?)",
        ((f"donor {n}", n % 9999, "Dear friend, " * 20) for n in range(40_000)),
    )
    session.commit()
    mailed = 0
    for batch in DonorRepository(session).batches():
        mailed += len(batch)
assert mailed == 40_000
