"""Known advisories of locked packages, kept in the repository: they can be asked without a network.

`known.json` has the fields of OSV that matter: ids, package, and the events between which a release
is affected; one line of ours says whether it would touch us. `make audit ARGS=--offline` asks it,
and so do the tests. How it is renewed stands in CONTRIBUTING.md.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[2]
LOCKS = (
    "requirements.lock",
    "requirements-test.lock",
    "requirements-docs.lock",
    *sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("benchmarks/peers/*.lock")),
)
_KNOWN = Path(__file__).with_name("known.json")
_PIN = re.compile(r"^([A-Za-z0-9][\w.-]*)(?:\[[^]]*\])?==([^\s;\\]+)", re.MULTILINE)
_NOTHING_YET = "0"
"""The event of OSV that stands before every release."""


@dataclass(frozen=True, slots=True)
class Affected:
    """Releases from `introduced` on: up to `fixed`, which is not among them, or through `last`, or
    without an end."""

    introduced: Version | None
    fixed: Version | None = None
    last: Version | None = None

    def has(self, release: Version) -> bool:
        """Tell whether a release is one of them."""
        return (
            (self.introduced is None or release >= self.introduced)
            and (self.fixed is None or release < self.fixed)
            and (self.last is None or release <= self.last)
        )


@dataclass(frozen=True, slots=True)
class Advisory:
    """One advisory of one package. `says` is our own word on whether it touches us."""

    id: str
    aliases: Sequence[str]
    package: str
    affected: Sequence[Affected]
    says: str

    @property
    def fixed_in(self) -> str:
        """The releases in which it is fixed, for a person."""
        ends = [str(part.fixed) for part in self.affected if part.fixed is not None]
        return " or ".join(ends) or "no release that it names"


@dataclass(frozen=True, slots=True)
class Known:
    """The list: the day on which it was renewed, the packages looked up, what was found."""

    read_on: str
    looked_up: frozenset[str]
    advisories: Sequence[Advisory]

    def of(self, pins: Mapping[str, Sequence[Version]]) -> Sequence[tuple[Advisory, Version]]:
        """The advisories that one of these releases has, by packages."""
        return [
            (advisory, release)
            for advisory in self.advisories
            for release in pins.get(advisory.package, ())
            if any(part.has(release) for part in advisory.affected)
        ]


def known(file: Path = _KNOWN) -> Known:
    """The list as it is kept. Raises ValueError for an event that OSV does not have."""
    told = json.loads(file.read_text(encoding="utf-8"))
    advisories = [
        Advisory(
            one["id"],
            one["aliases"],
            canonicalize_name(one["package"]),
            list(_affected(one["events"])),
            one["says"],
        )
        for one in told["advisories"]
    ]
    return Known(told["read_on"], frozenset(told["looked_up"]), advisories)


def _affected(events: Sequence[Mapping[str, str]]) -> Iterator[Affected]:
    """The ranges between these events, each of which begins with `introduced`."""
    begun: Version | None = None
    open_ = False
    for event in events:
        [(kind, told)] = event.items()
        match kind:
            case "introduced" if not open_:
                begun, open_ = None if told == _NOTHING_YET else Version(told), True
            case "fixed" if open_:
                yield Affected(begun, fixed=Version(told))
                open_ = False
            case "last_affected" if open_:
                yield Affected(begun, last=Version(told))
                open_ = False
            case _:
                raise ValueError(f"{event} follows nothing that it could")
    if open_:
        yield Affected(begun)


def pins(lock: str) -> Mapping[str, Sequence[Version]]:
    """The packages that a lock file names, each with its releases: it may have one for each
    Python."""
    found: dict[str, list[Version]] = {}
    for name, release in _PIN.findall(lock):
        found.setdefault(canonicalize_name(name), []).append(Version(release))
    return found
