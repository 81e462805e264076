"""Options that several commands take, defined once, singly or in groups."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, is_dataclass
from functools import wraps
from typing import Annotated, Any

import typer

from bot.domain.ending import Ending
from bot.domain.message import ChannelName
from bot.domain.run import RunState

TAKES_A_CHAT = {"ignore_unknown_options": True}
"""Context settings of a command that takes a chat: one of Telegram may be a negative number, which
must not be taken for an option."""

_Command = Callable[..., None]


def one_of(values: Iterable[str]) -> str:
    """The values that an option takes, for its help text, where words stay whole: in the column of
    the type they would be broken."""
    *others, last = values
    return f"{', '.join(others)} or {last}"


def number(given: str) -> int:
    """A row's number. Raises typer.BadParameter."""
    if re.fullmatch("[0-9]{1,18}", given):
        return int(given)
    raise typer.BadParameter(f"{given[:40]!r} is no number of a row")


Json = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]
Texts = Annotated[bool, typer.Option("--text", help="Show what people and the agent wrote.")]
Addresses = Annotated[bool, typer.Option("--addresses", help="Show phone numbers whole.")]
Limit = Annotated[int, typer.Option(min=1, max=10_000, help="At most so many.")]
Before = Annotated[
    int | None,
    typer.Option(parser=number, help="The next page: only ids below this one.", metavar="ID"),
]

Runs = Annotated[
    list[str] | None,
    typer.Argument(
        help="Runs, by number or request id; - reads them from standard input.", metavar="RUN..."
    ),
]
Run = Annotated[str, typer.Argument(help="A run, by number or request id.", metavar="RUN")]
Chat = Annotated[
    str,
    typer.Argument(
        help="A chat, by number or address (-1001234567890123, +1…0022).", metavar="CHAT"
    ),
]
Chats = Annotated[
    list[str],
    typer.Argument(
        help="Chats, by number or address; - reads them from standard input.", metavar="CHAT..."
    ),
]

OfChats = Annotated[
    list[str] | None, typer.Option(help="Only of this chat, by number or address.", metavar="CHAT")
]
Error = Annotated[str, typer.Option(help="Only whose detail contains this.", metavar="TEXT")]


@dataclass(frozen=True, slots=True)
class Choice:
    """A filter that chooses runs. `older` and `newer` are ages in seconds."""

    state: Annotated[
        list[RunState] | None,
        typer.Option(help=f"Only in this state: {one_of(RunState)}.", metavar="STATE"),
    ] = None
    ending: Annotated[
        list[Ending] | None,
        typer.Option(help=f"Only with this ending: {one_of(Ending)}.", metavar="ENDING"),
    ] = None
    channel: Annotated[
        ChannelName | None,
        typer.Option(parser=ChannelName, help="Only of this channel.", metavar="NAME"),
    ] = None
    chat: OfChats = None
    older: Annotated[
        float | None, typer.Option(help="Only made before so many seconds.", metavar="S")
    ] = None
    newer: Annotated[
        float | None, typer.Option(help="Only made within so many seconds.", metavar="S")
    ] = None
    error: Error = ""


@dataclass(frozen=True, slots=True)
class Acting:
    """Options of an action: the reason, the operator, a dry run, no questions, JSON."""

    reason: Annotated[str, typer.Option(help="Why; it is kept with the act.")] = ""
    who: Annotated[str, typer.Option(help="Who acts; else the user of this machine.")] = ""
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what it would do.")] = False
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask, however many they are.")] = (
        False
    )
    json: Json = False


def grouped(*, without: Collection[str] = ()) -> Callable[[_Command], _Command]:
    """Decorate a command so that each parameter that is a group (a dataclass) is replaced by
    options for its fields, except those in `without`."""

    def spread(command: _Command) -> _Command:
        shown: list[inspect.Parameter] = []
        groups: dict[str, tuple[Any, list[str]]] = {}
        for parameter in inspect.signature(command, eval_str=True).parameters.values():
            kind = parameter.annotation
            taken = [parameter]
            if isinstance(kind, type) and is_dataclass(kind):
                every = inspect.signature(kind, eval_str=True).parameters.values()
                taken = [option for option in every if option.name not in without]
                groups[parameter.name] = (kind, [option.name for option in taken])
            shown += [option.replace(kind=option.KEYWORD_ONLY) for option in taken]

        @wraps(command)
        def called(**given: Any) -> None:
            for name, (kind, names) in groups.items():
                given[name] = kind(**{option: given.pop(option) for option in names})
            command(**given)

        called.__annotations__ = {p.name: p.annotation for p in shown}
        called.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
        return called

    return spread
