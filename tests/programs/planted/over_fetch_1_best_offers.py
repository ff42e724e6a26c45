# category: over_fetch|temp_btree_sort
# fix: LIMIT|CREATE INDEX \w+ ON offer \(part, price\)
import sqlite3


class Market:
    def __init__(self) -> None:
        self.connection = sqlite3.connect(":memory:")
        self.connection.execute(
            "CREATE TABLE offer (id INTEGER PRIMARY KEY, part INTEGER, seller TEXT, price REAL, note TEXT)"
        )
        rows = ((i, i % 20, f"seller {i % 300}", i * 7919 % 10_007 / 9, "n" * 60) for i in range(60_000))
        self.connection.executemany("INSERT INTO offer VALUES (?, ?, ?, ?, ?)", rows)
        self.connection.execute("CREATE INDEX offer_part ON offer (part)")

    def offers(self, part: int):
        yield from self.connection.execute(  # culprit
            "SELECT seller, price, note FROM offer WHERE part = ? ORDER BY price", (part,)
        )


def cheapest(market: Market, part: int, wanted: int = 3) -> list[str]:
    found: list[str] = []
    for seller, _price, _note in market.offers(part):  # culprit
        if seller not in found:
            found.append(seller)
        if len(found) == wanted:
            break
    return found


market = Market()
for round_ in range(6):
    for part in range(20):
        assert len(cheapest(market, part)) == 3
