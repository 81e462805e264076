"""Imports that wait until what they bring is used: `lazy from ...`, as Python has it from 3.15 on.

    with lazy_imports(__name__):
        from storage.views import runs

A command then loads what it needs, and `--help` nothing but the command line, while types, import
contracts and readers find every import where imports stand. A name is called, or an attribute of it
is read; a class that is inherited from, and an error that is caught, are imported at once.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType, SimpleNamespace
from typing import Any, TypeVar

T = TypeVar("T")
_NOT_YET = object()


class Lazy:
    """The stand-in of something that is found at its first use. It has no public name of its own:
    each is one of the thing."""

    __slots__ = ("_find", "_found")

    def __init__(self, find: Callable[[], Any]) -> None:
        self._find = find
        self._found: Any = _NOT_YET

    def __getattr__(self, name: str) -> Any:
        return getattr(found(self), name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return found(self)(*args, **kwargs)


def found(lazy: Lazy) -> Any:
    """The thing itself. Raises what finding it raises."""
    if lazy._found is _NOT_YET:  # noqa: SLF001 - its only other user
        lazy._found = lazy._find()  # noqa: SLF001 - as above
    return lazy._found  # noqa: SLF001 - as above


def lazily(make: Callable[[], T]) -> T:
    """The product of `make`, made when an attribute of it is read."""
    return Lazy(make)  # type: ignore[return-value]  # it stands in


@contextmanager
def lazy_imports(importer: str) -> Iterator[None]:
    """Let the imports of the body wait; it stands in the module `importer`."""
    at_once = builtins.__import__

    def stand_in(
        module: str,
        scope: Mapping[str, object] | None = None,
        local: Mapping[str, object] | None = None,
        names: Sequence[str] | None = (),
        level: int = 0,
    ) -> Any:
        if scope is None or scope.get("__name__") != importer:
            return at_once(module, scope, local, names or (), level)
        if not names:
            return Lazy(lambda: import_module(module))
        return SimpleNamespace(**{name: Lazy(_finder(module, name)) for name in names})

    builtins.__import__ = stand_in  # type: ignore[assignment]  # it answers with stand-ins
    try:
        yield
    finally:
        builtins.__import__ = at_once


@contextmanager
def handed_on(package: str) -> Iterator[None]:
    """Let the names that the body imports be those of `package`, whose face it is, and each be
    imported when somebody takes it: who reads a table's rows so loads none of its moves."""
    with lazy_imports(package):
        yield
    face = sys.modules[package]
    waiting = {name: lazy for name, lazy in vars(face).items() if type(lazy) is Lazy}
    for name in waiting:
        delattr(face, name)  # for what a module lacks it is asked

    def take(name: str) -> Any:
        if name not in waiting:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        thing = found(waiting[name])
        setattr(face, name, thing)
        return thing

    vars(face).update(__getattr__=take, __all__=list(waiting))


def load(*faces: ModuleType) -> None:
    """Import all that these packages hand on: who stays has it before the work begins."""
    for face in faces:
        for name in face.__all__:
            getattr(face, name)


def _finder(module: str, name: str) -> Callable[[], Any]:
    """Finds a name of a module, or the module of that name below it."""

    def find() -> Any:
        try:
            return getattr(import_module(module), name)
        except AttributeError:
            return import_module(f"{module}.{name}")

    return find
