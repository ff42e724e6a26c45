"""Find the source loops around a call."""

from __future__ import annotations

import sys
from dataclasses import replace
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from analysis.by_hand import aggregate, profile_of

from queryprof.analysis.report import Report
from queryprof.findings.program import Program
from queryprof.model import ENDLESS, Frame, StackSample
from queryprof.program.source_loops import innermost_loop, loop_sleeps, needs_previous_row
from queryprof.program.sources import Sources

pytestmark = pytest.mark.once

MS = 1_000_000
READ = "SELECT a FROM t WHERE b = ?"

LOOPS = """
def f(db, names):
    rows = [row[0] for row in db.execute("SELECT 1")]
    sums = [row[0] + len(db.read(row)) for row in db.execute("SELECT 2")]
    names = [row.name for row in db.rows]
    authors = [row.author.name for row in db.rows]
    numbers = sum(row.number() for row in db.rows)
    values = [row.upper() for row in db.execute("SELECT 3")]
    return [db.execute("SELECT 4", row) for row in db.execute("SELECT 5")]
    return all(map(read, [draw() for _ in range(5)]))
"""


def test_what_a_comprehension_goes_over_is_in_no_loop(tmp_path: Path) -> None:
    file = tmp_path / "app.py"
    file.write_text(LOOPS)
    sources = Sources({str(file): [sha256(LOOPS.encode()).hexdigest()]})
    found = [sources.loop_at(Frame("f", str(file), line)) for line in range(3, 10)]
    assert [one.line if one else None for one in found] == [None, None, None, 6, None, None, 9]
    read = {
        called: sources.loop_at(Frame("f", str(file), 4), called) for called in ("read", "execute")
    }
    assert [one.line if one else None for one in read.values()] == [4, None]
    mapped = {
        called: sources.loop_at(Frame("f", str(file), 10), called) for called in ("read", "draw")
    }
    assert [one.line if one else None for one in mapped.values()] == [None, 10]
    inside = sources.loop_at(Frame("f.<locals>.<genexpr>", str(file), 7))
    assert inside
    assert inside.line == 7


ITERATED = """def f(books):
    x = [[b.title, b.author.name] for b in books]
    x = {b.id: b.author.name.upper for b in books if b.author.name}
    x = [b.name + x for b in books for x in b.author.names]
    x = [list(b.author.books) for b in books]
    x = [1 in b.author.books for b in books]
    x = [[c.name for c in b.author.books] for b in books]
"""


def test_reading_an_attribute_iterates_over_nothing(tmp_path: Path) -> None:
    """So the iterated query is the one before the comprehension, and runs once."""
    file = tmp_path / "app.py"
    file.write_text(ITERATED)
    sources = Sources({str(file): [sha256(ITERATED.encode()).hexdigest()]})
    found = [sources.loop_at(Frame("f", str(file), line), "__iter__") for line in range(2, 8)]
    assert [bool(one) for one in found] == [False, False, True, True, True, True]
    assert sources.loop_at(Frame("f", str(file), 2), "__get__")


WORKERS = """async def worker(queue):
    while True:
        item = await queue.get()
        if item is None:
            break
        handle(item)

def serve():
    while True:
        handle(next_one())

def pages():
    while True:
        if not page():
            return

def start(queue):
    for _ in range(4):
        create_task(worker(queue))

def again():
    while True:
        try:
            with open() as db:
                return db.read()
        except Locked:
            if late():
                break
            log()

def tries():
    for _ in range(3):
        if is_first():
            log()
            continue
        else:
            write()
        break

def jobs(queue):
    while True:
        job = queue.get()
        if job is None:
            break
        handle(job, names.get("a"))

def named():
    while True:
        if not page(names.get("a")):
            break
"""


LOOP_LINES = {6: ENDLESS, 10: ENDLESS, 14: 13, 19: 18, 25: None, 37: None, 44: ENDLESS, 49: 48}


def test_what_is_around_a_worker_is_no_loop_of_its_queries(tmp_path: Path) -> None:
    file = tmp_path / "w.py"
    file.write_text(WORKERS)
    sources = Sources({str(file): frozenset({sha256(file.read_bytes()).hexdigest()})})
    found = {line: sources.loop_at(Frame("f", str(file), line)) for line in LOOP_LINES}
    lines = {line: one and (one.line or ENDLESS) for line, one in found.items()}
    assert lines == LOOP_LINES
    worker, start = Frame("worker", str(file), 6), Frame("start", str(file), 19)
    profile = profile_of(aggregate(READ, (worker, start), ns=200 * MS, count=500))
    program = Program(Report(profile), sources.loop_at, {})
    assert program.innermost_loop(program.all_groups[0]) is None


