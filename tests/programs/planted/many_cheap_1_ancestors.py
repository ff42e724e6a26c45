# category: many_cheap|duplicate_query
# fix: memory|many items|IN \(|JOIN|RECURSIVE|keep the result
import random
import sqlite3


class FamilyTree:
    def __init__(self, people: int) -> None:
        draw = random.Random(5)
        self.people = people
        self.connection = sqlite3.connect(":memory:")
        self.connection.execute("CREATE TABLE person (id INTEGER PRIMARY KEY, mother INTEGER)")
        self.connection.executemany(
            "INSERT INTO person VALUES (?, ?)", ((i, draw.randrange(i) if i else None) for i in range(people))
        )

    def mother(self, person: int) -> int | None:
        query = "SELECT mother FROM person WHERE id = ?"
        return self.connection.execute(query, (person,)).fetchone()[0]  # culprit

    def generations(self, person: int) -> int:
        count = 0
        while (person := self.mother(person)) is not None:  # culprit
            count += 1
        return count


def deepest(tree: FamilyTree, samples: int) -> int:
    draw = random.Random(7)
    return max(tree.generations(draw.randrange(tree.people)) for _ in range(samples))


print(deepest(FamilyTree(60_000), 14_000))
