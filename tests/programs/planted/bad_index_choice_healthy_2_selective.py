# healthy: SQLite takes the equality index, which is the better one; the other index is wide
import os

from sqlalchemy import create_engine, insert, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column


class Base(DeclarativeBase):
    pass


class Charge(Base):
    __tablename__ = "charge"
    id: Mapped[int] = mapped_column(primary_key=True)
    customer: Mapped[int] = mapped_column(index=True)
    charged: Mapped[int] = mapped_column(index=True)
    cents: Mapped[int]


def statement(session, customer, since):
    query = select(Charge).where(Charge.customer == customer, Charge.charged >= since)
    return [f"{c.charged:>6} {c.cents / 100:>9.2f}" for c in session.scalars(query)]


if os.path.exists("charges.db"):
    os.remove("charges.db")
engine = create_engine("sqlite:///charges.db")
Base.metadata.create_all(engine)
with Session(engine) as session:
    session.execute(
        insert(Charge),
        [{"customer": n % 40, "charged": n // 40, "cents": n % 9000} for n in range(12_000)],
    )
    session.commit()
    letters = {customer: statement(session, customer, 20) for customer in range(40)}
assert all(len(lines) == 280 for lines in letters.values())
