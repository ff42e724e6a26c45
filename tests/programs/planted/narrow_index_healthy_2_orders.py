# healthy: the index leaves 1,000 rows, the second condition keeps nine of ten of them
from sqlalchemy import ForeignKey, create_engine, insert, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column


class Base(DeclarativeBase):
    pass


class Route(Base):
    __tablename__ = "route"
    id: Mapped[int] = mapped_column(primary_key=True)


class Stop(Base):
    __tablename__ = "stop"
    id: Mapped[int] = mapped_column(primary_key=True)
    route_id: Mapped[int] = mapped_column(ForeignKey("route.id"), index=True)
    minute: Mapped[int]
    open: Mapped[bool]


def timetable(session, route_id):
    stops = session.scalars(select(Stop).where(Stop.route_id == route_id, Stop.open.is_(True)))
    return sorted(f"{stop.minute // 60:02}:{stop.minute % 60:02}" for stop in stops)


engine = create_engine("sqlite://")
Base.metadata.create_all(engine)
with Session(engine) as session:
    session.execute(insert(Route), [{"id": n} for n in range(12)])
    session.execute(
        insert(Stop),
        [{"route_id": n % 12, "minute": n % 1440, "open": n % 10 != 0} for n in range(12_000)],
    )
    session.commit()
    tables = {route: timetable(session, route) for route in range(12)}
assert sum(map(len, tables.values())) == 10_800
