# category: stale_statistics
# fix: ANALYZE|optimize|\(gene, chromosome\)
import os

from sqlalchemy import Index, create_engine, select, text
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column


class Base(DeclarativeBase):
    pass


class Variant(Base):
    __tablename__ = "variant"
    id: Mapped[int] = mapped_column(primary_key=True)
    chromosome: Mapped[str] = mapped_column(index=True)
    gene: Mapped[str] = mapped_column(index=True)
    score: Mapped[int]


def load(engine, rows):
    with engine.begin() as connection:
        connection.connection.cursor().executemany(
            "INSERT INTO variant (chromosome, gene, score) VALUES (?, ?, ?)", rows
        )


def panel(engine, genes):
    with Session(engine) as session:
        return {gene: scores(session, gene) for gene in genes}


def scores(session, gene):
    query = select(Variant.score).where(Variant.chromosome == "chr2", Variant.gene == gene)
    return session.scalars(query).all()  # culprit


if os.path.exists("genome.db"):
    os.remove("genome.db")
engine = create_engine("sqlite:///genome.db")
Base.metadata.create_all(engine)
load(engine, [(f"chr{n}", f"G{n // 6}", n) for n in range(24)])  # the fixture of the tests
with engine.begin() as connection:
    connection.execute(text("ANALYZE"))
load(engine, ((f"chr{n % 4}", f"G{n // 4 * 7 % 3001}", n % 60) for n in range(40_000)))
engine.dispose()
assert sum(map(len, panel(engine, [f"G{n}" for n in range(150)]).values())) > 300
