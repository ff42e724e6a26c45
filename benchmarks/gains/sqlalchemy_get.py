"""Objects are fetched by their keys one by one: one IN."""

import sqlalchemy as sa
from shared.sqlalchemy_orders import Order, engine
from shared.timed import run
from sqlalchemy import orm


def before() -> int:
    with orm.Session(engine) as session:
        return sum(session.get_one(Order, number + 1).id for number in range(400))


def after() -> int:
    with orm.Session(engine) as session:
        numbers = [number + 1 for number in range(400)]
        return sum(
            order.id for order in session.scalars(sa.select(Order).where(Order.id.in_(numbers)))
        )


run(before, after)
