# healthy: the index that looks like a prefix ignores case, the other one does not; both are used
import os

from sqlalchemy import Index, create_engine, insert, select, text
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column


class Base(DeclarativeBase):
    pass


class Species(Base):
    __tablename__ = "species"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    genus: Mapped[str]
    __table_args__ = (
        Index("species_name_nocase", text("name COLLATE NOCASE")),
        Index("species_name_genus", "name", "genus"),
    )


def learn(session, first, count):
    rows = [{"name": f"Sp{n * 7919 % 100_003}", "genus": f"g{n % 90}"} for n in range(first, first + count)]
    session.execute(insert(Species), rows)


def by_name(session, name):
    exact = select(Species.id).where(Species.name == name)
    loose = select(Species.id).where(Species.name.collate("NOCASE") == name.lower())
    return session.scalars(exact).first(), session.scalars(loose).first()


if os.path.exists("species.db"):
    os.remove("species.db")
engine = create_engine("sqlite:///species.db")
Base.metadata.create_all(engine)
with Session(engine) as session:
    for first in range(0, 40_000, 10_000):
        learn(session, first, 10_000)
    session.commit()
    assert by_name(session, "Sp7919") == (2, 2)
