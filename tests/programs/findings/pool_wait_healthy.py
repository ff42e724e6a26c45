"""Eight threads share eight connections."""

import time
from concurrent.futures import ThreadPoolExecutor

from sqlalchemy import create_engine, text
from sqlalchemy.pool import QueuePool

engine = create_engine("sqlite:///app.db", poolclass=QueuePool, pool_size=8, max_overflow=0)


def ship(order):
    with engine.connect() as connection:
        connection.execute(text("SELECT :a"), {"a": order})
        time.sleep(0.01)


with ThreadPoolExecutor(8) as threads:
    list(threads.map(ship, range(80)))
