# healthy: a table of 14 rows is scanned by an unindexed column, a few times
import hashlib

from sqlalchemy import create_engine, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column


class Base(DeclarativeBase):
    pass


class Rate(Base):
    __tablename__ = "rate"
    id: Mapped[int] = mapped_column(primary_key=True)
    zone: Mapped[str]
    cents: Mapped[int]


engine = create_engine("sqlite://")
Base.metadata.create_all(engine)


def cents_of(session, zone):
    return session.scalars(select(Rate).where(Rate.zone == zone)).one().cents


def label(zone, cents, parcels):
    digest = b""
    for parcel in range(parcels):
        digest = hashlib.sha256(digest + f"{zone}:{cents}:{parcel}".encode()).digest()
    return digest.hex()


with Session(engine) as session:
    session.add_all(Rate(zone=f"Z{n}", cents=300 + n) for n in range(14))
    session.commit()
    labels = {zone: label(zone, cents_of(session, zone), 60_000) for zone in ("Z3", "Z9", "Z11")}
assert len(labels) == 3
