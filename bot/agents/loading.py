"""Importing what a setting names: modules of the operator's, with errors that help."""

from __future__ import annotations

import importlib
import sys
import traceback
from pathlib import Path
from types import ModuleType

from bot.domain.errors import ConfigurationError

OURS = frozenset({"bot", "channels", "storage"})
"""Top-level names that are Answerback's own, so that nobody else's module can have them."""


def import_module(setting: str, name: str) -> ModuleType:
    """The module, from PYTHONPATH, the installed packages or the current folder. `setting` is
    what names it, for the message of a ConfigurationError."""
    if not all(part.isidentifier() for part in name.split(".")):
        raise fault(setting, f"{name!r} is not a module name")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if name == missing or name.startswith(f"{missing}."):
            where = f"the current folder ({here}), on PYTHONPATH or among the installed packages"
            raise fault(setting, f"there is no module {missing!r} in {where}") from error
        raise fault(setting, f"{name} imports {missing!r}, which is not installed") from error
    except (Exception, SystemExit) as error:
        raise fault(setting, f"importing {name} failed: {reason(error)}") from error


def reason(error: BaseException) -> str:
    """The error in the operator's own module, and its line."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    said = f"{type(error).__name__}: {error}"
    is_ours = isinstance(error, SyntaxError) or "importlib" in frame.filename
    return said if is_ours else f"{said} ({frame.filename}, line {frame.lineno})"


def fault(setting: str, what: str) -> ConfigurationError:
    """A ConfigurationError that names this setting."""
    return ConfigurationError(f"{setting}: {what}")
