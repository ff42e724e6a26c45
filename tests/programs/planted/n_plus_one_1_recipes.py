# category: n_plus_one
# fix: JOIN|IN \(
import sqlite3
from dataclasses import dataclass


@dataclass
class Recipe:
    name: str
    grams: int


class Cookbook:
    def __init__(self) -> None:
        self.db = sqlite3.connect(":memory:")
        self.db.row_factory = sqlite3.Row
        self.db.executescript(
            "CREATE TABLE recipe (id INTEGER PRIMARY KEY, name TEXT);"
            "CREATE TABLE ingredient (recipe_id INTEGER, grams INTEGER);"
            "CREATE INDEX ingredient_recipe ON ingredient (recipe_id);"
        )
        self.db.executemany("INSERT INTO recipe VALUES (?, ?)", ((i, f"r{i}") for i in range(40_000)))
        self.db.executemany("INSERT INTO ingredient VALUES (?, ?)", ((i % 40_000, i % 90) for i in range(80_000)))

    def _weight(self, recipe_id: int) -> int:
        sql = "SELECT grams FROM ingredient WHERE recipe_id = :r"
        return sum(row["grams"] for row in self.db.execute(sql, {"r": recipe_id}))  # culprit

    def all(self) -> list[Recipe]:
        rows = self.db.execute("SELECT id, name FROM recipe ORDER BY name").fetchall()
        return [Recipe(row["name"], self._weight(row["id"])) for row in rows]  # culprit


heavy = max(Cookbook().all(), key=lambda recipe: recipe.grams)
print(heavy)
