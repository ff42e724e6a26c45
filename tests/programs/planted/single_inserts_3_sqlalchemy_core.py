# category: single_inserts
# fix: list|executemany|insert\(
from sqlalchemy import Column, Float, Integer, MetaData, String, Table, create_engine

metadata = MetaData()
quotes = Table(
    "quote",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("symbol", String(8)),
    Column("price", Float),
)


class QuoteStore:
    def __init__(self) -> None:
        self.engine = create_engine("sqlite://")
        metadata.create_all(self.engine)

    def save(self, ticks: list[tuple[str, float]]) -> int:
        with self.engine.begin() as connection:
            for symbol, price in ticks:  # culprit
                if price > 0:
                    connection.execute(quotes.insert().values(symbol=symbol, price=price))  # culprit
            return connection.exec_driver_sql("SELECT count(*) FROM quote").scalar_one()


feed = [(f"S{i % 40}", (i * 37 % 1000) / 10) for i in range(6000)]
print(QuoteStore().save(feed))
