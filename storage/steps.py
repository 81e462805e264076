"""Steps: pieces of agent work whose result is kept, and returned instead of done again."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa

from storage.schema.tables import steps
from storage.statements.binds import RUN_ID
from storage.statements.chat_rows import Blank
from storage.statements.clock import now
from storage.statements.entity import Entity
from storage.statements.insert import InsertOrSkip
from storage.statements.tx import Tx


@dataclass(frozen=True, slots=True)
class StoredStep:
    """A step as it was left. `result` is JSON, None while it is only begun; `fence` is the
    attempt that began it last."""

    safe: bool
    result: str | None
    fence: int


@dataclass(frozen=True, slots=True)
class Done:
    """A step's result, as JSON, and the tokens that it cost if it called a model."""

    result: str
    input_tokens: int | None = None
    output_tokens: int | None = None


_STEP = Entity(StoredStep, steps)
_IS_STEP = sa.and_(steps.c.run == RUN_ID, steps.c.key == sa.bindparam("step_key"))
_STARTED = sa.and_(_IS_STEP, steps.c.state == sa.literal_column("'started'"))
_FIND = sa.select(*_STEP.columns).where(_IS_STEP)
_BEGIN = InsertOrSkip(steps, steps.c.run, started_at=now)
_BEGIN_AGAIN = (
    sa.update(steps)
    .where(_STARTED)
    .values(begun=steps.c.begun + 1, fence=sa.bindparam("new_fence"))
)
_FAILED = sa.update(steps).where(_STARTED).values(failed=steps.c.failed + 1)
_TAKE_BACK = sa.delete(steps).where(_STARTED)
_FINISH = (
    sa.update(steps)
    .where(_STARTED)
    .values(
        state="done",
        result=sa.bindparam("new_result"),
        input_tokens=sa.bindparam("tokens_in"),
        output_tokens=sa.bindparam("tokens_out"),
        done_at=now,
    )
)


def find(tx: Tx, run: int, key: str) -> StoredStep | None:
    """The step under this key, or None when it was never begun."""
    return _STEP.first(tx.execute(_FIND, {"run_id": run, "step_key": key}))


def begin(tx: Tx, run: int, key: str, fence: int, *, safe: bool, paid: bool) -> None:
    """Record that the step is about to happen, `paid` if it calls a model. The run is held."""
    values = {"run": run, "key": key, "fence": fence, "safe": safe, "paid": paid}
    _BEGIN.run(tx, values | {"state": "started"})


def begin_again(tx: Tx, run: int, key: str, fence: int) -> None:
    """started -> started: it is done once more under this fence. The run is held."""
    tx.execute(_BEGIN_AGAIN, {"run_id": run, "step_key": key, "new_fence": fence})


def failed(tx: Tx, run: int, key: str) -> None:
    """The call raised: it was not cut off. The run is held."""
    tx.execute(_FAILED, {"run_id": run, "step_key": key})


def take_back(tx: Tx, run: int, key: str) -> None:
    """started -> as if never begun. The run is held."""
    tx.execute(_TAKE_BACK, {"run_id": run, "step_key": key})


def finish(tx: Tx, run: int, key: str, done: Done) -> bool:
    """started -> done. False: it was done before. The run is held."""
    values = {
        "run_id": run,
        "step_key": key,
        "new_result": done.result,
        "tokens_in": done.input_tokens,
        "tokens_out": done.output_tokens,
    }
    return tx.execute(_FINISH, values).rowcount == 1


blank = Blank(steps, steps.c.run)
