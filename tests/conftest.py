"""Real databases for the tests: servers once per test worker, a migrated copy per test."""

from __future__ import annotations

import gc
import os
import re
import shutil
import zlib
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import settings

from storage.engine import postgres as engine
from tests import lock_order
from tests.servers import Postgres, Server, ServerUnavailable, Valkey, memory_disk
from tests.world import World, open_world

_ON_BOTH_DATABASES = re.compile(
    r"tests/storage/|tests/(e2e|crash|leases)/test_(?!assistant|handoff|recovery_(failures|suspects))"
    r"|tests/(intake|runs|delivery)/test_(main_job|shutdown|stop|burst|steps|lists)"
    r"|tests/clients/test_following|tests/operations/test_restored|tests/privacy/test_nothing_left"
)
_WAITING = re.compile(r"tests/(browser|crash|e2e|cli|leases|observability/test_processes)")
_SPREAD_OVER = 0.9
"""The part of a run that has the waiting ones: at its end no worker is left with one."""
_numbers = count(1)
S = TypeVar("S", bound=Server)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--deep",
        action="store_true",
        help="run every test on both databases, and enlarged samples of deaths and properties",
    )


def pytest_configure(config: pytest.Config) -> None:
    if (disk := memory_disk()) is not None:
        # A commit of SQLite waits 3 ms for a disk, and hardly for memory.
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(disk))
    settings.register_profile(
        "answerback",
        deadline=None,
        max_examples=1000 if config.getoption("--deep") else 50,
        print_blob=True,
        derandomize="CI" in os.environ and not config.getoption("--deep"),
    )
    settings.load_profile("answerback")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put what takes long first, so that no worker is left alone with it at the end, and what
    waits for browsers and processes between what computes, so that no core stands idle: tests are
    dealt one by one, in this order. Leave out what only `--deep` runs.

    What is about statements, leases and deaths runs on both databases all the same. Of the rest,
    which is about what people see, each test runs on one of the two, chosen by its name: a quarter
    on PostgreSQL, where a process that starts costs three times as much.
    """
    _deal(items)
    if config.getoption("--deep"):
        return
    left: list[pytest.Item] = []
    kept: list[pytest.Item] = []
    for item in items:
        without = item.get_closest_marker("deep") or _is_for_the_other_database(item)
        (left if without else kept).append(item)
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = kept


def _deal(items: list[pytest.Item]) -> None:
    long, waiting, computing = list[pytest.Item](), list[pytest.Item](), list[pytest.Item]()
    for item in items:
        if item.get_closest_marker("long"):
            long.append(item)
        else:
            (waiting if _WAITING.match(item.nodeid) else computing).append(item)
    places = [
        *((_SPREAD_OVER * n / len(waiting), item) for n, item in enumerate(waiting)),
        *((n / len(computing), item) for n, item in enumerate(computing)),
    ]
    places.sort(key=lambda place: place[0])
    items[:] = [*long, *(item for _, item in places)]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without looking for garbage: what is imported and collected stays, and looking
    through it for garbage took a fifth of that time, and of every test's some more."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def _is_for_the_other_database(item: pytest.Item) -> bool:
    name = getattr(getattr(item, "callspec", None), "params", {}).get("database_url")
    alternating = item.get_closest_marker("alternating")
    if name is None or (alternating is None and _ON_BOTH_DATABASES.search(item.nodeid)):
        return False
    both = item.nodeid.replace("postgresql", "*").replace("sqlite", "*")
    if alternating is None:
        on_postgres = zlib.crc32(both.encode()) % 4 == 0
    else:
        on_postgres = bool(alternating.args[0] % 2)
    return (name == "postgresql") is not on_postgres


@pytest.fixture(autouse=True)
def _locks_are_taken_in_order(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Hold every move that a test makes in its own process to the one order of locks."""
    monkeypatch.setattr(engine, "Tx", lock_order.WatchedTx)
    lock_order.violations.clear()
    yield
    assert lock_order.violations == []


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """This worker's PostgreSQL. A test may stop it: the next one finds it running again."""
    with _started(Postgres) as server:
        yield server


@pytest.fixture(scope="session")
def valkey() -> Iterator[Valkey]:
    """This worker's Valkey. A test may stop it: the next one finds it running again."""
    with _started(Valkey) as server:
        yield server


@pytest.fixture
def valkey_url(valkey: Valkey) -> str:
    """An empty Valkey."""
    valkey.ensure_running()
    valkey.flush()
    return valkey.url()


@pytest.fixture
def postgres_url(postgres: Postgres, postgres_template: str) -> Iterator[str]:
    """An empty database at the newest schema, of this test alone."""
    with _database(postgres, postgres_template) as url:
        yield url


@pytest.fixture
def blank_postgres_url(postgres: Postgres) -> Iterator[str]:
    """A database without our tables."""
    with _database(postgres, "template1") as url:
        yield url


@pytest.fixture
def sqlite_url(tmp_path: Path, sqlite_template: Path) -> str:
    """An empty database file at the newest schema, of this test alone."""
    shutil.copyfile(sqlite_template, tmp_path / "answerback.db")
    return f"sqlite:///{tmp_path}/answerback.db"


@pytest.fixture
def blank_sqlite_url(tmp_path: Path) -> str:
    """A database file that does not exist yet."""
    return f"sqlite:///{tmp_path}/blank.db"


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest) -> str:
    """Runs the test twice: on a file of SQLite and on PostgreSQL, both empty and migrated."""
    return _by_name(request, {"sqlite": "sqlite_url", "postgresql": "postgres_url"})


@pytest.fixture(params=["sqlite", "postgresql"])
def blank_database_url(request: pytest.FixtureRequest) -> str:
    """Runs the test twice, on databases without our tables."""
    return _by_name(request, {"sqlite": "blank_sqlite_url", "postgresql": "blank_postgres_url"})


@pytest.fixture(scope="session")
def postgres_template(postgres: Postgres) -> str:
    """The name of a migrated database that nobody connects to."""
    _upgrade(postgres.copy("template1", "migrated"))
    return "migrated"


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated file that nobody opens."""
    path = tmp_path_factory.mktemp("sqlite") / "migrated.db"
    _upgrade(f"sqlite:///{path}")
    return path


def _upgrade(url: str) -> None:
    from storage.schema.migrate import upgrade  # noqa: PLC0415 - Alembic only where a database is used

    upgrade(url)


def _by_name(request: pytest.FixtureRequest, fixtures: dict[str, str]) -> str:
    url: str = request.getfixturevalue(fixtures[request.param])
    return url


def _started(make: Callable[[], S]) -> S:
    try:
        return make()
    except ServerUnavailable as missing:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(missing))


@contextmanager
def _database(postgres: Postgres, template: str) -> Iterator[str]:
    postgres.ensure_running()
    name = f"test_{next(_numbers)}"
    yield postgres.copy(template, name)
    postgres.drop(name)


@pytest.fixture
async def world(database_url: str) -> AsyncIterator[World]:
    """The whole program between misbehaving providers, on both databases."""
    async with open_world(database_url) as world:
        yield world
