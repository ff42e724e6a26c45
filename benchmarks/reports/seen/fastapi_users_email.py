"""fastapi-users/fastapi-users-db-sqlalchemy#4. The email index is not used by get_by_email(): a
sequential scan at each login. DSN: environment variable REPORTS_DSN (key=value form).

Cause: lower(email) = lower($1) is compared; the unique index is on email.

Line: session.execute in get_by_email().

Fix: CREATE INDEX ON users (lower(email)) (or store the email in lower case and compare the column).
SQLAlchemy's asyncio with asyncpg.
"""

import asyncio
import os
from sqlalchemy import func, select, text
from sqlalchemy.engine import URL
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from _main import main

dsn = dict(part.split("=") for part in os.environ["REPORTS_DSN"].split())
url = URL.create(
    "postgresql+asyncpg", dsn["user"], None, dsn["host"], int(dsn["port"]), dsn["dbname"]
)


class Base(DeclarativeBase):
    pass


class User(Base):
    __tablename__ = "fu_user"
    id: Mapped[int] = mapped_column(primary_key=True)
    email: Mapped[str] = mapped_column(unique=True, index=True)
    hashed_password: Mapped[str]
    is_active: Mapped[bool]


class Token(Base):
    __tablename__ = "fu_token"
    token: Mapped[str] = mapped_column(primary_key=True)
    user_id: Mapped[int]


async def make():
    engine = create_async_engine(url)
    async with engine.begin() as c:
        await c.run_sync(Base.metadata.drop_all)
        await c.run_sync(Base.metadata.create_all)
        await c.execute(
            text(
                "INSERT INTO fu_user SELECT i, 'User' || i || '@example.org', md5(i::text), true FROM generate_series(1, 60000) AS i"
            )
        )
    async with engine.connect() as c:
        c = await c.execution_options(isolation_level="AUTOCOMMIT")
        await c.execute(text("ANALYZE fu_user"))
    await engine.dispose()


async def get_by_email(session, email):
    return (
        (await session.execute(select(User).where(func.lower(User.email) == func.lower(email))))
        .unique()
        .scalar_one_or_none()
    )


async def login(session, email):
    user = await get_by_email(session, email)
    session.add(Token(token=f"t{user.id}", user_id=user.id))
    await session.commit()
    return user.id


async def logins(index):
    engine = create_async_engine(url)
    if index:
        async with engine.begin() as c:
            await c.execute(
                text("CREATE INDEX IF NOT EXISTS fu_user_lower ON fu_user (lower(email))")
            )
    async with AsyncSession(engine, expire_on_commit=False) as session:
        total = sum([await login(session, f"user{n}@Example.org") for n in range(100, 4000, 130)])
    await engine.dispose()
    return total


main(
    lambda: asyncio.run(make()),
    lambda: asyncio.run(logins(False)),
    lambda: asyncio.run(logins(True)),
)
