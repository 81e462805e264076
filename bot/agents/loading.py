"""Importing the operator's modules that a setting names, with errors that say what to do."""

from __future__ import annotations

import importlib
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from bot.domain.errors import ConfigurationError
from bot.observability.faults import Fault, places
from bot.observability.quoting import Spoken

OURS = frozenset({"bot", "channels", "storage"})
"""Top-level packages of Answerback itself, whose names no other module can have."""

_builders = logging.getLogger("answerback.builders")


def import_module(setting: str, name: str) -> ModuleType:
    """The module, from PYTHONPATH, the installed packages or the current folder. `setting` is
    the setting that names it, for the message of a ConfigurationError."""
    if not all(part.isidentifier() for part in name.split(".")):
        raise fault(setting, f"{name!r} is not a module name")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)
    with builders_code(setting, f"importing {name}"):
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name is None:
                raise
            raise fault(setting, _not_found(name, error.name, here, error)) from error


def _not_found(name: str, missing: str, here: str, error: ModuleNotFoundError) -> str:
    if name == missing or name.startswith(f"{missing}."):
        where = f"the current folder ({here}), on PYTHONPATH or among the installed packages"
        return f"there is no module {missing!r} in {where}"
    where = places(error)
    said = f"{name} imports {missing!r}, which is not installed"
    return f"{said} ({where})" if where else said


@contextmanager
def builders_code(setting: str, doing: str) -> Iterator[None]:
    """Turn an exception or an exit of a builder's code, while it is being loaded, into a
    ConfigurationError of one line that says what to do. An interrupt passes: it is not the
    builder's. The traceback is logged too, where builders are shown exceptions whole."""
    try:
        yield
    except ConfigurationError:
        raise
    except (Exception, SystemExit) as error:
        nobody = Spoken()
        _builders.info("%s: %s failed", setting, doing, extra={"fault": Fault(error, nobody)})
        where = places(error)
        said = f"{_in_words(error)} ({where})" if where else _in_words(error)
        mend = f"mend it, or name another in {setting.partition('=')[0]}"
        raise fault(setting, f"{doing} failed: {said}; {mend}") from error


def _in_words(error: BaseException) -> str:
    """The exception's type, and its message in one line, if it has one."""
    kind = type(error).__name__
    try:
        words = " ".join(str(error).split())
    except Exception:  # noqa: BLE001 - the builder's edge: an exception that can't be told
        words = ""
    return f"{kind}: {words}" if words else kind


def fault(setting: str, what: str) -> ConfigurationError:
    """A ConfigurationError that names this setting."""
    return ConfigurationError(f"{setting}: {what}")