QUEUES = """
async def consume(queue):
    while (key := await queue.get()) is not None:
        seen(key)

def write(self):
    for _ in range(9):
        row = self.todo.get_nowait()
        save(row)

def people(names):
    for name in names:
        person = Person.select().where(Person.name == name).get()

def settings(names):
    for name in names:
        value = options.get(name)
        save(value)
"""


def test_a_loop_over_a_queue_is_a_workers(tmp_path: Path) -> None:
    file = tmp_path / "q.py"
    file.write_text(QUEUES)
    sources = Sources({str(file): frozenset({sha256(file.read_bytes()).hexdigest()})})
    found = {line: sources.loop_at(Frame("f", str(file), line)) for line in (4, 9, 13, 18)}
    assert {line: one == ENDLESS for line, one in found.items()} == {
        4: True,
        9: True,
        13: False,
        18: False,
    }


TASKS = """async def f(names):
    rows = await read(names)
    rows = await asyncio.gather(
        *(read(name) for name in names)
    )
    async with asyncio.TaskGroup() as group:
        group.create_task(read(names))
"""


def test_lines_that_make_tasks(tmp_path: Path) -> None:
    file = tmp_path / "t.py"
    file.write_text(TASKS)
    sources = Sources({str(file): frozenset({sha256(file.read_bytes()).hexdigest()})})
    found = [sources.makes_tasks(Frame("f", str(file), line)) for line in (2, 3, 4, 6, 7)]
    assert found == [False, True, False, False, True]
    assert sources.makes_tasks(Frame("f", "other.py", 1)) is None


VIEW = "return render(request, [total(o) for o in orders])"


@pytest.mark.parametrize(
    ("called", "is_loop"), [("render", False), ("total", True), ("_get", True)]
)
def test_a_comprehension_beside_what_is_called_is_no_loop_of_it(
    tmp_path: Path, called: str, is_loop: bool
) -> None:
    """A template's loop is in no line of the program."""
    file = tmp_path / "v.py"
    file.write_text(f"def view(request, orders):\n    {VIEW}\n")
    sources = Sources({str(file): frozenset({sha256(file.read_bytes()).hexdigest()})})
    view = Frame("view", str(file), 2)
    inside = Frame(f"Library.{called}", "/venv/site-packages/library.py", 9, "library")
    sample = StackSample(READ, (inside, view), 64, 1)
    profile = replace(profile_of(aggregate(READ, (view,), count=50)), stack_samples=(sample,))
    program = Program(Report(profile), sources.loop_at, {})
    assert bool(program.innermost_loop(program.all_groups[0])) == is_loop


@pytest.mark.parametrize(("places", "is_reported"), [(1, True), (2, False)])
def test_the_line_that_reads_an_attribute_is_shown_if_it_is_the_only_one(
    places: int, is_reported: bool
) -> None:
    sites = [(Frame(f"view_{number}", "/app/v.py", number + 1),) for number in range(places)]
    profile = profile_of(*(aggregate(READ, site, count=50) for site in sites))
    profile = replace(profile, notes={READ: "lazy load of Book.publisher in template books.html:3"})
    program = Program(Report(profile), lambda *_: None, {})
    notes = {program.library_note(group) for group in program.all_groups}
    assert notes == {"lazy load of Book.publisher" + " in template books.html:3" * is_reported}


APPENDS = """def f(order, item, orders):
    order.items.append(Item(item))
    order.lines.extend(orders); order.items.append(item)
    order.items.append(len(order.items))
    order.items.count(item)
    items.append(item)
"""


