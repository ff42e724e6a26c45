"""Shubble-LLC/shubble#371 (pull request; the same in bagofwords1/bagofwords#273). /api/locations is
slow: relationships with lazy="selectin" are loaded and never read.

Cause: each select(Vehicle) also loads all locations, geofence events and assignments of the
vehicles (4 more statements, thousands of objects).

Line: session.scalars in vehicles() (the select).

Fix: lazy="raise" (or lazyload("*")) on the relationships that no code reads. SQLAlchemy's asyncio
with aiosqlite.
"""

import asyncio
from sqlalchemy import ForeignKey, func, select
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, raiseload, relationship
from _main import main


class Base(DeclarativeBase):
    pass


class Vehicle(Base):
    __tablename__ = "vehicles"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    license_plate: Mapped[str]
    locations = relationship("VehicleLocation", lazy="selectin")
    geofence_events = relationship("GeofenceEvent", lazy="selectin")
    assignments = relationship("Assignment", lazy="selectin")


class VehicleLocation(Base):
    __tablename__ = "vehicle_locations"
    id: Mapped[int] = mapped_column(primary_key=True)
    vehicle_id: Mapped[int] = mapped_column(ForeignKey("vehicles.id"), index=True)
    at: Mapped[int]
    latitude: Mapped[float]
    longitude: Mapped[float]


class GeofenceEvent(Base):
    __tablename__ = "geofence_events"
    id: Mapped[int] = mapped_column(primary_key=True)
    vehicle_id: Mapped[int] = mapped_column(ForeignKey("vehicles.id"), index=True)
    kind: Mapped[str]


class Assignment(Base):
    __tablename__ = "driver_vehicle_assignments"
    id: Mapped[int] = mapped_column(primary_key=True)
    vehicle_id: Mapped[int] = mapped_column(ForeignKey("vehicles.id"), index=True)
    driver: Mapped[str]


async def make():
    engine = create_async_engine("sqlite+aiosqlite:///shubble.db")
    async with engine.begin() as c:
        await c.run_sync(Base.metadata.create_all)
        await c.execute(
            Vehicle.__table__.insert(),
            [{"id": i, "name": f"shuttle {i}", "license_plate": f"RPI-{i}"} for i in range(15)],
        )
        await c.execute(
            VehicleLocation.__table__.insert(),
            [
                {"vehicle_id": i % 15, "at": i, "latitude": 42.7, "longitude": i / 9}
                for i in range(7000)
            ],
        )
        await c.execute(
            GeofenceEvent.__table__.insert(),
            [{"vehicle_id": i % 15, "kind": "enter"} for i in range(1000)],
        )
        await c.execute(
            Assignment.__table__.insert(),
            [{"vehicle_id": i % 15, "driver": f"d{i}"} for i in range(200)],
        )
    await engine.dispose()


async def vehicles(session, *options):
    return (await session.scalars(select(Vehicle).order_by(Vehicle.id).options(*options))).all()


async def locations(session, *options):
    latest = dict(
        (
            await session.execute(
                select(VehicleLocation.vehicle_id, func.max(VehicleLocation.at)).group_by(
                    VehicleLocation.vehicle_id
                )
            )
        ).all()
    )
    return [(v.name, v.license_plate, latest[v.id]) for v in await vehicles(session, *options)]


async def serve(*options):
    engine = create_async_engine("sqlite+aiosqlite:///shubble.db")
    found = []
    for _ in range(4):
        async with AsyncSession(engine) as session:
            found += await locations(session, *options)
    await engine.dispose()
    return len(found), sum(at for _, _, at in found)


main(
    lambda: asyncio.run(make()),
    lambda: asyncio.run(serve()),
    lambda: asyncio.run(serve(raiseload("*"))),
)
