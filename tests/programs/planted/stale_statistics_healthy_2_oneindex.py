# healthy: old statistics, but they cost nothing: a scan of 15,000 rows for 1,500 is as fast as the index (measured)
import os

from sqlalchemy import create_engine, select, text
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column


class Base(DeclarativeBase):
    pass


class Verse(Base):
    __tablename__ = "verse"
    id: Mapped[int] = mapped_column(primary_key=True)
    poem: Mapped[int] = mapped_column(index=True)
    words: Mapped[str]


def poem(session, number):
    verses = session.scalars(select(Verse).where(Verse.poem == number))
    return "\n".join(verse.words.capitalize() for verse in verses)


if os.path.exists("verse.db"):
    os.remove("verse.db")
engine = create_engine("sqlite:///verse.db")
Base.metadata.create_all(engine)
with engine.begin() as connection:
    connection.execute(text("INSERT INTO verse (poem, words) VALUES (1, 'tyger tyger burning bright')"))
    connection.execute(text("ANALYZE"))
    connection.connection.cursor().executemany(
        "INSERT INTO verse (poem, words) VALUES (?, ?)",
        ((n // 1500, "in the forests of the night") for n in range(15_000)),
    )
engine.dispose()
with Session(engine) as session:
    book = [poem(session, number) for number in range(10)]
assert all(book)
