"""Commands: messages to the bot itself rather than to the agent.

Telegram marks commands itself (a `bot_command` entity; the channel hands over the bare
name). WhatsApp has none, so there a command is a whole message that is exactly one of the
words that `bot.texts` lists for the languages, or the slash form of a command. The terminal
takes both, without the carrier words.

Two kinds of "stop" must not be mixed up:

* "/stop" and the stop words of the languages ("cancel", "abbrechen", ...) withdraw what
  waits or runs in the chat. The next message is answered as usual.
* The bare carrier words (STOP, UNSUBSCRIBE, END, ...) are WhatsApp's and the carriers' way
  of saying "never write to me again": an opt-out, which is kept, and which withdraws too.
  START or UNSTOP ends it. They are the same in every language and hold even when the
  operator turned the words off. A carrier also counts CANCEL among them; here it is the
  English stop word, because somebody who cancels one answer does not ask for silence.

A word is a weaker sign than a command: "cancel" may be the answer to the agent's own
question. `needs_subject()` names the commands that, given as a word, count only while there
is something that they could act on; else the message goes to the agent like any other.

What is never a command: an edit, a forwarded message, a message of another bot, a message
in a group that does not concern us, words under a picture, and a start that carries the
payload of a link: only the agent knows what that means.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from enum import Enum, StrEnum
from typing import assert_never

from bot.domain.message import Addressing, Edited, Inbound, InboundKind


class CommandForm(Enum):
    """The form in which commands are told from words on a platform."""

    MARKED = "the platform marks them"
    WORDS = "whole messages that are a word or a slash form, and the carriers' words"
    TYPED = "whole messages that are a word or a slash form"


class Command(StrEnum):
    """A person's request to the bot itself.

    All but `opt_out` and `opt_in` have a slash form; those exist on WhatsApp only, and an `opt_in`
    in a chat that never opted out is a `start`. `resend` asks for an answer whose delivery was
    uncertain (Telegram: a button instead).
    """

    START = "start"
    HELP = "help"
    STOP = "stop"
    STATUS = "status"
    RETRY = "retry"
    RESEND = "resend"
    OPT_OUT = "opt_out"
    OPT_IN = "opt_in"
    EXPORT = "export"
    FORGET = "forget"


class DataRequestState(StrEnum):
    """The state of a person's wish about their own data."""

    ASKED = "asked"
    """Said once: it is asked back."""
    CONFIRMED = "confirmed"
    """Said twice: a process does it, the person is told."""
    DONE = "done"


SLASH = (Command.START, Command.HELP, Command.STATUS, Command.STOP, Command.RETRY)
"""The commands of a menu, in its order."""
DATA = (Command.EXPORT, Command.FORGET)
"""The commands about a person's own data, behind those of a menu; DATA_COMMANDS turns them off."""

_CARRIER_STOPS = "stop|stopall|stop all|unsubscribe|end|quit|revoke|optout|opt out|opt-out"
CARRIER_WORDS: Mapping[str, Command] = {
    **dict.fromkeys(_CARRIER_STOPS.split("|"), Command.OPT_OUT),
    **dict.fromkeys(("start", "unstop"), Command.OPT_IN),
}
"""Source: Twilio's default opt-out keywords, without CANCEL (see above) and YES (an answer)."""

_CARRIER_SAYS = {"STOP": Command.OPT_OUT, "START": Command.OPT_IN}
"""The carrier's own reading of a message, by words that were set up there."""

LONGEST_WORD = 60
"""Characters; a longer message is read by the agent without a look at the words."""

_BY_SLASH = {f"/{command}": command for command in (*SLASH, *DATA, Command.RESEND)}
_SUBJECT = frozenset({Command.STOP, Command.RETRY, Command.RESEND})
_NOT_FOR_US = frozenset({Addressing.NOT_US, Addressing.OTHER_BOT})
_ACCENTS = re.compile("[\u0300-\u036f\u064b-\u0655]")


def command_of(
    event: Inbound | Edited, form: CommandForm, words: Mapping[str, Command]
) -> Command | None:
    """The command that this message is, or None.

    `words` maps folded phrases to commands (`Words.command_words()`). An empty mapping
    leaves WORDS with the slash forms and the carrier words.
    """
    if isinstance(event, Edited) or event.forwarded_from or event.sender.is_bot:
        return None
    if event.addressing in _NOT_FOR_US:
        return None
    match form:
        case CommandForm.MARKED:
            if event.kind is not InboundKind.TEXT or _opens(event):
                return None
            return _BY_SLASH.get(f"/{event.command}")
        case CommandForm.WORDS:
            return _by_words(event, words)
        case CommandForm.TYPED if len(event.text) > LONGEST_WORD:
            return None
        case CommandForm.TYPED:
            return _BY_SLASH.get(event.text.strip().casefold()) or words.get(fold(event.text))
        case other:
            assert_never(other)


def _opens(message: Inbound) -> bool:
    """A start with the payload of the link that led here: it is for the agent."""
    return message.command == Command.START and bool(message.command_args)


def needs_subject(command: Command, message: Inbound) -> bool:
    """Tell whether this command is an ordinary message when there is nothing that it could act on.

    True for the stop, retry and resend words of WhatsApp; a slash command never is one."""
    slash = bool(message.command) or message.text.lstrip().startswith("/")
    return command in _SUBJECT and not slash


def fold(text: str) -> str:
    """A phrase as it is compared: without case, accents, outer punctuation, invisible marks."""
    plain = _ACCENTS.sub("", unicodedata.normalize("NFKD", text)).casefold()
    plain = unicodedata.normalize("NFC", plain)
    plain = " ".join("".join(c for c in plain if unicodedata.category(c) != "Cf").split())
    outer = (c for c in plain if c.isspace() or unicodedata.category(c).startswith("P"))
    return plain.strip("".join(outer))


def _by_words(message: Inbound, words: Mapping[str, Command]) -> Command | None:
    if told := _CARRIER_SAYS.get(message.extra.get("opt_out_type", "")):
        return told
    if message.kind not in (InboundKind.TEXT, InboundKind.BUTTON):
        return None
    said = message.extra.get("typed", message.text)
    if len(said) > LONGEST_WORD:
        return None
    typed = message.kind is InboundKind.TEXT
    if said.lstrip().startswith("/"):
        return _BY_SLASH.get(said.strip().casefold()) if typed else None
    phrase = fold(said)
    if carrier := CARRIER_WORDS.get(phrase):
        return carrier
    return words.get(phrase) if typed else None
