"""SQLAlchemy's models of orders and lines, 400 orders of two lines."""

import sqlalchemy as sa
from sqlalchemy import orm


class Base(orm.DeclarativeBase):
    pass


class Order(Base):
    __tablename__ = "orders"
    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    lines: orm.Mapped[list["Line"]] = orm.relationship()


class Line(Base):
    __tablename__ = "lines"
    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    order_id: orm.Mapped[int] = orm.mapped_column(sa.ForeignKey("orders.id"), index=True)


engine = sa.create_engine("sqlite://")
Base.metadata.create_all(engine)
with orm.Session(engine) as filling:
    filling.add_all(Order(id=number + 1, lines=[Line(), Line()]) for number in range(400))
    filling.commit()
