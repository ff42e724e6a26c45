# category: n_plus_one
# fix: selectinload|joinedload|subqueryload
from sqlalchemy import ForeignKey, create_engine, insert, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, relationship


class Base(DeclarativeBase):
    pass


class Album(Base):
    __tablename__ = "album"
    id: Mapped[int] = mapped_column(primary_key=True)
    title: Mapped[str]
    tracks: Mapped[list["Track"]] = relationship(back_populates="album")

    @property
    def minutes(self) -> float:
        return sum(track.seconds for track in self.tracks) / 60  # culprit


class Track(Base):
    __tablename__ = "track"
    id: Mapped[int] = mapped_column(primary_key=True)
    album_id: Mapped[int] = mapped_column(ForeignKey("album.id"), index=True)
    seconds: Mapped[int]
    album: Mapped[Album] = relationship(back_populates="tracks")


class Shelf:
    def __init__(self, session: Session) -> None:
        self.session = session

    def longest(self, count: int) -> list[tuple[str, float]]:
        lengths = {album.title: album.minutes for album in self.session.scalars(select(Album))}  # culprit
        return sorted(lengths.items(), key=lambda pair: -pair[1])[:count]


engine = create_engine("sqlite://")
Base.metadata.create_all(engine)
with Session(engine) as session:
    session.execute(insert(Album), [{"title": f"a{i}"} for i in range(900)])
    session.execute(insert(Track), [{"album_id": 1 + i % 900, "seconds": i % 400} for i in range(2700)])
    print(Shelf(session).longest(3))
