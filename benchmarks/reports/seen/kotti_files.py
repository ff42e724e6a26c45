"""Kotti/Kotti#105 (pull request). Pages that list files are slow: "the file data gets fetched from
the DB per default".

Cause: the mapped class File has the column data (the uploaded file), so select(File) in listing()
reads all files to show names and sizes.

Line: session.scalars in listing().

Fix: deferred(data) (or defer(File.data), load_only). No index is missing: the same rows are read,
without the large column.
"""

from sqlalchemy import ForeignKey, LargeBinary, create_engine, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, defer, mapped_column, relationship
from _main import main

engine = create_engine("sqlite:///kotti.db")


class Base(DeclarativeBase):
    pass


class Node(Base):
    __tablename__ = "nodes"
    id: Mapped[int] = mapped_column(primary_key=True)
    parent_id: Mapped[int | None] = mapped_column(ForeignKey("nodes.id"), index=True)
    title: Mapped[str]


class File(Base):
    __tablename__ = "files"
    id: Mapped[int] = mapped_column(primary_key=True)
    node_id: Mapped[int] = mapped_column(ForeignKey("nodes.id"), index=True)
    filename: Mapped[str]
    mimetype: Mapped[str]
    size: Mapped[int]
    data: Mapped[bytes] = mapped_column(LargeBinary)
    node = relationship(Node)


def setup():
    Base.metadata.create_all(engine)
    with engine.begin() as c:
        c.execute(
            Node.__table__.insert(),
            [
                {"id": i, "parent_id": None if i == 1 else 1, "title": f"folder {i}"}
                for i in range(1, 9)
            ],
        )
        for i in range(96):
            c.execute(
                File.__table__.insert(),
                [
                    {
                        "node_id": 1 + i % 8,
                        "filename": f"report-{i}.pdf",
                        "mimetype": "application/pdf",
                        "size": 400_000,
                        "data": b"%PDF" * 100_000,
                    }
                ],
            )


def folders(session):
    return session.scalars(select(Node).where(Node.parent_id == 1).order_by(Node.title)).all()


def listing(session, folder, *options):
    return session.scalars(
        select(File).where(File.node_id == folder.id).order_by(File.filename).options(*options)
    ).all()


def run(*options):
    lines = 0
    for _ in range(5):
        with Session(engine) as session:
            for folder in folders(session):
                lines += sum(
                    len(f"{f.filename} {f.size // 1000} kB")
                    for f in listing(session, folder, *options)
                )
    return lines


main(setup, run, lambda: run(defer(File.data)))
