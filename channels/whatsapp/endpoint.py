"""A sender of ours as a process uses it: its channel, the routes at which Twilio posts and how
they are verified, the webhook at Twilio, what `doctor` asks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import parse_qsl

from twilio.request_validator import (
    HMAC_SHA1,
    HMAC_SHA256,
    SIGNATURE_HEADER,
    SIGNATURE_SETTINGS_HEADER,
    RequestValidator,
    get_signature_algorithm,
)

from bot.domain.errors import ConfigurationError, RecordsUnavailable
from bot.domain.findings import Finding, fine, problem, warning
from bot.domain.message import Event, Ignored, PayloadError, shortened
from bot.domain.plugin import (
    Endpoint,
    Host,
    NotAuthentic,
    NotReadable,
    Payload,
    Posted,
    Route,
    WebhookState,
)
from channels.whatsapp import NAME
from channels.whatsapp.account import RETRIES
from channels.whatsapp.channel import WhatsAppChannel
from channels.whatsapp.parse import parse, parse_status
from channels.whatsapp.records import EARLIER
from channels.whatsapp.settings import STATUS_PATH, TwilioSettings

PATH = "/whatsapp/webhook"
FALLBACK_PATH = "/whatsapp/fallback"
_EMPTY_TWIML = '<?xml version="1.0" encoding="UTF-8"?><Response></Response>'


def connect(settings: TwilioSettings, host: Host) -> Sequence[Endpoint]:
    """The senders of these settings, not yet open."""
    base, fallback = settings.public_url, settings.twilio_fallback_url or settings.public_url
    posts = Posts(settings)
    routes = [
        _route(PATH, posts.reader(base, posts.message)),
        _route(FALLBACK_PATH, posts.reader(fallback, posts.message)),
        _route(STATUS_PATH, posts.reader(base, posts.status)),
    ]
    endpoints = list[Endpoint]()
    for address in settings.twilio_senders:
        channel = WhatsAppChannel(settings, address, host.clock)
        sender = _Sender(channel, base + PATH, fallback + FALLBACK_PATH, base + STATUS_PATH)
        endpoint = Endpoint(
            channel,
            carrier=channel,
            routes=() if endpoints else routes,
            records=channel,
            webhook=sender,
            examine=sender.examine,
        )
        endpoints.append(endpoint)
    return endpoints


def _route(path: str, read: Callable[[Posted], Sequence[Payload]]) -> Route:
    return Route(path, read, "text/xml", _EMPTY_TWIML)


@dataclass(frozen=True, slots=True)
class Posts:
    """The posts of Twilio for our senders: forms, signed for our public address."""

    settings: TwilioSettings

    def reader(
        self, public_url: str, tell: Callable[[Posted, Mapping[str, str]], Payload]
    ) -> Callable[[Posted], Sequence[Payload]]:
        """A route's `read`: the form, verified for `public_url`, as `tell` makes it out. Of a
        name that comes twice the first value counts."""

        def read(posted: Posted) -> Sequence[Payload]:
            pairs = _form(posted.body)
            url = public_url + posted.target
            if pairs is None or not signature_matches(url, pairs, posted.headers, self.settings):
                raise NotAuthentic
            return [tell(posted, dict(reversed(pairs)))]

        return read

    def message(self, posted: Posted, form: Mapping[str, str]) -> Payload:
        """A message from a person. One for a sender that is not configured names that one."""
        events: tuple[Event, ...] = ()
        reason = ""
        named, ours = form.get("To", ""), self._sender(form.get("To", ""))
        sender = named if named.startswith("whatsapp:") else ours
        try:
            events = parse(form, sender)
        except PayloadError as error:
            reason = str(error)
        from_person = not all(isinstance(event, Ignored) for event in events)
        account = sender if from_person else ours
        return Payload(posted.body.decode("ascii"), events, reason, account=account)

    def status(self, posted: Posted, form: Mapping[str, str]) -> Payload:
        """The status of a message of ours."""
        try:
            status = parse_status(form, posted.query)
        except PayloadError as error:
            raise NotReadable(str(error)) from error
        return Payload("", status=status, account=self._sender(form.get("From", "")))

    def _sender(self, named: str) -> str:
        """That of our senders which a form names, or else the first one."""
        senders = self.settings.twilio_senders
        return named if named in senders else senders[0]


def _form(body: bytes) -> list[tuple[str, str]] | None:
    """Every field as it came, blank ones included; None for what is no form."""
    try:
        return parse_qsl(
            body.decode("ascii"),
            keep_blank_values=True,
            strict_parsing=bool(body),
            errors="replace",
            max_num_fields=1000,
        )
    except ValueError:
        return None


class _Pairs(defaultdict[str, list[str]]):
    """The posted pairs as twilio's validator reads them: every value of every name."""

    def getall(self, name: str) -> list[str]:
        return self[name]


