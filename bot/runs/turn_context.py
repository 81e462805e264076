"""A turn as the agent sees it, while one attempt on its run is under way."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from bot.delivery.context import WorkerContext
from bot.domain.decisions.handoff import LONGEST_REASON
from bot.domain.message import Attachment, ChannelName, clean
from bot.domain.steps import Forgotten, Step, TakesSteps
from bot.domain.turn import HistoryMessage, TurnChat, TurnMessage
from bot.observability.quoting import Spoken, spoken_in
from bot.runs.reminders import ChatReminders
from bot.runs.steps import Steps
from bot.threads import wait
from storage.inbox import StoredMessage
from storage.views.evidence import Case
from storage.views.history import ChatBefore


@dataclass(frozen=True, slots=True)
class ChannelFile:
    """An attachment that is fetched from its channel when it is read."""

    info: Attachment
    ctx: WorkerContext
    account: int
    heard: Callable[[bytes], None]

    async def read(self) -> bytes:
        content = await self.ctx.rt.channels[self.account].fetch(self.info)
        self.heard(content)
        return content


class TurnContext(TakesSteps):
    """`Turn` for one attempt on one run."""

    def __init__(self, ctx: WorkerContext, case: Case) -> None:
        self._case = case
        self._run_deadline = ctx.rt.terms.work.run_deadline
        self.handoff = case.run.handoff
        self._steps = Steps(ctx, case.run.claim, lambda: self.handoff)
        self.reminders = ChatReminders(ctx, case.run)
        channel = ctx.rt.channels[case.run.account]
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
        self._heard = Spoken()
        self.forgotten = Forgotten()
        self.messages: Sequence[TurnMessage] = tuple(
            _message(ctx, case.run.account, stored, self._heard.hear_file)
            for stored in case.messages
        )
        self._ctx = ctx
        self._history: Sequence[HistoryMessage] | None = None

    @property
    def history(self) -> Sequence[HistoryMessage]:
        if self._history is None:
            wait(self.read_history())
        assert self._history is not None
        return self._history

    async def read_history(self) -> None:
        """Read what was said before this turn. Raises DatabaseUnavailable."""
        before = ChatBefore(self.chat.id, self.run_id)
        self._history = tuple(await self._ctx.history.do(before))

    @property
    def spoken(self) -> Spoken:
        """The words that an exception of the agent may quote, as far as it has had them."""
        spoken = spoken_in(self.chat, self.messages, self._history or ())
        spoken.hear_from(self._heard)
        return spoken

    @property
    def text(self) -> str:
        return "\n".join(m.text for m in self.messages)

    @property
    def run_id(self) -> int:
        return self._case.run.id

    @property
    def request_id(self) -> str:
        return self.messages[0].request_id if self.messages else f"run-{self.run_id}"

    @property
    def attempt(self) -> int:
        return self._case.run.attempts

    @property
    def interrupted(self) -> bool:
        return self._case.run.attempts > 1

    @property
    def deadline(self) -> float:
        run = self._case.run
        return run.deadline_at or run.created_at + self._run_deadline

    def idempotency_key(self, action: str) -> str:
        return f"{self.request_id}-{self.run_id}:{action}"

    def hand_over(self, reason: str) -> None:
        self.handoff = clean(reason).strip()[:LONGEST_REASON]

    async def _take(self, step: Step) -> Any:
        result = await self._steps.take(step)
        self._heard.hear(json.dumps(result, ensure_ascii=False))
        return result


def _message(
    ctx: WorkerContext, account: int, stored: StoredMessage, heard: Callable[[bytes], None]
) -> TurnMessage:
    return TurnMessage(
        request_id=stored.request_id,
        text=stored.text,
        kind=stored.kind,
        sender_id=stored.sender_id,
        sender_name=stored.sender_name,
        sent_at=stored.at,
        attachments=tuple(ChannelFile(a, ctx, account, heard) for a in stored.attachments),
        quoted=stored.quoted,
        button=stored.button,
        edited=stored.edited,
        forwarded_from=stored.forwarded_from,
    )
