"""blakeblackshear/frigate#6319 (pull request, the review). When recordings expire, the timeline is
cleaned up: "Can't you do this in a single delete statement rather than a loop?"

Cause: expire() deletes the timeline's entries of each expired recording with a separate statement,
in autocommit: a commit (a sync) for each.

Line: .execute() of Timeline.delete() in expire() (loop over the recordings).

Fix: one DELETE (camera, timestamp up to the expiry date), or at least one transaction around the
loop.
"""

import peewee
from _main import main

db = peewee.SqliteDatabase("frigate.db")


class Base(peewee.Model):
    class Meta:
        database = db


class Recordings(Base):
    camera = peewee.CharField(index=True)
    path = peewee.CharField(unique=True)
    start_time = peewee.FloatField(index=True)
    end_time = peewee.FloatField()


class Event(Base):
    camera = peewee.CharField(index=True)
    label = peewee.CharField()


class Timeline(Base):
    timestamp = peewee.FloatField(index=True)
    camera = peewee.CharField(index=True)
    source = peewee.CharField()
    class_type = peewee.CharField()


def setup():
    db.create_tables([Recordings, Event, Timeline])
    with db.atomic():
        Recordings.insert_many(
            [(f"cam{i % 4}", f"/media/{i}.mp4", i * 10.0, i * 10.0 + 10) for i in range(2000)],
            fields=[Recordings.camera, Recordings.path, Recordings.start_time, Recordings.end_time],
        ).execute()
        Event.insert_many(
            [(f"cam{i % 4}", "person") for i in range(400)], fields=[Event.camera, Event.label]
        ).execute()
        for k in range(4):
            Timeline.insert_many(
                [(i * 10.0 + k, f"cam{i % 4}", "tracked_object", "visible") for i in range(2000)],
                fields=[Timeline.timestamp, Timeline.camera, Timeline.source, Timeline.class_type],
            ).execute()


def expired(camera, before):
    return list(
        Recordings.select()
        .where(Recordings.camera == camera, Recordings.end_time < before)
        .order_by(Recordings.start_time)
    )


def expire(camera, before, single):
    recordings = expired(camera, before)
    if single:
        Timeline.delete().where(Timeline.camera == camera, Timeline.timestamp < before).execute()
    else:
        for recording in recordings:
            Timeline.delete().where(
                Timeline.camera == camera,
                Timeline.timestamp.between(recording.start_time, recording.end_time - 0.001),
            ).execute()
    Recordings.delete().where(Recordings.id.in_([r.id for r in recordings])).execute()


def run(single):
    for number in range(4):
        expire(f"cam{number}", 1190.0 + number * 10, single)
    return Timeline.select().count(), Recordings.select().count(), Event.select().count()


main(setup, lambda: run(False), lambda: run(True))
