"""Each request loads its user once; names of countries are cached."""
from functools import lru_cache

import flask
import peewee

db = peewee.SqliteDatabase(":memory:")
app = flask.Flask(__name__)


class User(peewee.Model):
    token = peewee.CharField(unique=True)
    country = peewee.CharField()

    class Meta:
        database = db


class Country(peewee.Model):
    code = peewee.CharField(primary_key=True)
    name = peewee.CharField()

    class Meta:
        database = db


@lru_cache
def country(code: str) -> str:
    return Country.get_by_id(code).name


@app.before_request
def load_user() -> None:
    flask.g.user = User.get(User.token == flask.request.headers["X-Token"])


@app.get("/")
def greet():
    return f"Hello {flask.g.user.token} from {country(flask.g.user.country)}"


db.create_tables([User, Country])
Country.insert_many([{"code": c, "name": c * 3} for c in "abcdef"]).execute()
User.insert_many([{"token": f"t{i}", "country": "abcdef"[i % 6]} for i in range(400)]).execute()
client = app.test_client()
for number in range(400):
    assert client.get("/", headers={"X-Token": f"t{number}"}).status_code == 200
