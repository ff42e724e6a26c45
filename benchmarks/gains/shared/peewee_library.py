"""Peewee's models of authors and books, 400 of each."""

import peewee

db = peewee.SqliteDatabase(":memory:")


class Model(peewee.Model):
    class Meta:
        database = db


class Author(Model):
    name = peewee.TextField()


class Book(Model):
    title = peewee.TextField()
    author = peewee.ForeignKeyField(Author)


db.create_tables([Author, Book])
with db.atomic():
    Author.insert_many([{"name": f"author {number}"} for number in range(400)]).execute()
    books = [{"title": f"title {number}", "author": number + 1} for number in range(400)]
    Book.insert_many(books).execute()
