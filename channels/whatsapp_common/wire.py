"""A part as the outbox stores it, whoever carries it. Pure."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Self

from bot.domain.reply import Button


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredWire:
    """The content of one message, as JSON. `options` are the choices that were offered, each with
    the data that we want back."""

    options: tuple[Button, ...] = ()

    def dumps(self) -> str:
        stored = {name: value for name, value in asdict(self).items() if value}
        return json.dumps(stored, ensure_ascii=False, sort_keys=True)

    @classmethod
    def loads(cls, stored: str) -> Self:
        """Raises ValueError when this is not one of ours."""
        value = json.loads(stored)
        try:
            options = tuple(Button(**o) for o in value.pop("options", ()))
            return cls(**value, options=options)
        except (TypeError, AttributeError) as error:
            raise ValueError("not a stored part of this channel") from error
