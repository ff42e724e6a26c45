# category: re_prepare
# fix: parameter|bind
import apsw


class Ledger:
    def __init__(self) -> None:
        self.connection = apsw.Connection(":memory:")
        self.connection.execute(
            "CREATE TABLE booking (account TEXT, day INTEGER, cents INTEGER, PRIMARY KEY (account, day)) WITHOUT ROWID"
        )
        rows = [(f"A{i % 500:03}", i // 500, i % 977 - 400) for i in range(40_000)]
        with self.connection:
            self.connection.executemany("INSERT INTO booking VALUES (?, ?, ?)", rows)

    def balance(self, account: str, until: int) -> int:
        sql = (
            "SELECT ifnull(sum(CASE WHEN cents > 0 THEN cents ELSE 0 END), 0) - ifnull(sum(CASE WHEN cents < 0 THEN "
            "-cents ELSE 0 END), 0) FROM booking WHERE account = '%s' AND day BETWEEN %d AND %d" % (account, until - 1, until)
        )
        return self.connection.execute(sql).fetchone()[0]  # culprit


def statement(ledger: Ledger, account: str) -> list[int]:
    return [ledger.balance(account, day) for day in range(1, 60)]  # culprit


ledger = Ledger()
print(max(max(statement(ledger, f"A{number:03}")) for number in range(0, 500, 2)))
