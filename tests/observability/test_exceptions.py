"""An exception is told by its type and its places; its words only where they are no person's."""

from __future__ import annotations

import json

import httpx
import psycopg
import pysqlite3.dbapi2 as sqlite3
import pytest
from pydantic import BaseModel
from sqlalchemy import create_engine, text
from sqlalchemy.exc import IntegrityError

from bot.domain.errors import DatabaseUnavailable, GiveUp, Retry, StepInterrupted
from bot.domain.message import PayloadError
from bot.observability.redaction import causes, explain, frames

SECRET = "secret-text-XYZ"


class Order(BaseModel):
    number: int


def unreadable() -> Exception:
    with pytest.raises(ValueError, match=SECRET) as caught:
        int(SECRET)
    return caught.value


def invalid() -> Exception:
    with pytest.raises(ValueError, match=SECRET) as caught:
        Order.model_validate({"number": SECRET})
    return caught.value


def refused_by_http() -> Exception:
    url = f"https://agent.example/{SECRET}?q={SECRET}"
    with pytest.raises(httpx.HTTPStatusError) as caught:
        httpx.Response(500, request=httpx.Request("GET", url)).raise_for_status()
    return caught.value


def raised_from(error: Exception, cause: Exception) -> Exception:
    with pytest.raises(type(error)) as caught:
        raise error from cause
    return caught.value


QUOTING = [
    unreadable(),
    invalid(),
    refused_by_http(),
    KeyError(SECRET),
    RuntimeError(SECRET),
    OSError(SECRET),
    json.JSONDecodeError(SECRET, SECRET, 0),
    UnicodeEncodeError("ascii", SECRET, 0, 1, SECRET),
    FileNotFoundError(2, "No such file or directory", f"/tmp/{SECRET}"),
    GiveUp(SECRET, SECRET),
    Retry(5.0, SECRET),
    StepInterrupted(SECRET),
    ExceptionGroup(SECRET, [ValueError(SECRET)]),
]


@pytest.mark.parametrize("error", QUOTING, ids=lambda e: type(e).__name__)
def test_words_that_may_be_a_persons_are_not_told(error: Exception) -> None:
    assert SECRET in f"{error}{error!r}{error.args}"
    assert type(error).__name__ in explain(error)
    told = " ".join([explain(error), *causes(error)])
    assert SECRET not in told


TOLD = [
    (DatabaseUnavailable("the database does not answer"), "the database does not answer"),
    (PayloadError("no chat id"), "no chat id"),
    (ConnectionRefusedError(111, "Connection refused"), "Connection refused"),
    (httpx.ConnectError("All connection attempts failed"), "All connection attempts failed"),
    (sqlite3.OperationalError("database is locked"), "database is locked"),
]


@pytest.mark.parametrize(("error", "words"), TOLD, ids=lambda v: type(v).__name__)
def test_words_of_ours_and_of_the_system_are_told(error: Exception, words: str) -> None:
    assert explain(error) == f"{type(error).__name__}: {words}"


def test_a_databases_error_is_told_by_its_code_without_the_row(postgres_url: str) -> None:
    url = postgres_url.replace("postgresql://", "postgresql+psycopg://")
    engine = create_engine(url, hide_parameters=True)
    insert = text("INSERT INTO t VALUES (:word)")
    with engine.connect() as tx:
        tx.execute(text("CREATE TEMPORARY TABLE t (word text CONSTRAINT one_word UNIQUE)"))
        tx.execute(insert, {"word": SECRET})
        with pytest.raises(IntegrityError, match=SECRET) as caught:
            tx.execute(insert, {"word": SECRET})
    engine.dispose()
    assert isinstance(caught.value.orig, psycopg.Error)
    told = "UniqueViolation: SQLSTATE 23505, constraint one_word"
    assert explain(caught.value) == f"IntegrityError: {told}"
    assert list(causes(caught.value)) == [told]


def test_the_places_are_named_without_source_lines_or_paths() -> None:
    with pytest.raises(ValueError, match=SECRET) as caught:
        Order.model_validate({"number": SECRET})
    places = frames(caught.value)
    assert places.startswith(f"{__name__}:")
    assert "test_the_places_are_named" in places
    assert " > pydantic.main:" in places
    assert "/" not in places
    assert SECRET not in places


def test_a_group_is_told_by_its_members_and_an_error_by_what_led_to_it() -> None:
    error = raised_from(DatabaseUnavailable("no connection became free"), KeyError(SECRET))
    group = ExceptionGroup(SECRET, [error, ValueError(SECRET)])
    assert list(causes(group)) == ["DatabaseUnavailable: no connection became free", "ValueError"]
    assert list(causes(group.exceptions[0])) == ["KeyError"]
    assert "raised_from" in frames(group)
