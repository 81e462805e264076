"""Options that several commands take, spelled once."""

from __future__ import annotations

from typing import Annotated

import typer

from bot.domain.delivery import PartState
from bot.domain.ending import Ending
from bot.domain.message import ChannelName
from bot.domain.run import RunState

TAKES_A_CHAT = {"ignore_unknown_options": True}
"""A chat of Telegram may be a negative number, which must not be taken for an option."""

Json = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]
Texts = Annotated[bool, typer.Option("--text", help="Show what people and the agent wrote.")]
Limit = Annotated[int, typer.Option(min=1, max=10_000, help="At most so many.")]
Before = Annotated[
    int | None, typer.Option(help="The next page: only ids below this one.", metavar="ID")
]

Who = Annotated[str, typer.Option(help="Who acts; else the user of this machine.")]
Reason = Annotated[str, typer.Option(help="Why; it is kept with the act.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what it would do.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask, however many they are.")]
MayDuplicate = Annotated[
    bool,
    typer.Option("--may-duplicate", help="Send although the person may have it already."),
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
    typer.Argument(help="A chat, by number or address (-1001234567890123).", metavar="CHAT"),
]
Chats = Annotated[
    list[str],
    typer.Argument(
        help="Chats, by number or address; - reads them from standard input.", metavar="CHAT..."
    ),
]

States = Annotated[list[RunState] | None, typer.Option("--state", help="Only in this state.")]
Endings = Annotated[list[Ending] | None, typer.Option("--ending", help="Only with this ending.")]
OfChannel = Annotated[
    ChannelName | None,
    typer.Option("--channel", parser=ChannelName, help="Only of this channel.", metavar="NAME"),
]
OfChats = Annotated[
    list[str] | None,
    typer.Option("--chat", help="Only of this chat, by number or address.", metavar="CHAT"),
]
Older = Annotated[
    float | None, typer.Option("--older", help="Only made before so many seconds.", metavar="S")
]
Newer = Annotated[
    float | None, typer.Option("--newer", help="Only made within so many seconds.", metavar="S")
]
Error = Annotated[str, typer.Option("--error", help="Only whose detail contains this.")]
PartStates = Annotated[list[PartState] | None, typer.Option("--state", help="Only in this state.")]
