# category: duplicate_query
# fix: cache|keep|once
import flask
from sqlalchemy import ForeignKey, create_engine, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column
from sqlalchemy.pool import StaticPool


class Base(DeclarativeBase):
    pass


class Role(Base):
    __tablename__ = "role"
    id: Mapped[int] = mapped_column(primary_key=True)
    user: Mapped[str] = mapped_column(index=True)
    name: Mapped[str]


engine = create_engine("sqlite://", poolclass=StaticPool)
Base.metadata.create_all(engine)
app = flask.Flask(__name__)


def may(session: Session, user: str, role: str) -> bool:
    query = select(Role.name).where(Role.user == user)
    return role in session.scalars(query).all()  # culprit


def menu(session: Session, user: str) -> list[str]:
    pages = [f"page {number}" for number in range(150)]
    return [page for page in pages if may(session, user, "editor") or page.endswith("1")]  # culprit


@app.get("/menu/<user>")
def show(user: str):
    with Session(engine) as session:
        return flask.jsonify(menu(session, user))


with Session(engine) as session:
    session.add_all(Role(user=f"u{i}", name="viewer" if i % 2 else "editor") for i in range(30))
    session.commit()
client = app.test_client()
for number in range(16):
    assert client.get(f"/menu/u{number}").status_code == 200
