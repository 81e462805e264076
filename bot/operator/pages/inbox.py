"""The inbox: chats that want a person, and those heard last. It shows none of people's words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp

from bot.domain.concern import Concern
from bot.operations.inbox import Cursor, Wanting, heard_page, inbox_page
from bot.operations.reports.seen import Seen, look
from bot.operations.reports.shortening import shortened_in
from bot.operator.live import Pieces
from bot.operator.view import Asked, View, number_told
from storage.statements.tx import Tx
from storage.views.concerns import COUNTED, Mark

PATH = "/chats"
_AT_ONCE = 25
_EVERY = 3.0
"""Seconds between two looks at the rows: more than for a chat that somebody is answering."""


@dataclass(frozen=True, slots=True)
class Wish:
    """The part of the inbox that is asked for: chats that want a person, with `only` those of this
    reason; or with `heard` all chats. A further page of the former begins at `after`, of the latter
    at `before`."""

    only: Concern | None = None
    after: Cursor | None = None
    heard: bool = False
    before: int | None = None

    @property
    def query(self) -> Mapping[str, object]:
        """The wish as the query of an address."""
        return {
            "reason": "" if self.only is None else self.only.value,
            "after": "" if self.after is None else _told(self.after),
            "all": "1" if self.heard else "",
            "before": self.before,
        }


@dataclass(frozen=True, slots=True)
class Listed:
    """A page of the inbox as it is shown. `more` is the wish for the next one."""

    seen: Seen
    wanting: Sequence[Wanting]
    heard: Sequence[Wanting]
    counts: Mapping[Concern, int]
    more: Wish | None


def listed(tx: Tx, wish: Wish) -> Listed:
    """The chats of a wish. The last of those that want a person are followed by those heard
    last."""
    if wish.heard:
        late = heard_page(tx, wish.before, _AT_ONCE)
        more = None if late.more is None else Wish(heard=True, before=late.more)
        return Listed(look(tx), (), _shown(late.chats), {}, more)
    page = inbox_page(tx, wish.only, wish.after, _AT_ONCE)
    if page.more is not None or wish.only is not None:
        more = None if page.more is None else replace(wish, after=page.more)
        return Listed(look(tx), _shown(page.chats), (), page.counts, more)
    wanted = {one.line.id for one in page.chats}
    late = heard_page(tx, None, _AT_ONCE)
    others = [one for one in late.chats if one.line.id not in wanted and not one.concerns]
    more = None if late.more is None else Wish(heard=True, before=late.more)
    return Listed(look(tx), _shown(page.chats), _shown(others), page.counts, more)


def _shown(found: Sequence[Wanting]) -> Sequence[Wanting]:
    return [replace(one, line=shortened_in(one.line)) for one in found]


def _wish(asked: Asked) -> Wish:
    """The wish in the request's query. Raises HTTPException."""
    only, after, before = asked.given("reason"), asked.given("after"), asked.given("before")
    try:
        return Wish(
            only=Concern(only) if only else None,
            after=_cursor(after) if after else None,
            heard="all" in asked.request.query_params,
            before=number_told(before) if before else None,
        )
    except ValueError:
        raise HTTPException(404, "there is no such page of the inbox") from None


def _told(cursor: Cursor) -> str:
    return f"{cursor.concern.value}-{cursor.mark.at!r}-{cursor.mark.chat}"


def _cursor(told: str) -> Cursor:
    """The cursor that `_told` wrote. Raises ValueError."""
    concern, at, chat = told.split("-", 2)
    return Cursor(Concern(concern), Mark(float(at), number_told(chat)))


def _values(found: Listed, wish: Wish) -> dict[str, object]:
    return {"found": found, "wish": wish, "concerns": list(Concern), "most": COUNTED}


async def inbox(asked: Asked) -> Response:
    """The page."""
    wish = _wish(asked)
    return asked.page("inbox.html", 200, **_values(await asked.read(listed, wish), wish))


async def follow(asked: Asked) -> ASGIApp:
    """The page's live parts."""
    wish = _wish(asked)

    async def pieces() -> Pieces:
        values = _values(await asked.read(listed, wish), wish)
        return {
            "chats": asked.piece("inbox_chats.html", **values),
            "filters": asked.piece("inbox_filters.html", **values),
        }

    return asked.follow(pieces, _EVERY, shared=True)


VIEWS = (View(PATH, inbox), View("/live/inbox", follow))