def signature_matches(
    url: str, pairs: Sequence[tuple[str, str]], headers: Mapping[str, str], settings: TwilioSettings
) -> bool:
    """True when the form was signed for `url` with a secret of ours. Never raises.

    `url` is the public one, with path and query, as it is configured at Twilio; a fragment
    is not signed. `pairs` are the posted fields as they came, blank values and repeated
    names included, before any cleaning. `headers` are read without regard to case.
    """
    named = {name.lower(): value for name, value in headers.items()}
    signature = named.get(SIGNATURE_HEADER.lower(), "")
    if not signature:
        return False
    extra = named.get(SIGNATURE_SETTINGS_HEADER.lower(), "")
    algorithm = str(get_signature_algorithm(extra)).upper()
    posted = _Pairs(list)
    for name, value in pairs:
        posted[name].append(value)

    def signed_with(secret: str) -> bool:
        validator = RequestValidator(secret)
        try:
            return bool(validator.validate(url.partition("#")[0], posted, signature, algorithm))
        except (ValueError, TypeError):
            return False

    # A shared key signs what carries the settings header; the account's tokens the rest.
    shared = settings.twilio_shared_key
    tokens = (settings.twilio_auth_token, settings.twilio_second_auth_token)
    signing = {HMAC_SHA256: (shared,), HMAC_SHA1: (*tokens, shared) if extra else tokens}
    return any(signed_with(secret) for secret in signing.get(algorithm, ()) if secret)


@dataclass(frozen=True, slots=True)
class _Sender:
    """Our sender at Twilio, and the addresses of ours that it should deliver to."""

    channel: WhatsAppChannel
    url: str
    fallback: str
    status: str

    @property
    def name(self) -> str:
        """The channel's name; of several senders, with this one's."""
        several = len(self.channel.settings.twilio_senders) > 1
        return f"{NAME} {shortened(self.channel.account)}" if several else NAME

    async def state(self) -> WebhookState:
        try:
            info = await self.channel.webhook_info()
        except ConfigurationError as error:
            return WebhookState(self.name, wanted=self.url, by_hand=str(error))
        except RecordsUnavailable as error:
            trouble, refused = str(error), error.refused
            return WebhookState(self.name, "", self.url, trouble=trouble, refused=refused)
        retried = "" if info.retried or not info.callback_url else "Twilio does not try it again"
        return WebhookState(self.name, info.callback_url.partition("#")[0], self.url, error=retried)

    async def set(self, *, drop_pending: bool) -> Sequence[str]:
        """Twilio keeps nothing that could be dropped. What its API can't set is said, to be
        entered in its console."""
        try:
            await self.channel.webhook_set(self.url, self.fallback, self.status)
        except ConfigurationError as error:
            return [
                f"{self.name}: {error}",
                f"  when a message comes in (POST): {self.url}{RETRIES}",
                f"  fallback, where there is a field (POST): {self.fallback}{RETRIES}",
                f"  status callback (POST): {self.status}{RETRIES}",
            ]
        return [f"{self.name} delivers to {self.url}, after a failure to {self.fallback}"]

    async def delete(self) -> Sequence[str]:
        try:
            await self.channel.webhook_set("")
        except ConfigurationError as error:
            return [f"{self.name}: {error}"]
        return [f"{self.name}: the sender has no webhook any more"]

    async def examine(self) -> Sequence[Finding]:
        try:
            ahead = await self.channel.clock_ahead()
        except RecordsUnavailable as error:
            fix = "copy TWILIO_ACCOUNT_SID and TWILIO_AUTH_TOKEN from Twilio's console"
            return [problem("twilio", str(error), fix)]
        found = [fine("twilio", "it takes the credentials")]
        if ahead is not None and abs(ahead) > EARLIER / 2:
            said = f"ours is {abs(ahead):.0f} s {'ahead of' if ahead > 0 else 'behind'} Twilio's"
            found.append(warning("twilio clock", said, "let the machine set its clock (NTP)"))
        elif ahead is not None:
            found.append(fine("twilio clock", f"ours differs by {abs(ahead):.0f} s"))
        if self.channel.sandbox:
            fix = "each person sends the join words; after three days again"
            found.append(warning("twilio sandbox", "only joined numbers are reached", fix))
        return found
