"""Each value is a transaction: transact()."""

import tempfile

import diskcache
from shared.timed import run

folder = tempfile.mkdtemp()
cache = diskcache.Cache(folder, sqlite_synchronous=2)


def before() -> None:
    for number in range(400):
        cache.set(number, number)


def after() -> None:
    with cache.transact():
        for number in range(400):
            cache.set(number, number)


run(before, after)
cache.close()
