"""Steps: pieces of agent work whose result is kept, and returned instead of done again."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import delete, select, update

from storage.engine.clock import now
from storage.engine.insert import insert_or_skip
from storage.engine.tx import Tx
from storage.schema.tables import steps


@dataclass(frozen=True, slots=True)
class StoredStep:
    """A step as it was left. `result` is JSON, None while it is only begun; `fence` is the
    attempt that began it last."""

    safe: bool
    result: str | None
    fence: int


def find(tx: Tx, run: int, key: str) -> StoredStep | None:
    """The step under this key, or None when it was never begun."""
    row = tx.execute(
        select(steps.c.safe, steps.c.result, steps.c.fence).where(
            steps.c.run == run, steps.c.key == key
        )
    ).first()
    return None if row is None else StoredStep(row.safe, row.result, row.fence)


def begin(tx: Tx, run: int, key: str, fence: int, *, safe: bool, paid: bool) -> None:
    """Record that the step is about to happen, `paid` if it calls a model. The run is held."""
    values: dict[str, object] = {
        "run": run,
        "key": key,
        "state": "started",
        "safe": safe,
        "paid": paid,
        "fence": fence,
        "started_at": now,
    }
    tx.execute(insert_or_skip(tx, steps, values))


def begin_again(tx: Tx, run: int, key: str, fence: int) -> None:
    """started -> started: it is done once more under this fence. The run is held."""
    tx.execute(
        update(steps)
        .where(steps.c.run == run, steps.c.key == key, steps.c.state == "started")
        .values(begun=steps.c.begun + 1, fence=fence)
    )


def failed(tx: Tx, run: int, key: str) -> None:
    """The call raised: it was not cut off. The run is held."""
    tx.execute(
        update(steps)
        .where(steps.c.run == run, steps.c.key == key, steps.c.state == "started")
        .values(failed=steps.c.failed + 1)
    )


def take_back(tx: Tx, run: int, key: str) -> None:
    """started -> as if never begun. The run is held."""
    guard = (steps.c.run == run, steps.c.key == key, steps.c.state == "started")
    tx.execute(delete(steps).where(*guard))


@dataclass(frozen=True, slots=True)
class Done:
    """A step's result, as JSON, and the tokens that it cost if it called a model."""

    result: str
    input_tokens: int | None = None
    output_tokens: int | None = None


def finish(tx: Tx, run: int, key: str, done: Done) -> bool:
    """started -> done. False: it was done before. The run is held."""
    move = (
        update(steps)
        .where(steps.c.run == run, steps.c.key == key, steps.c.state == "started")
        .values(
            state="done",
            result=done.result,
            input_tokens=done.input_tokens,
            output_tokens=done.output_tokens,
            done_at=now,
        )
    )
    return tx.execute(move).rowcount == 1
