"""A turn as the agent sees it, and the steps whose results outlive a crash."""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from bot.domain.errors import StepInterrupted, StepResultInvalid
from bot.domain.message import Attachment, ChannelName
from bot.domain.run import Grip
from bot.domain.turn import HistoryMessage, TurnChat, TurnMessage
from bot.flows.checkpoints import Checkpoint
from bot.flows.desk import Desk
from bot.flows.evidence import Case
from storage import runs, steps
from storage.tx import Tx

MAX_RESULT = 256 * 1024
"""Bytes of JSON that a step may return."""
_LONGEST_KEY = 200


@dataclass(frozen=True, slots=True)
class ChannelFile:
    """An attachment that is fetched from its channel when it is read."""

    info: Attachment
    desk: Desk
    account: int

    async def read(self) -> bytes:
        return await self.desk.rt.channels[self.account].fetch(self.info)


class LiveTurn:
    """`Turn` for one attempt on one run."""

    def __init__(self, desk: Desk, case: Case) -> None:
        self._desk = desk
        self._case = case
        self._grip: Grip = case.run.grip
        channel = desk.rt.channels[case.run.account]
        chat = case.chat
        self.chat = TurnChat(
            id=chat.id,
            channel=ChannelName(channel.name),
            address=chat.address.chat,
            topic=chat.address.topic,
            kind=chat.kind,
            name=chat.name,
            language=chat.language,
        )
        self.messages: Sequence[TurnMessage] = tuple(
            TurnMessage(
                request_id=m.request_id,
                text=m.text,
                kind=m.kind,
                sender_id=m.sender_id,
                sender_name=m.sender_name,
                sent_at=m.at,
                attachments=tuple(ChannelFile(a, desk, case.run.account) for a in m.attachments),
                quoted=m.quoted,
                button=m.button,
                edited=m.edited,
            )
            for m in case.messages
        )
        self.history: Sequence[HistoryMessage] = tuple(
            HistoryMessage(role, text, at) for role, text, at in case.history
        )

    @property
    def text(self) -> str:
        return "\n".join(m.text for m in self.messages)

    @property
    def run_id(self) -> int:
        return self._grip.run

    @property
    def request_id(self) -> str:
        return self.messages[0].request_id if self.messages else f"run-{self._grip.run}"

    @property
    def attempt(self) -> int:
        return self._case.run.attempts

    @property
    def interrupted(self) -> bool:
        return self._case.run.attempts > 1

    @property
    def deadline(self) -> float:
        run = self._case.run
        return run.deadline_at or run.created_at + self._desk.rt.terms.work.run_deadline

    def idempotency_key(self, action: str) -> str:
        return f"run-{self._grip.run}:{action}"

    async def step(
        self, key: str, call: Callable[[], Awaitable[Any] | Any], *, safe_to_repeat: bool = False
    ) -> Any:
        if not key or len(key) > _LONGEST_KEY:
            raise StepResultInvalid(f"a step's key has 1 to {_LONGEST_KEY} characters")
        found = await self._desk.persist(_begin, self._grip, key, safe=safe_to_repeat)
        if found is not None and found.result is not None:
            return json.loads(found.result)
        if found is not None and not (found.safe and safe_to_repeat):
            raise StepInterrupted(key)
        await self._desk.rt.reached(Checkpoint.STEP_BEGUN)
        value = call()
        if inspect.isawaitable(value):
            value = await value
        await self._desk.rt.reached(Checkpoint.STEP_CALLED)
        result = _as_json(key, value)
        await self._desk.persist(_finish, self._grip, key, result)
        await self._desk.rt.reached(Checkpoint.STEP_STORED)
        return json.loads(result)


def _as_json(key: str, value: object) -> str:
    try:
        result = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise StepResultInvalid(
            f"step {key!r} returned {type(value).__name__}, which is not JSON: {error}"
        ) from error
    if len(result.encode()) > MAX_RESULT:
        raise StepResultInvalid(
            f"step {key!r} returned {len(result)} characters of JSON; the bound is "
            f"{MAX_RESULT} bytes: return a reference to it instead"
        )
    return result


def _begin(tx: Tx, grip: Grip, key: str, *, safe: bool) -> steps.StoredStep | None:
    """The step as an earlier attempt left it; None when it begins now. Raises StaleLease."""
    runs.hold(tx, grip)
    found = steps.find(tx, grip.run, key)
    if found is None:
        steps.begin(tx, grip.run, key, grip.fence, safe=safe)
    return found


def _finish(tx: Tx, grip: Grip, key: str, result: str) -> None:
    runs.hold(tx, grip)
    if steps.finish(tx, grip.run, key, result):
        runs.progress(tx, grip)
