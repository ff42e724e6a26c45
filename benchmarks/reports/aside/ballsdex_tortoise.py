"""tortoise/tortoise-orm#1378 (of Ballsdex-Team/BallsDex-DiscordBot, see its #601). The bot stops
answering while a large query runs, although it is awaited.

Cause: the query itself runs in aiosqlite's thread; then Tortoise makes an object of each of the
10,000 rows in the event loop, only for three of the columns.

Line: await ....filter(...) in leaderboard().

Fix: .values_list(the three columns) (or let the database sum).
"""

import asyncio
from collections import Counter
from tortoise import Tortoise, fields
from tortoise.models import Model
from _main import main


class Player(Model):
    id = fields.IntField(primary_key=True)
    discord_id = fields.BigIntField(unique=True)
    privacy = fields.IntField(default=0)


class Ball(Model):
    id = fields.IntField(primary_key=True)
    country = fields.CharField(max_length=40)
    rarity = fields.FloatField()


class BallInstance(Model):
    id = fields.IntField(primary_key=True)
    ball = fields.ForeignKeyField("models.Ball")
    player = fields.ForeignKeyField("models.Player")
    catch_date = fields.DatetimeField(null=True)
    attack_bonus = fields.IntField(default=0)
    health_bonus = fields.IntField(default=0)
    favorite = fields.BooleanField(default=False)


async def connect():
    await Tortoise.init(db_url="sqlite://balls.db", modules={"models": ["__main__"]})


async def make():
    await connect()
    await Tortoise.generate_schemas()
    await Player.bulk_create([Player(id=i, discord_id=10_000 + i) for i in range(1, 301)])
    await Ball.bulk_create(
        [Ball(id=i, country=f"country {i}", rarity=i / 10) for i in range(1, 201)]
    )
    await BallInstance.bulk_create(
        [
            BallInstance(
                ball_id=i % 200 + 1,
                player_id=i % 300 + 1,
                attack_bonus=i % 40 - 20,
                catch_date="2026-01-01",
            )
            for i in range(10_000)
        ]
    )
    await Tortoise.close_connections()


async def gateway(stop):
    while not stop.is_set():
        await asyncio.sleep(0.02)


async def leaderboard(values):
    points = Counter()
    if values:
        for ball, player, bonus in await BallInstance.filter(attack_bonus__gt=-20).values_list(
            "ball_id", "player_id", "attack_bonus"
        ):
            points[player] += 100 + bonus + ball % 7
    else:
        for instance in await BallInstance.filter(attack_bonus__gt=-20):
            points[instance.player_id] += 100 + instance.attack_bonus + instance.ball_id % 7
    return points.most_common(10)


async def bot(values):
    await connect()
    stop = asyncio.Event()
    heartbeat = asyncio.create_task(gateway(stop))
    tops = [await leaderboard(values) for _ in range(2)]
    players = await Player.filter(privacy=0).count()
    stop.set()
    await heartbeat
    await Tortoise.close_connections()
    return players, tops[0][:3]


main(lambda: asyncio.run(make()), lambda: asyncio.run(bot(False)), lambda: asyncio.run(bot(True)))
