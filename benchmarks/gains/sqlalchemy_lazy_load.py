"""Each object loads its lines: selectinload."""

import sqlalchemy as sa
from shared.sqlalchemy_orders import Order, engine
from shared.timed import run
from sqlalchemy import orm


def before() -> int:
    with orm.Session(engine) as session:
        return sum(len(order.lines) for order in session.scalars(sa.select(Order)))


def after() -> int:
    with orm.Session(engine) as session:
        orders = session.scalars(sa.select(Order).options(orm.selectinload(Order.lines)))
        return sum(len(order.lines) for order in orders)


run(before, after)
