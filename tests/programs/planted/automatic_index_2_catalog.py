# category: automatic_index
# fix: CREATE INDEX \w+ ON "?review"? \("?isbn"?\b|an index for the join
from sqlalchemy import create_engine, func, insert, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column


class Base(DeclarativeBase):
    pass


class Book(Base):
    __tablename__ = "book"
    id: Mapped[int] = mapped_column(primary_key=True)
    isbn: Mapped[str]
    shelf: Mapped[int] = mapped_column(index=True)


class Review(Base):
    __tablename__ = "review"
    id: Mapped[int] = mapped_column(primary_key=True)
    isbn: Mapped[str]
    stars: Mapped[int]


def shelf_report(session, shelf):
    average = func.avg(Review.stars).label("average")
    query = (
        select(Book.isbn, average).outerjoin(Review, Review.isbn == Book.isbn)
        .where(Book.shelf >= shelf, Book.shelf < shelf + 5).group_by(Book.id)
    )
    return {isbn: stars for isbn, stars in session.execute(query)}  # culprit


engine = create_engine("sqlite://")
Base.metadata.create_all(engine)
with Session(engine) as session:
    raw = session.connection().connection.cursor()
    raw.executemany("INSERT INTO book (isbn, shelf) VALUES (?, ?)", ((f"i{n}", n % 50) for n in range(900)))
    raw.executemany("INSERT INTO review (isbn, stars) VALUES (?, ?)", ((f"i{n % 900}", n % 5 + 1) for n in range(25_000)))
    session.commit()
    best = {}
    for shelf in range(50):
        best |= shelf_report(session, shelf)
assert len(best) == 900
