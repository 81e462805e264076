"""One part as it is stored and sent: the outbox keeps it as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field


@dataclass(frozen=True, slots=True)
class Option:
    """A choice that was offered: what the person sees, and what we want back."""

    label: str
    data: str


@dataclass(frozen=True, slots=True)
class Wire:
    """What one create carries.

    `fallback` is sent instead when Twilio refuses the file or the content. With `content`
    (an `HX...` template) `body` is only what the person will read, where that is known.
    """

    body: str = ""
    media: str = ""
    fallback: str = ""
    content: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)
    options: tuple[Option, ...] = ()

    def dumps(self) -> str:
        stored = {name: value for name, value in asdict(self).items() if value}
        return json.dumps(stored, ensure_ascii=False, sort_keys=True)

    @classmethod
    def loads(cls, stored: str) -> Wire:
        """Raises ValueError when this is not one of ours."""
        value = json.loads(stored)
        try:
            options = tuple(Option(**o) for o in value.pop("options", ()))
            return cls(**value, options=options)
        except (TypeError, AttributeError) as error:
            raise ValueError("not a stored part of this channel") from error
