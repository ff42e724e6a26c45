import sqlite3

db = sqlite3.connect(":memory:", isolation_level=None)
db.executescript("""
    CREATE TABLE memo (id INTEGER PRIMARY KEY, body TEXT, read_at INTEGER);
    CREATE TABLE word (memo INTEGER, word TEXT);
    CREATE INDEX word_memo ON word (memo);
    CREATE TRIGGER memo_words AFTER UPDATE ON memo BEGIN
        DELETE FROM word WHERE memo = new.id;
        INSERT INTO word SELECT new.id, value FROM json_each(new.body);
    END;
""")
body = "[" + ",".join(f'"word {number}"' for number in range(300)) + "]"
db.executemany("INSERT INTO memo VALUES (?, ?, 0)", [(number, body) for number in range(1, 501)])
db.execute("BEGIN")
for number in range(1, 501):
    db.execute("UPDATE memo SET read_at = 7 WHERE id = ?", (number,))  # culprit
db.execute("COMMIT")