def test_lines_that_only_append(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text(APPENDS)
    sources = Sources({str(file): frozenset({sha256(file.read_bytes()).hexdigest()})})
    found = [sources.attributes_appended_to(Frame("f", str(file), line)) for line in range(2, 7)]
    assert found == [{"items"}, {"items", "lines"}, set(), set(), set()]
    assert not sources.attributes_appended_to(Frame("f", "other.py", 2))


CHAINS = """
def f(db, nodes):
    while key:
        key = db.execute("SELECT next FROM node WHERE id = ?", (key,)).fetchone()[0]  # chain
    for _ in range(9):
        name, salt = db.execute("SELECT name, salt FROM n WHERE id = ?", (key,)).fetchone()  # chain
        digest = hash(name, salt)
        key = digest % 100
    while node:
        node = node.parent  # chain
    while key:
        cursor.execute("SELECT next FROM node WHERE id = ?", (key,))  # chain
        (key,) = cursor.fetchone()
    while key:
        for row in db.execute("SELECT next FROM node WHERE id = ?", (key,)):  # chain
            key = row[0]
    for _ in range(9):
        key += db.execute("SELECT step FROM node WHERE id = ?", (key,)).fetchone()[0]  # chain
    while key := next_of(key):
        row = db.execute("SELECT 1 WHERE id = ?", (key,))  # query
    for key in nodes:
        total = total + db.execute("SELECT a FROM t WHERE id = ?", (key,)).fetchone()[0]  # query
    for key in nodes:
        row = db.execute("SELECT a FROM t WHERE id = ?", (key,)).fetchone()  # query
        rows = add(rows, row)
    for user in nodes:
        user = db.execute("SELECT a FROM t WHERE id = ?", (user[0],)).fetchone()  # query
    for item in nodes:
        key = item.key
        key = lookup(db, key)  # query
    for item in nodes:
        total = add_price(db, item, total)  # query
    for item in nodes:
        db, row = query(db, item)  # query
        args = [row]
    for item in nodes:
        args = [item]
        row = db.execute("SELECT a FROM t WHERE id = ?", args)  # query
        args = [row]
    while page := db.execute("SELECT a FROM t WHERE id > ?", (last,)).fetchall():  # chain
        last = page[-1]
    for row in db.execute("SELECT 1"):  # query
        found = db.execute("SELECT a FROM t WHERE id = ?", row).fetchone()  # query
        merged = merge(merged, get(db, row))  # query
    name = db.execute("SELECT a FROM t WHERE id = ?", (name,)).fetchone()  # query
    for customer in db.customers:
        counts[customer.id] = len(customer.orders)  # query
        customer.total = count(customer.orders)  # query
"""


def test_queries_that_need_the_row_before(tmp_path: Path) -> None:
    file = tmp_path / "app.py"
    file.write_text(CHAINS)
    sources = Sources({str(file): [sha256(CHAINS.encode()).hexdigest()]})
    marked = {
        number: line.rpartition("# ")[2]
        for number, line in enumerate(CHAINS.splitlines(), 1)
        if "  # " in line
    }
    found = {
        number: "chain" if sources.needs_previous_row(Frame("f", str(file), number)) else "query"
        for number in marked
    }
    assert found == marked
    assert not Sources({}).needs_previous_row(Frame("f", str(file), 4))


PACED = """
for number in range(20):
    time.sleep(0.05)
    db.execute("INSERT INTO t VALUES (1)")
for number in range(20):
    try:
        db.execute("INSERT INTO t VALUES (1)")
    except OSError:
        time.sleep(1)
while True:
    db.execute("INSERT INTO t VALUES (1)")
    await asyncio.sleep(1)
"""


def test_loops_that_sleep_in_each_pass() -> None:
    """Waiting before another try is no pause of each pass."""
    assert [line for line in range(1, 13) if loop_sleeps(PACED, line)] == [2, 10]


CALLING = """
def charge(cents):
    return bank.ask(cents)
class Bank:
    def ask(self, cents):
        return self.ask(cents) or time.sleep(0.02)
for cents in payments:
    state = charge(cents)
for cents in payments:
    store(cents)
"""


@pytest.mark.parametrize(("seconds", "sleeps"), [("0", False), ("0.001", True), ("pause", True)])
def test_a_sleep_of_0_only_lets_others_run(seconds: str, sleeps: bool) -> None:
    assert loop_sleeps(f"for n in range(9):\n    await asyncio.sleep({seconds})\n", 1) == sleeps


def test_loops_that_sleep_in_a_function_of_the_file() -> None:
    assert [line for line in range(1, 11) if loop_sleeps(CALLING, line)] == [7]


def test_a_loop_with_thousands_of_assignments_is_read_once(tmp_path: Path) -> None:
    """A trace function counts the lines: twice the assignments take twice as many."""

    def steps(count: int) -> int:
        names = [f"a{number}" for number in range(count)]
        chain = "".join(f"    {new} = g({old})\n" for old, new in pairwise(reversed(names)))
        text = f"while True:\n    {names[-1]} = db.execute('SELECT 1', ({names[0]},))\n{chain}"
        seen = 0

        def count_lines(_frame: object, _event: str, _arg: object) -> Any:
            nonlocal seen
            seen += 1
            return count_lines

        before = sys.gettrace()
        sys.settrace(count_lines)
        try:
            assert needs_previous_row(text, 2)
        finally:
            sys.settrace(before)
        return seen

    assert steps(400) < 2.2 * steps(200)


@pytest.mark.parametrize(
    ("call", "is_endless"),
    [
        ("Model.objects.get(pk=item)", False),
        ("Entity.get(sku=item)", False),
        ("jobs.get()", True),
        ("jobs.get(timeout=1)", True),
        ("jobs.get(block=True, timeout=1)", True),
    ],
)
def test_a_queue_has_no_key(call: str, is_endless: bool) -> None:
    text = f"def run(items):\n    for item in items:\n        found = {call}\n        use(found)\n"
    loop = innermost_loop(text, Frame("run", "app.py", 3, "user"), "")
    assert (loop == ENDLESS) == is_endless
    assert loop is not None
