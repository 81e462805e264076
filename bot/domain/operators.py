"""Operators who may sign in to the operator's page, as the settings name them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

SHORTEST = 12
"""Characters of a password that is written down as it is."""
ALONE = "operator"
"""The name of the one who has OPERATOR_PASSWORD."""
HASHES = ("$argon2id$", "argon2id.")
"""The beginnings of a hash: in its usual form, and in the one that no shell and no list reads."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")


class Role(StrEnum):
    """The rights of an operator; each has those of the one before."""

    READING = "reading"
    ACTING = "acting"

    def may(self, needed: Role) -> bool:
        """Tell whether this role is enough for what needs the other."""
        return self is Role.ACTING or needed is Role.READING


@dataclass(frozen=True, slots=True)
class OperatorAccount:
    """Somebody who may sign in. `credential` is the password, a token or a hash of either."""

    name: str
    role: Role
    credential: str = field(repr=False)

    @property
    def is_hashed(self) -> bool:
        """Tell whether the settings hold no password, only its hash."""
        return self.credential.startswith(HASHES)


def operators_of(password: str, users: Sequence[str]) -> Sequence[OperatorAccount]:
    """The operators of the settings: who has the one password, and those of the list, each
    `name:role:credential`. Raises ValueError."""
    found = [OperatorAccount(ALONE, Role.ACTING, _credential(password))] if password else []
    for entry in users:
        name, _, rest = entry.partition(":")
        role, _, credential = rest.partition(":")
        if not _NAME.fullmatch(name):
            raise ValueError("needs entries like ada:acting:SECRET; a name has A-Z a-z 0-9 . _ -")
        if role not in list(Role):
            raise ValueError("has an entry without a role: write ada:reading:... or ada:acting:...")
        found.append(OperatorAccount(name, Role(role), _credential(credential)))
    names = [one.name.casefold() for one in found]
    if len(set(names)) < len(names):
        raise ValueError("names somebody twice")
    return found


def _credential(said: str) -> str:
    if said.startswith(HASHES):
        if said.replace(".", "$").count("$") < len(["id", "v", "m", "salt", "hash"]) - 1:
            raise ValueError(
                "holds a hash that was cut short: `answerback operator hash` makes one"
            )
        return said
    if len(said) < SHORTEST:
        raise ValueError(
            f"needs a password of {SHORTEST} characters or more, or its hash from "
            "`answerback operator hash`"
        )
    return said
