# category: heavy_query
# fix: that one execution|parameter|slowest|LIMIT
import apsw


class Suggest:
    def __init__(self, connection):
        self.connection = connection

    def count(self, prefix):
        sql = (
            "SELECT count(*), max(length(a.word || b.word)) FROM word a JOIN word b ON b.stem = a.stem"
            " WHERE a.word >= ?1 AND a.word < ?1 || '~'"
        )
        return self.connection.execute(sql, (prefix,)).fetchone()  # culprit


def vocabulary():
    for n in range(3000):
        yield f"w{n:05d}", f"s{n // 3}"
    for n in range(1500):
        yield f"zz{n:05d}", "zz"  # one stem has far too many words


def load(connection):
    connection.execute("CREATE TABLE word (word TEXT, stem TEXT)")
    connection.execute("CREATE INDEX word_word ON word (word, stem)")
    connection.execute("CREATE INDEX word_stem ON word (stem, word)")
    with connection:
        connection.executemany("INSERT INTO word VALUES (?, ?)", vocabulary())


connection = apsw.Connection(":memory:")
load(connection)
suggest = Suggest(connection)
typed = [f"w{n:04d}" for n in range(290)] + ["zz"]
answers = {prefix: suggest.count(prefix) for prefix in typed}
assert answers["zz"][0] == 2_250_000
