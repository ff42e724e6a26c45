"""The first row of a grouped query: all groups have to be made to know it, LIMIT or not."""
from sqlalchemy import Column, Integer, MetaData, Table, create_engine, func, select

metadata = MetaData()
sale = Table(
    "sale",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("customer", Integer),
    Column("cents", Integer),
)
engine = create_engine("sqlite://")
metadata.create_all(engine)


def best_customer() -> tuple[int, int]:
    total = func.sum(sale.c.cents).label("total")
    query = select(sale.c.customer, total).group_by(sale.c.customer).order_by(total.desc())
    with engine.connect() as connection:
        return tuple(connection.execute(query).first())


with engine.begin() as connection:
    rows = [{"customer": i * 7919 % 37, "cents": i % 5000} for i in range(100_000)]
    connection.execute(sale.insert(), rows)
print(best_customer())
