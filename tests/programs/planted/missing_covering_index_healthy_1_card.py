# healthy: the index leaves two rows of a wide table, a covering one would win next to nothing
import hashlib
import sqlite3

db = sqlite3.connect(":memory:")
db.execute("CREATE TABLE card (id INTEGER PRIMARY KEY, patient INTEGER, kind TEXT, scan BLOB)")
db.execute("CREATE INDEX card_patient ON card (patient)")
db.executemany(
    "INSERT INTO card VALUES (?, ?, 'xray', zeroblob(600))", ((n, n // 2) for n in range(20_000))
)


def kinds(patient):
    return [kind for (kind,) in db.execute("SELECT kind FROM card WHERE patient = ?", (patient,))]


def seal(patient):
    key = f"{patient}:{','.join(kinds(patient))}".encode()
    return hashlib.pbkdf2_hmac("sha256", key, b"ward", 3000).hex()


seals = {patient: seal(patient) for patient in range(0, 9000, 30)}
assert len(seals) == 300
