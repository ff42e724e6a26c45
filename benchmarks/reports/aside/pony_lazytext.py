"""ponyorm/pony#172. Showing posts with their text runs one SELECT for each post, even with
prefetch(): long texts are loaded lazily.

Cause: text is LongStr, which Pony does not load with the object: reading post.text in feed() is a
SELECT "text" ... WHERE "id" = ? for each post.

Line: post.text in feed() (loop over the posts).

Fix: LongStr(lazy=False) in the entity (or select the text with the query).
"""

import sys
from pony.orm import (
    Database,
    LongStr,
    Optional,
    PrimaryKey,
    Required,
    Set,
    count,
    db_session,
    select,
)
from _main import main

db = Database()
EAGER = sys.argv[1:] == ["fixed"]


class Author(db.Entity):
    id = PrimaryKey(int, auto=True)
    name = Required(str)
    posts = Set("Post")


class Post(db.Entity):
    id = PrimaryKey(int, auto=True)
    title = Required(str, 128)
    author = Required(Author)
    published = Required(bool, index=True)
    text = Required(LongStr, lazy=not EAGER)
    comments = Set("Comment")


class Comment(db.Entity):
    id = PrimaryKey(int, auto=True)
    post = Required(Post)
    body = Optional(str)


db.bind("sqlite", f"{__import__('os').getcwd()}/blog.db", create_db=True)
db.generate_mapping(create_tables=True)


@db_session
def setup():
    authors = [Author(name=f"author {i}") for i in range(30)]
    for i in range(5000):
        post = Post(
            title=f"post {i}", author=authors[i % 30], published=i % 2 == 0, text=f"text {i} " * 90
        )
        if i % 3 == 0:
            Comment(post=post, body="nice")


def feed(start):
    posts = select(p for p in Post if p.published).order_by(Post.id)[start : start + 300]
    return [(post.title, post.text[:200]) for post in posts]


def totals():
    return count(c for c in Comment), count(a for a in Author)


@db_session
def run():
    shown = [feed(start) for start in range(0, 2400, 300)]
    return totals(), sum(len(text) for posts in shown for _, text in posts)


main(setup, run, run)
