"""Media of messages: behind Basic auth on the API host, behind a redirect on another one."""

from __future__ import annotations

from collections import Counter

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tests.fakes.recording import Json, Record
from tests.fakes.server import Listener
from tests.fakes.twilio.book import Media, Message, rfc2822


class MediaHost:
    """The host that the API redirects to. It needs no credentials, and seeing some is a
    violation: they belong to the API host alone. `lag` fetches of each file give 404 first."""

    def __init__(self, record: Record) -> None:
        self.lag = 0
        self.listener = Listener(Starlette(routes=[Route("/{sid}", self._give)]))
        self._record = record
        self._files: dict[str, Media] = {}
        self._asked: Counter[str] = Counter()

    def location(self, media: Media) -> str | None:
        """The address of the file; None while it is not there yet."""
        self._asked[media.sid] += 1
        if self._asked[media.sid] <= self.lag:
            return None
        self._files[media.sid] = media
        return f"{self.listener.url}/{media.sid}"

    async def _give(self, request: Request) -> Response:
        if "authorization" in request.headers:
            self._record.violate("media host: credentials were sent along with a redirect")
        media = self._files.get(request.path_params["sid"])
        if media is None:
            return Response("<Error><Code>NoSuchKey</Code></Error>", 404, media_type="text/xml")
        return Response(media.data, media_type=media.content_type)


def media_json(message: Message, media: Media) -> Json:
    """A Media resource."""
    created = rfc2822(message.created_at)
    return {
        "account_sid": message.account,
        "content_type": media.content_type,
        "date_created": created,
        "date_updated": created,
        "parent_sid": message.sid,
        "sid": media.sid,
        "uri": f"{message.uri}/Media/{media.sid}.json",
    }
