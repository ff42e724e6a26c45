# category: commit_per_write
# fix: one transaction
import sqlite3
from contextlib import closing
from pathlib import Path


class ScoreBoard:
    def __init__(self, path: Path) -> None:
        self.connection = sqlite3.connect(path)
        with self.connection:
            self.connection.execute("CREATE TABLE score (player TEXT PRIMARY KEY, points INTEGER)")

    def add(self, player: str, points: int) -> None:
        with self.connection as db:  # culprit
            db.execute(  # culprit
                "INSERT INTO score VALUES (?, ?) ON CONFLICT (player) DO UPDATE SET points = points + excluded.points",
                (player, points),
            )

    def close(self) -> None:
        self.connection.close()


def import_round(board: ScoreBoard, results: dict[str, int]) -> None:
    for player, points in results.items():
        board.add(player, points)  # culprit


path = Path("scores.db")
path.unlink(missing_ok=True)
with closing(ScoreBoard(path)) as board:
    for game in range(2):
        import_round(board, {f"player {i}": i * game % 21 for i in range(35)})
path.unlink()
