"""The texts of the project are plain English: habits that make a text hard to read stay rare.

The word lists and limits are in prose.toml. The test is a smoke alarm: a text that passes it may
still be hard to read.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

pytestmark = pytest.mark.once

ROOT = Path(__file__).parent.parent
FOLDERS = ("docs", "queryprof", "hooks", "cli")
PAGES = ("README.md", "CONTRIBUTING.md", "SECURITY.md")
HABITS = tomllib.loads(Path(__file__).with_name("prose.toml").read_text())
KINDS = ("docs", "code", "messages")
MESSAGE_WORDS = 6
"""A string literal with fewer words is not a message."""


class Text(NamedTuple):
    """A paragraph, and where it is."""

    kind: str
    place: str
    words: str


def paragraphs(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the paragraphs of a Markdown file without code, tables and headings."""
    is_code, lines, first = False, [], 0
    for number, line in enumerate((*path.read_text().splitlines(), ""), start=1):
        text = line.strip()
        if text.startswith("```"):
            is_code, text = not is_code, ""
        starts_item = bool(re.match(r"[-*] |\d+\. ", text))
        is_prose = not is_code and text and not text.startswith(("|", "#", "!["))
        if lines and (starts_item or not is_prose):
            yield first, " ".join(lines)
            lines = []
        if is_prose:
            first = first if lines else number
            lines.append(re.sub(r"^(?:[-*]|\d+\.) ", "", text))


def python_texts(path: Path) -> Iterator[tuple[str, int, str]]:
    """Yield docstrings and comments as code, and long string literals as messages."""
    source = path.read_text()
    tree = ast.parse(source)
    documented, parts = set(), set()
    for node in ast.walk(tree):
        body = getattr(node, "body", ())
        for one in body if isinstance(body, list) else ():
            if isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant):
                documented.add(one.value)
                if isinstance(one.value.value, str):
                    for text in one.value.value.split("\n\n"):
                        yield "code", one.lineno, text
        if isinstance(node, ast.JoinedStr):
            parts |= {one for value in node.values for one in ast.walk(value)}
    for node in ast.walk(tree):
        if node in documented or node in parts:
            continue
        if isinstance(node, ast.JoinedStr):
            text = "".join(
                str(one.value) if isinstance(one, ast.Constant) else "VALUE" for one in node.values
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
        else:
            continue
        is_sentence = re.match(r"[A-Z]?[a-z]", text) and "\n" not in text.strip()
        if is_sentence and len(text.split()) >= MESSAGE_WORDS:
            yield "messages", node.lineno, text
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield "code", token.start[0], token.string.lstrip("# ")


def c_comments(path: Path) -> Iterator[tuple[int, str]]:
    source = path.read_text()
    for found in re.finditer(r"/\*(.*?)\*/", source, re.DOTALL):
        text = re.sub(r"\n\s*\*", "\n", found[1])
        for part in text.split("\n\n"):
            yield source.count("\n", 0, found.start()) + 1, part


@pytest.fixture(scope="module")
def texts() -> dict[str, list[Text]]:
    """All texts by kind: docs, code and messages."""
    found: dict[str, list[Text]] = defaultdict(list)
    files = [file for name in FOLDERS for file in (ROOT / name).rglob("*")]
    for path in sorted((*files, *(ROOT / name for name in PAGES))):
        name = str(path.relative_to(ROOT))
        if path.suffix == ".md" and name != "docs/findings.md":  # its outputs are generated
            for line, words in paragraphs(path):
                found["docs"].append(Text("docs", f"{name}:{line}", words))
        elif path.suffix == ".py":
            for kind, line, words in python_texts(path):
                found[kind].append(Text(kind, f"{name}:{line}", words))
        elif path.suffix in (".c", ".h"):
            for line, words in c_comments(path):
                found["code"].append(Text("code", f"{name}:{line}", words))
    return found


def sentences(text: str) -> list[str]:
    plain = " ".join(re.sub(r"`[^`]*`|https?://\S+", "CODE", text).split())
    return re.split(r"(?<=[.!?;:]) (?=\S)", plain)


def pattern(habit: dict[str, str]) -> re.Pattern[str]:
    """Return what recognizes a habit in a sentence."""

    def either(words: str) -> str:
        listed = words.split(",") if "," in words else words.split()
        return "|".join(re.escape(" ".join(one.split())) for one in listed)

    if "first_words" in habit:
        start, verbs = either(habit["first_words"]), either(habit["verbs"])
        return re.compile(rf"^(?:{start}) [^,.?]{{0,60}}\b(?:{verbs})\b")
    before = rf"(?:{either(habit['before'])}) " if "before" in habit else ""
    ways = [rf"\b{before}(?:{either(habit['phrases'])})\b"]
    if "ends" in habit:
        ways.append(rf",? (?:{either(habit['ends'])})[.,;:]?$")
    return re.compile("|".join(ways))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [name for name in HABITS if name != "sentence_words"])
def test_hard_sentences_stay_rare(texts: dict[str, list[Text]], name: str, kind: str) -> None:
    habit = HABITS[name]
    hard = pattern(habit)
    found = [
        f"{one.place}: {sentence}"
        for one in texts[kind]
        for sentence in sentences(one.words)
        if hard.search(sentence)
    ]
    words = sum(len(one.words.split()) for one in texts[kind])
    assert words > 5000
    rate = 1000 * len(found) / words
    assert rate <= habit["limits"][kind], "\n".join((habit["explains"], *found[:40]))


@pytest.mark.parametrize("kind", KINDS)
def test_sentences_are_short(texts: dict[str, list[Text]], kind: str) -> None:
    lengths = [len(one.split()) for text in texts[kind] for one in sentences(text.words)]
    assert sum(lengths) / len(lengths) <= HABITS["sentence_words"]["mean"][kind]


@pytest.mark.parametrize(
    ("sentence", "name"),
    [
        ("Of the database the first bytes are read.", "inverted_start"),
        ("The reason is named.", "vague_passive"),
        ("It reads those of a process.", "pronoun_chain"),
        ("It writes the file, too.", "afterthought"),
        ("The report tells why.", "private_word"),
    ],
)
def test_each_habit_is_recognized(sentence: str, name: str) -> None:
    found = {
        one for one in HABITS if one != "sentence_words" and pattern(HABITS[one]).search(sentence)
    }
    assert found == {name}
    assert not any(
        pattern(HABITS[one]).search("queryprof reads the process's file and prints the reason.")
        for one in HABITS
        if one != "sentence_words"
    )
