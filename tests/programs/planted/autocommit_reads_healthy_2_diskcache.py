"""A cache on disk in front of slow computing: the lookups cost little."""
import hashlib
import shutil

import diskcache


def digest(number: int) -> str:
    return hashlib.sha512(str(number).encode() * 600_000).hexdigest()


def cached(cache: diskcache.Cache, number: int) -> str:
    found = cache.get(number)
    if found is None:
        found = digest(number)
        cache[number] = found
    return found


shutil.rmtree("digests", ignore_errors=True)
with diskcache.Cache("digests") as cache:
    print(len({cached(cache, number * 7 % 120) for number in range(300)}))
shutil.rmtree("digests")
