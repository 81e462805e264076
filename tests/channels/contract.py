"""The promises of every channel to the program, as tests.

A channel plugs in with a subclass named `Test...` whose fixture `subject` gives a Subject;
one with a provider behind it subclasses ProviderContract:

    class TestTerminal(ChannelContract):
        @pytest.fixture
        async def subject(self) -> Subject:
            return Subject(channel=..., to=..., payloads=..., parse=..., sent=..., shown=...)
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import pytest

from bot.domain.delivery import ChannelDown, NotSent, Outcome, Refused, Scope, Sent, Unknown
from bot.domain.message import REQUEST_ID, Edited, Event, Ignored, Inbound, clean
from bot.domain.ports import STILL_OURS, Channel, Recipient, SendRef
from bot.domain.reply import PartBody, Reply
from channels.text import is_blank
from tests.fakes.faults import Misbehaviour, answers_within


class Trouble(StrEnum):
    """A way in which a send goes wrong, as delivery tells it apart."""

    UNREACHABLE = "nobody listens"
    RATE_LIMITED = "too many messages, with a wait"
    PERSON_GONE = "the person blocked us"
    PAYLOAD = "this message is refused in any form"
    TOKEN = "the account is refused"
    NO_ANSWER = "the message is out and no answer comes"
    DISCONNECTED = "the connection breaks instead of an answer"
    SERVER_ERROR = "the provider fails inside"


Arrange = Callable[[], Awaitable[object]]


def trouble_takes(request: pytest.FixtureRequest, played: Mapping[Trouble, Misbehaviour]) -> float:
    """Seconds that the test which asks for its subject waits for the provider."""
    trouble = getattr(getattr(request.node, "callspec", None), "params", {}).get("trouble")
    return answers_within(*(fault for of, fault in played.items() if of is trouble))


@dataclass
class Subject:
    """One open channel and its surroundings.

    `payloads` are what the platform delivers, by name, and `parse` reads one; `ours` names
    those that are our own messages. `genuine` and `forged` ask the verification of a
    webhook. `arrange` makes each trouble happen to every following send. `sent` is what the
    provider was asked to send, in its own form, and `shown` how many messages the person
    sees. `limit` is how long a text part may be.
    """

    channel: Channel
    to: Recipient
    payloads: Mapping[str, object]
    parse: Callable[[object], Sequence[Event]]
    sent: Callable[[], Sequence[object]]
    shown: Callable[[], int]
    ours: Collection[str] = ()
    genuine: Callable[[], bool] = lambda: False
    forged: Mapping[str, Callable[[], bool]] = field(default_factory=dict)
    arrange: Mapping[Trouble, Arrange] = field(default_factory=dict)
    limit: int | None = None

    def parts(self, text: str) -> list[PartBody]:
        return list(self.channel.compose(Reply(text), self.to))

    async def send(self, part: PartBody, attempt: int = 1) -> Outcome:
        return await self.channel.send(self.to, part, SendRef(7, attempt, 1_800_000_000.0))


def _is_proven(trouble: Trouble, outcome: Outcome) -> bool:
    match trouble:
        case Trouble.UNREACHABLE:
            return isinstance(outcome, NotSent) and not outcome.limited
        case Trouble.RATE_LIMITED:
            return isinstance(outcome, NotSent) and bool(outcome.limited and outcome.retry_after)
        case Trouble.PERSON_GONE:
            return isinstance(outcome, Refused) and outcome.scope is Scope.CHAT
        case Trouble.PAYLOAD:
            return isinstance(outcome, Refused) and outcome.scope is Scope.PAYLOAD
        case Trouble.TOKEN:
            return isinstance(outcome, ChannelDown)
        case Trouble.NO_ANSWER | Trouble.DISCONNECTED | Trouble.SERVER_ERROR:
            return isinstance(outcome, Unknown)


def _visible(text: str) -> str:
    return "".join(c for c in text if not is_blank(c))


LONG = "\n\n".join(f"Paragraph {n}. " + f"Sentence {n} of many words. " * 40 for n in range(12))
ODD = "👨‍👩‍👧 " * 900 + "x" * 3000 + " end e\u0301"


class ChannelContract:
    """The promises of every channel. A subclass gives the fixture `subject`."""

    def test_every_payload_is_events_with_a_usable_name_and_words(self, subject: Subject) -> None:
        assert subject.payloads
        for name, payload in subject.payloads.items():
            events = subject.parse(payload)
            assert events, name
            for event in events:
                message = event.message if isinstance(event, Edited) else event
                if isinstance(message, Inbound):
                    assert REQUEST_ID.fullmatch(message.request_id), name
                    assert not is_blank(message.text), name
                    assert clean(message.text) == message.text, name
                    assert message.address.chat, name

    def test_a_payload_that_comes_again_has_the_same_name(self, subject: Subject) -> None:
        for payload in subject.payloads.values():
            assert subject.parse(payload) == subject.parse(payload)

    def test_two_messages_never_share_a_name(self, subject: Subject) -> None:
        names = [
            (event.request_id, event)
            for payload in subject.payloads.values()
            for event in subject.parse(payload)
            if isinstance(event, Inbound)
        ]
        for name, event in names:
            assert all(other.provider_id == event.provider_id for n, other in names if n == name)

    def test_our_own_messages_are_not_answered(self, subject: Subject) -> None:
        for name in subject.ours:
            for event in subject.parse(subject.payloads[name]):
                assert isinstance(event, Ignored), name

    async def test_a_message_that_was_taken_is_shown_once_and_has_a_receipt(
        self, subject: Subject
    ) -> None:
        (part,) = subject.parts("hello")
        outcome = await subject.send(part)
        assert isinstance(outcome, Sent)
        assert outcome.receipt
        assert subject.shown() == 1

    async def test_every_attempt_sends_the_same_bytes(self, subject: Subject) -> None:
        (part,) = subject.parts("**hello** _there_ `code` https://example.org")
        for attempt in (1, 2):
            await subject.send(part, attempt)
        first, second = subject.sent()
        assert first == second

    @pytest.mark.parametrize("text", [LONG, ODD], ids=["long", "odd"])
    def test_long_replies_are_cut_within_the_limit_and_lose_nothing(
        self, subject: Subject, text: str
    ) -> None:
        parts = subject.parts(text)
        assert all(part.text and not is_blank(part.text) for part in parts)
        assert "".join(_visible(part.text) for part in parts) == _visible(text)
        if subject.limit is not None:
            assert len(parts) > 1
            assert all(len(part.text) <= subject.limit for part in parts)

    @pytest.mark.parametrize("text", ["", "  \n", "\u200b\u200d\ufeff"])
    def test_what_nobody_can_see_is_not_sent(self, subject: Subject, text: str) -> None:
        assert subject.parts(text) == []

    def test_composing_is_pure(self, subject: Subject) -> None:
        assert subject.parts(LONG) == subject.parts(LONG)


class ProviderContract(ChannelContract):
    """The promises of a channel with a provider behind it: a webhook, and failures."""

    def test_only_the_platform_gets_past_the_verification(self, subject: Subject) -> None:
        assert subject.genuine()
        assert subject.forged
        for name, asked in subject.forged.items():
            assert not asked(), name

    @pytest.mark.parametrize("trouble", Trouble)
    async def test_each_failure_is_the_proof_that_it_is(
        self, subject: Subject, trouble: Trouble
    ) -> None:
        await subject.arrange[trouble]()
        (part,) = subject.parts("hello")
        outcome = await subject.send(part)
        assert _is_proven(trouble, outcome), outcome
        assert subject.shown() <= (1 if isinstance(outcome, Unknown) else 0)

    @pytest.mark.parametrize("connected", [False, True])
    async def test_a_send_whose_lease_ends_before_its_first_byte_reaches_nobody(
        self, subject: Subject, connected: bool
    ) -> None:
        (part,) = subject.parts("hello")
        if connected:
            assert isinstance(await subject.send(part), Sent)
        STILL_OURS.set(lambda: False)
        assert isinstance(await subject.send(part, attempt=2), NotSent)
        assert subject.shown() == len(subject.sent()) == int(connected)
        STILL_OURS.set(lambda: True)
        assert isinstance(await subject.send(part, attempt=3), Sent)
