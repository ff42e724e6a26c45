# category: missing_covering_index|duplicate_query
# fix: covering|\("?account"?, "?cents"?|keep the result
import os

import peewee

if os.path.exists("ledger.db"):
    os.remove("ledger.db")
database = peewee.SqliteDatabase("ledger.db")


class Posting(peewee.Model):
    account = peewee.IntegerField(index=True)
    cents = peewee.IntegerField()
    memo = peewee.TextField()

    class Meta:
        database = database


def balance(account):
    query = Posting.select(peewee.fn.SUM(Posting.cents)).where(Posting.account == account)
    return query.scalar()  # culprit


def trial_balance(accounts):
    total = 0
    for account in accounts:
        total += balance(account)
    return total


database.create_tables([Posting])
memo = "transfer as agreed in the framework contract; " * 12
with database.atomic():
    database.connection().executemany(
        "INSERT INTO posting (account, cents, memo) VALUES (?, ?, ?)",
        ((n * 7919 % 60, n % 977 - 400, memo) for n in range(20_000)),
    )
assert [trial_balance(range(60)) for _quarter in range(20)]
database.close()
