"""Our numbers at Meta as a process uses them: their channels, the one path at which Meta posts and
how that is verified, their webhooks, what `doctor` asks."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from bot.domain.plugin import Endpoint, Host, NotAuthentic, Payload, Posted, Route
from channels.whatsapp_cloud.channel import WhatsAppCloudChannel
from channels.whatsapp_cloud.envelope import parse
from channels.whatsapp_cloud.examine import examine
from channels.whatsapp_cloud.settings import PATH, MetaSettings
from channels.whatsapp_cloud.webhook import NumberWebhook

SIGNATURE_HEADER = "X-Hub-Signature-256"
LARGEST = 4_000_000
"""Bytes. Meta's bodies have up to 3 MB."""


def connect(settings: MetaSettings, host: Host) -> Sequence[Endpoint]:
    """The numbers of these settings, not yet open. Meta posts for all of them at one path."""
    posts = Posts(settings)
    route = Route(PATH, posts.read, largest=LARGEST, challenge=posts.challenge)
    channels = [WhatsAppCloudChannel(settings, number, host.clock) for number in settings.numbers]
    return [
        Endpoint(
            channel,
            carrier=channel,
            routes=[] if index else [route],
            webhook=NumberWebhook(channel),
            recovered=channel.recovered,
            examine=partial(examine, channel),
        )
        for index, channel in enumerate(channels)
    ]


@dataclass(frozen=True, slots=True)
class Posts:
    """Our path, at which Meta asks and posts."""

    settings: MetaSettings

    def challenge(self, query: Mapping[str, str]) -> str:
        """The word by which Meta knows that the path is ours, for who knows our token."""
        token, ours = query.get("hub.verify_token", ""), self.settings.meta_verify_token
        if query.get("hub.mode") != "subscribe" or not ours or not _same(token, ours):
            raise NotAuthentic
        return query.get("hub.challenge", "")

    def read(self, posted: Posted) -> Sequence[Payload]:
        """All that a post tells, each message and status by itself."""
        signature = posted.headers.get(SIGNATURE_HEADER, "")
        if not signature_matches(posted.body, signature, self.settings.meta_app_secrets):
            raise NotAuthentic
        return parse(posted.body, [number.id for number in self.settings.numbers])


def signature_matches(body: bytes, signature: str, secrets: Sequence[str]) -> bool:
    """True when these very bytes were signed with one of our secrets."""
    signed = [
        f"sha256={hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()}"
        for secret in secrets
    ]
    # Each is compared, whichever fits: the time that it takes tells nothing.
    return any([_same(signature, ours) for ours in signed])  # noqa: C419 - see above


def _same(theirs: str, ours: str) -> bool:
    return hmac.compare_digest(
        theirs.encode("utf-8", "surrogatepass"), ours.encode("utf-8", "surrogatepass")
    )
