# category: commit_per_write
# fix: transact
import shutil
from pathlib import Path

import diskcache


def normalise(word: str) -> str:
    return word.strip().lower().replace("-", "")


class Thesaurus:
    def __init__(self, folder: str) -> None:
        self.cache = diskcache.Cache(folder)

    def learn(self, words: list[str]) -> None:
        for number, word in enumerate(words):
            self.cache.set(normalise(word), number)  # culprit

    def close(self) -> None:
        self.cache.close()


folder = Path("thesaurus-cache")
shutil.rmtree(folder, ignore_errors=True)
thesaurus = Thesaurus(str(folder))
thesaurus.learn([f" Word-{number} " for number in range(4000)])
thesaurus.close()
shutil.rmtree(folder)
