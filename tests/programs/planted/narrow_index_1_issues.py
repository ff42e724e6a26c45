# category: narrow_index
# fix: CREATE INDEX \w+ ON issue \((project_id, number|number, project_id)\)|index on all that it compares
import asyncio

import aiosqlite


class Tracker:
    def __init__(self, db):
        self.db = db

    @classmethod
    async def open(cls, path):
        db = await aiosqlite.connect(path)
        await db.execute(
            "CREATE TABLE issue (id INTEGER PRIMARY KEY, project_id INT, number INT, title TEXT)"
        )
        await db.execute("CREATE INDEX issue_project ON issue (project_id)")
        rows = [(n % 3, n // 3, f"issue {n}") for n in range(45_000)]
        await db.executemany("INSERT INTO issue (project_id, number, title) VALUES (?, ?, ?)", rows)
        await db.commit()
        return cls(db)

    async def resolve(self, reference):
        project, number = map(int, reference.split("#"))
        cursor = await self.db.execute(  # culprit
            "SELECT id, title FROM issue WHERE project_id = ? AND number = ?",  # culprit
            (project, number),  # culprit
        )  # culprit
        row = await cursor.fetchone()
        await cursor.close()
        return row


async def main():
    tracker = await Tracker.open(":memory:")
    try:
        for n in range(300):
            assert await tracker.resolve(f"{n % 3}#{14_999 - n * 7}")
    finally:
        await tracker.db.close()


asyncio.run(main())
