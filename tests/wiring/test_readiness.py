"""Readiness: the cost of `/readyz` to the database."""

from __future__ import annotations

import asyncio

import psycopg
from psycopg import sql

from bot.wiring.process import DatabaseCheck
from storage.engine.database import Database, DatabaseSettings
from tests.clocks import ShiftedClock
from tests.servers import Postgres


async def test_the_database_is_asked_once_a_second_however_many_ask(database_url: str) -> None:
    clock, asked = ShiftedClock(), list[float]()
    clock.stop()
    db = Database(DatabaseSettings(database_url), clock)
    db.on_wait = asked.append
    check = DatabaseCheck(database_url, db, clock)
    answers = await asyncio.gather(*(check.ask() for _ in range(50)))
    assert all(database.well and due is not None for database, due in answers)
    clock.advance(0.9)
    await check.ask()
    assert len(asked) == 1
    clock.advance(0.2)
    await asyncio.gather(*(check.ask() for _ in range(50)))
    assert len(asked) == 2
    db.close()


async def test_a_database_that_went_away_is_noticed_a_second_later(
    postgres_url: str, postgres: Postgres
) -> None:
    clock = ShiftedClock()
    db = Database(DatabaseSettings(postgres_url, pool=1), clock)
    check = DatabaseCheck(postgres_url, db, clock)
    assert (await check.ask())[0].well
    postgres.stop()
    clock.advance(1.1)
    for database, due in await asyncio.gather(*(check.ask() for _ in range(5))):
        assert not database.well
        assert due is None
    db.close()


async def test_a_database_that_takes_no_writes_is_noticed_although_nobody_writes(
    postgres_url: str,
) -> None:
    clock = ShiftedClock()
    clock.stop()
    db = Database(DatabaseSettings(postgres_url, pool=1), clock)
    check = DatabaseCheck(postgres_url, db, clock)
    assert (await check.ask())[0].well
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        told = "ALTER DATABASE {} SET default_transaction_read_only = {}"
        name = sql.Identifier(connection.info.dbname)
        connection.execute(sql.SQL(told).format(name, sql.SQL("on")))
        clock.advance(20)
        database, _ = await check.ask()
        assert (database.well, database.says) == (False, "it is set to read only")
        connection.execute("SET default_transaction_read_only = off")
        connection.execute(sql.SQL(told).format(name, sql.SQL("off")))
    clock.advance(1.1)
    assert (await check.ask())[0].well
    db.close()
