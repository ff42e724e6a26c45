# category: heavy_query
# fix: that one execution|parameter|slowest|smaller|batch
from sqlalchemy import ForeignKey, create_engine, delete
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column


class Base(DeclarativeBase):
    pass


class Robot(Base):
    __tablename__ = "robot"
    id: Mapped[int] = mapped_column(primary_key=True)


class Telemetry(Base):
    __tablename__ = "telemetry"
    id: Mapped[int] = mapped_column(primary_key=True)
    robot_id: Mapped[int] = mapped_column(ForeignKey("robot.id"), index=True)
    value: Mapped[int] = mapped_column(index=True)


def forget(session, robot_id):
    statement = delete(Telemetry).where(Telemetry.robot_id == robot_id)
    return session.execute(statement, execution_options={"synchronize_session": False}).rowcount  # culprit


engine = create_engine("sqlite://")
Base.metadata.create_all(engine)
with Session(engine) as session:
    cursor = session.connection().connection.cursor()
    cursor.executemany("INSERT INTO robot VALUES (?)", ((n,) for n in range(201)))
    cursor.executemany(
        "INSERT INTO telemetry (robot_id, value) VALUES (?, ?)",
        ((n % 200 if n < 2000 else 200, n) for n in range(250_000)),
    )
    session.commit()
    purged = sum(forget(session, robot) for robot in range(201))
    session.commit()
assert purged == 250_000
