"""Every container that a process of ours keeps, with its length, by the path that leads to it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator, Mapping

_OURS = ("bot.", "channels.", "storage.")
_CONTAINERS = (dict, list, set, deque)


def lengths(root: object) -> dict[str, int]:
    """The lengths of dicts, lists, sets, deques and queues that are reachable from `root`
    through objects of ours."""
    found: dict[str, int] = {}
    seen: set[int] = set()
    left: list[tuple[str, object]] = [(type(root).__name__, root)]
    while left:
        path, thing = left.pop()
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        if isinstance(thing, _CONTAINERS):
            found[path] = len(thing)
        elif isinstance(thing, asyncio.Queue):
            found[path] = thing.qsize()
        left += [(f"{path}.{name}", value) for name, value in _parts(thing)]
    return found


def _parts(thing: object) -> Iterator[tuple[str, object]]:
    if isinstance(thing, Mapping):
        yield from (("[]", value) for value in list(thing.values()))
    elif isinstance(thing, list | tuple | set | frozenset | deque):
        yield from (("[]", value) for value in list(thing))
    elif type(thing).__module__.startswith(_OURS):
        names = {*getattr(thing, "__dict__", {}), *_slots(type(thing))}
        yield from ((name, getattr(thing, name)) for name in names if hasattr(thing, name))


def _slots(kind: type) -> Iterator[str]:
    for base in kind.__mro__:
        slots = base.__dict__.get("__slots__", ())
        yield from (slots,) if isinstance(slots, str) else slots
