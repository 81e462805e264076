"""Whether a webhook was signed by Twilio for us."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from twilio.request_validator import (
    HMAC_SHA1,
    HMAC_SHA256,
    SIGNATURE_HEADER,
    SIGNATURE_SETTINGS_HEADER,
    RequestValidator,
    get_signature_algorithm,
)

from channels.whatsapp.config import TwilioConfig


class _Posted:
    """The posted pairs as twilio's validator reads them: every value of every name."""

    def __init__(self, pairs: Sequence[tuple[str, str]]) -> None:
        self._values: dict[str, list[str]] = {}
        for name, value in pairs:
            self._values.setdefault(name, []).append(value)

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def getall(self, name: str) -> list[str]:
        return self._values[name]


def signature_matches(
    url: str, pairs: Sequence[tuple[str, str]], headers: Mapping[str, str], config: TwilioConfig
) -> bool:
    """Whether the form was signed for `url` with a secret of ours. Never raises.

    `url` is the public one, with path and query, as it is configured at Twilio; a fragment
    is not signed. `pairs` are the posted fields as they came, blank values and repeated
    names included, before any cleaning. `headers` are read without regard to case.
    """
    named = {name.lower(): value for name, value in headers.items()}
    signature = named.get(SIGNATURE_HEADER.lower(), "")
    if not signature:
        return False
    settings = named.get(SIGNATURE_SETTINGS_HEADER.lower(), "")
    algorithm = str(get_signature_algorithm(settings)).upper()
    posted = _Posted(pairs)
    return any(
        _signed(secret, url.partition("#")[0], posted, signature, algorithm)
        for secret in _secrets(config, algorithm, settings)
        if secret
    )


def _secrets(config: TwilioConfig, algorithm: str, settings: str) -> tuple[str, ...]:
    """A shared key signs what carries the settings header; the account's tokens the rest."""
    if algorithm == HMAC_SHA256:
        return (config.shared_key,)
    if algorithm != HMAC_SHA1:
        return ()
    tokens = (config.auth_token, config.second_auth_token)
    return (*tokens, config.shared_key) if settings else tokens


def _signed(secret: str, url: str, posted: _Posted, signature: str, algorithm: str) -> bool:
    try:
        return bool(RequestValidator(secret).validate(url, posted, signature, algorithm))
    except (ValueError, TypeError):
        return False
