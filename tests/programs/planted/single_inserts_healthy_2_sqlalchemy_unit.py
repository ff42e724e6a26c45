"""session.add in a loop: the unit of work inserts all of it at once."""
from sqlalchemy import create_engine, func, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column


class Base(DeclarativeBase):
    pass


class Guest(Base):
    __tablename__ = "guest"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    table_no: Mapped[int]


def seat(session: Session, name: str, number: int) -> Guest:
    guest = Guest(name=name.title(), table_no=number // 8)
    session.add(guest)
    return guest


def seat_all(session: Session, names: list[str]) -> None:
    for number, name in enumerate(names):
        seat(session, name, number)
    session.commit()


engine = create_engine("sqlite://")
Base.metadata.create_all(engine)
with Session(engine) as session:
    seat_all(session, [f"guest {i}" for i in range(6000)])
    print(session.scalar(select(func.count()).select_from(Guest)))
