# category: temp_btree_sort
# fix: \("?lot"?, "?amount"?|order of ORDER BY
from pony import orm

db = orm.Database()


class Lot(db.Entity):
    name = orm.Required(str)
    bids = orm.Set("Bid")


class Bid(db.Entity):
    lot = orm.Required(Lot)
    amount = orm.Required(int)
    bidder = orm.Required(int)


class Hammer:
    def __init__(self):
        self.log = []

    def leading(self, lot_id):
        return orm.select(  # culprit
            (b.bidder, b.amount) for b in Bid if b.lot.id == lot_id  # culprit
        ).order_by(orm.desc(2)).first()  # culprit

    @orm.db_session
    def call(self, lot_id):
        bidder, amount = self.leading(lot_id)
        self.log.append(f"lot {lot_id}: {bidder} with {amount}")


db.bind("sqlite", ":memory:")
db.generate_mapping(create_tables=True)
with orm.db_session:
    for n in range(4):
        Lot(name=f"lot {n}")
    orm.flush()
    db.get_connection().executemany(
        "INSERT INTO Bid (lot, amount, bidder) VALUES (?, ?, ?)",
        [(1 + n % 4, n * 7919 % 1_000_003, n % 300) for n in range(48_000)],
    )
hammer = Hammer()
for n in range(120):
    hammer.call(1 + n % 4)
assert len(hammer.log) == 120
