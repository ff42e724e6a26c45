"""lightly-ai/lightly-studio#633 (pull request; the same in smithyhq/sqladmin#704). Listing images
takes 1.8 s instead of 0.3 s: two collections are joined in one query.

Cause: joinedload of tags and of annotations: each image is returned for each pair of tag and
annotation (12 x 30 rows), with all its columns, and SQLAlchemy sorts out the same objects again.

Line: session.exec in list_images().

Fix: selectinload instead of joinedload. No index is missing, no query is repeated.
"""

from sqlalchemy.orm import joinedload, selectinload
from sqlmodel import Field, Relationship, Session, SQLModel, create_engine, select
from _main import main

engine = create_engine("sqlite:///studio.db")


class Dataset(SQLModel, table=True):
    id: int | None = Field(default=None, primary_key=True)
    name: str


class ImageTag(SQLModel, table=True):
    image_id: int = Field(foreign_key="image.id", primary_key=True)
    tag_id: int = Field(foreign_key="tag.id", primary_key=True)


class Tag(SQLModel, table=True):
    id: int | None = Field(default=None, primary_key=True)
    name: str


class Annotation(SQLModel, table=True):
    id: int | None = Field(default=None, primary_key=True)
    image_id: int = Field(foreign_key="image.id", index=True)
    label: str
    x: float
    y: float


class Image(SQLModel, table=True):
    id: int | None = Field(default=None, primary_key=True)
    dataset_id: int = Field(foreign_key="dataset.id", index=True)
    path: str
    exif: str
    tags: list[Tag] = Relationship(link_model=ImageTag)
    annotations: list[Annotation] = Relationship()


def setup():
    SQLModel.metadata.create_all(engine)
    with engine.begin() as c:
        c.execute(Dataset.__table__.insert(), [{"id": i, "name": f"set {i}"} for i in range(3)])
        c.execute(Tag.__table__.insert(), [{"id": i, "name": f"tag {i}"} for i in range(40)])
        c.execute(
            Image.__table__.insert(),
            [
                {"id": i, "dataset_id": i % 3, "path": f"/img/{i}.jpg", "exif": "f/2.8;" * 60}
                for i in range(270)
            ],
        )
        c.execute(
            ImageTag.__table__.insert(),
            [{"image_id": i, "tag_id": (i + k * 3) % 40} for i in range(270) for k in range(12)],
        )
        c.execute(
            Annotation.__table__.insert(),
            [
                {"image_id": i, "label": f"l{k % 7}", "x": k, "y": i}
                for i in range(270)
                for k in range(30)
            ],
        )


def list_images(session, dataset, load):
    query = (
        select(Image)
        .where(Image.dataset_id == dataset)
        .order_by(Image.id)
        .options(load(Image.tags), load(Image.annotations))
    )
    return session.exec(query).unique().all()


def run(load):
    with Session(engine) as session:
        assert session.get(Dataset, 1).name
        images = list_images(session, 1, load)
        return (
            len(images),
            sum(len(i.tags) for i in images),
            sum(len(i.annotations) for i in images),
        )


main(setup, lambda: run(joinedload), lambda: run(selectinload))
