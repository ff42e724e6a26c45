"""abrt/faf#555 (pull request). Assigning a release to all builds runs over night: "if we do not
commit after each package it is ~1000x faster".

Cause: db.session.commit() for each build: a sync of the file each time, and each commit expires
`release` and `arch`, which are read again for the next build.

Line: session.commit() in assign() (loop over the builds).

Fix: one commit (or a flush) after the loop.
"""

from sqlalchemy import ForeignKey, create_engine, func, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, relationship
from _main import main

engine = create_engine("sqlite:///faf.db")


class Base(DeclarativeBase):
    pass


class Release(Base):
    __tablename__ = "opsysreleases"
    id: Mapped[int] = mapped_column(primary_key=True)
    version: Mapped[str]


class Arch(Base):
    __tablename__ = "archs"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]


class Build(Base):
    __tablename__ = "builds"
    id: Mapped[int] = mapped_column(primary_key=True)
    base_package_name: Mapped[str] = mapped_column(index=True)
    release: Mapped[str]


class BuildRelease(Base):
    __tablename__ = "buildopsysreleasearch"
    build_id: Mapped[int] = mapped_column(ForeignKey("builds.id"), primary_key=True)
    release_id: Mapped[int] = mapped_column(ForeignKey("opsysreleases.id"), primary_key=True)
    arch_id: Mapped[int] = mapped_column(ForeignKey("archs.id"), primary_key=True)
    arch = relationship(Arch)


def setup():
    Base.metadata.create_all(engine)
    with Session(engine) as session:
        session.add_all(
            [Release(id=i, version=str(20 + i)) for i in range(5)]
            + [Arch(id=1, name="x86_64"), Arch(id=2, name="ppc64le")]
        )
        session.add_all(
            [
                Build(id=i, base_package_name=f"package{i % 300}", release=f"{i % 9}.fc25")
                for i in range(900)
            ]
        )
        session.commit()


def builds_of(session, suffix):
    return session.scalars(
        select(Build.id).where(Build.release.like(f"%{suffix}")).order_by(Build.id).limit(200)
    ).all()


def assign(session, release, arch, each):
    for build in builds_of(session, "fc25"):
        if session.get(BuildRelease, (build, release.id, arch.id)) is None:
            session.add(BuildRelease(build_id=build, release_id=release.id, arch_id=arch.id))
        if each:
            session.commit()
    session.commit()


def run(each):
    with Session(engine) as session:
        assign(session, session.get(Release, 3), session.get(Arch, 1), each)
        return session.scalar(select(func.count()).select_from(BuildRelease))


main(setup, lambda: run(True), lambda: run(False))
