# category: correlated_subquery
# fix: GROUP BY|\("?(ship|arrived)"?|index on what it compares
from sqlalchemy import create_engine, func, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column


class Base(DeclarativeBase):
    pass


class Ship(Base):
    __tablename__ = "ship"
    id: Mapped[int] = mapped_column(primary_key=True)
    imo: Mapped[int]
    flag: Mapped[str]


class Call(Base):
    __tablename__ = "port_call"
    id: Mapped[int] = mapped_column(primary_key=True)
    imo: Mapped[int]
    arrived: Mapped[int]


class HarbourMaster:
    def __init__(self, session):
        self.session = session

    def busiest(self, minimum):
        calls = (
            select(func.count(Call.id)).where(Call.imo == Ship.imo).correlate(Ship).scalar_subquery()
        )
        return self.session.scalars(select(Ship).where(calls >= minimum)).all()  # culprit


engine = create_engine("sqlite://")
Base.metadata.create_all(engine)
with Session(engine) as session:
    raw = session.connection().connection.cursor()
    raw.executemany("INSERT INTO ship (imo, flag) VALUES (?, 'PA')", ((9_000_000 + n,) for n in range(500)))
    raw.executemany(
        "INSERT INTO port_call (imo, arrived) VALUES (?, ?)",
        ((9_000_000 + n * n % 500, n) for n in range(20_000)),
    )
    session.commit()
    assert len(HarbourMaster(session).busiest(60)) > 10
