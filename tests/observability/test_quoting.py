"""A text passes only where no word of the turn is found in it, however it was written down."""

from __future__ import annotations

import base64
import html
import json
import quopri
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest

from bot.domain.message import Attachment, ChannelName, ChatKind, InboundKind, Quoted
from bot.domain.turn import HistoryMessage, TurnChat, TurnMessage
from bot.observability.quoting import Spoken, spoken_in
from tests.agents.turns import FakeFile

CHAT = TurnChat(
    7,
    ChannelName("whatsapp"),
    "whatsapp:+15550104477",
    "Pelicans",
    ChatKind.GROUP,
    "Reef Club",
    "en",
)
MESSAGE = TurnMessage(
    "r-1",
    "Please cancel my appointment with Dr. Müller 🩺, naïve приёмная 予約の変更",
    InboundKind.TEXT,
    "880011223",
    "Zoë Okonkwo",
    0.0,
    attachments=(FakeFile(Attachment("document", "id-90417", name="x-ray_ankle.pdf")),),
    quoted=Quoted("wamid.HBgLMTU1", "the invoice is overdue"),
    button="choice:tuesday",
    forwarded_from="Uncle Bartholomew",
)
HISTORY = (HistoryMessage("user", "I am allergic to penicillin", 0.0, "Quentin"),)
SAID = (
    "appointment",
    "Müller",
    "🩺",
    "приёмная",
    "予約",
    "Okonkwo",
    "880011223",
    "+1 555 010 4477",
    "x-ray_ankle.pdf",
    "invoice",
    "tuesday",
    "Bartholomew",
    "penicillin",
    "Quentin",
    "Reef",
    "Pelicans",
    "wamid.HBgLMTU1",
    "90417",
)
WRITTEN: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "capitals": str.upper,
    "small": str.lower,
    "swapped": str.swapcase,
    "repr": repr,
    "ascii": ascii,
    "ascii twice": lambda said: ascii(ascii(said)),
    "bytes": lambda said: repr(said.encode()),
    "json": json.dumps,
    "json in json": lambda said: json.dumps(json.dumps({"said": said})),
    "url": quote,
    "form": quote_plus,
    "url in a url": lambda said: quote(quote(said)),
    "every byte of a url": lambda said: "".join(f"%{byte:02x}" for byte in said.encode()),
    "html": lambda said: "".join(f"&#{ord(c)};" for c in said),
    "html names": html.escape,
    "base64": lambda said: base64.b64encode(f"they said {said}".encode()).decode(),
    "url-safe base64": lambda said: base64.urlsafe_b64encode(said.encode()).decode().rstrip("="),
    "hex": lambda said: said.encode().hex(),
    "quoted printable": lambda said: quopri.encodestring(said.encode()).decode(),
    "within a word": lambda said: f"key_{said}_1",
    "glued to others": lambda said: f"order{said}s",
    "with a zero width space": "\u200b".join,
    "full width": lambda said: "".join(
        chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in said
    ),
    "a line each": lambda said: f"Traceback:\n{said}\nend",
}


@pytest.fixture(scope="module")
def spoken() -> Spoken:
    return spoken_in(CHAT, [MESSAGE], HISTORY)


@pytest.mark.parametrize("way", WRITTEN)
def test_a_word_of_the_turn_is_found_however_it_is_written(spoken: Spoken, way: str) -> None:
    write = WRITTEN[way]
    passed = [said for said in SAID if not spoken.quoted_in(f"can't use {write(said)} here")]
    assert passed == []


@pytest.mark.parametrize("piece", ["appoint", "ointm", "Okonk", "011223", "penicil", "約の"])
def test_a_piece_of_a_word_is_found(spoken: Spoken, piece: str) -> None:
    assert spoken.quoted_in(f"no result for {piece!r}...")


@pytest.mark.parametrize("piece", ["Muller", "naive", "zoe"])
def test_accents_hide_nothing(spoken: Spoken, piece: str) -> None:
    assert spoken.quoted_in(f"unknown: {piece}")


def test_a_phrase_of_common_words_is_found_and_each_of_them_alone_is_not() -> None:
    spoken = Spoken(["what is it that you can do for me"])
    assert spoken.quoted_in("unparsed: 'is it that'")
    assert not spoken.quoted_in("the server is down, you can retry it")


@pytest.mark.parametrize("said", ["ok", "5", "да", "🍕", "いい", "x"])
def test_what_is_short_is_found_as_a_word(said: str) -> None:
    spoken = Spoken([said])
    assert spoken.quoted_in(f"KeyError: {said!r}")
    assert not spoken.quoted_in("KeyError: 'token'")


@pytest.mark.parametrize(
    "told",
    [
        "division by zero",
        "'NoneType' object has no attribute 'json'",
        "HTTP 503 from https://shop.example/v2/orders",
        "list index out of range",
        "[Errno 32] Broken pipe",
        "",
    ],
)
def test_an_errors_own_words_pass(spoken: Spoken, told: str) -> None:
    assert not spoken.quoted_in(told)


def test_nothing_quotes_a_turn_without_words() -> None:
    assert not Spoken().quoted_in("division by zero")
    assert not Spoken(["", "  ", "?!"]).quoted_in("division by zero")


def test_words_of_a_file_are_found_and_beside_a_file_that_is_no_text_nothing_passes() -> None:
    spoken = Spoken()
    spoken.hear_file(b"name;city\nHildegard;Ulm")
    assert spoken.quoted_in("row 2: no such customer: hildegard")
    assert not spoken.quoted_in("division by zero")
    spoken.hear_file(b"\x89PNG\r\n\x1a\n")
    assert spoken.quoted_in("division by zero")


def test_what_is_too_long_to_compare_counts_as_a_quotation() -> None:
    assert Spoken(["hello"]).quoted_in("zero " * 1_000)
    assert Spoken(["hello " * 100_000]).quoted_in("division by zero")
    joined = Spoken()
    joined.hear_from(Spoken(["hello " * 100_000]))
    assert joined.quoted_in("division by zero")
