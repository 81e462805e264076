"""Importing what a setting names: modules of the operator's, with errors that help."""

from __future__ import annotations

import importlib
import logging
import sys
from pathlib import Path
from types import ModuleType

from bot.domain.errors import ConfigurationError
from bot.observability.faults import Fault, places
from bot.observability.quoting import Spoken

OURS = frozenset({"bot", "channels", "storage"})
"""Top-level names that are Answerback's own, so that nobody else's module can have them."""

_builders = logging.getLogger("answerback.builders")


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
        where = places(error)
        said = f"{name} imports {missing!r}, which is not installed"
        raise fault(setting, f"{said} ({where})" if where else said) from error
    except (Exception, SystemExit) as error:
        variable = setting.partition("=")[0]
        mend = f"mend it, or name another in {variable}"
        raise broken(setting, f"importing {name}", error, mend) from error


def broken(setting: str, doing: str, error: BaseException, mend: str) -> ConfigurationError:
    """A ConfigurationError for the builder's own exception, in one line, with what to do. A builder
    who sits here sees its traceback too."""
    nobody = Spoken()
    _builders.info("%s: %s failed", setting, doing, extra={"fault": Fault(error, nobody)})
    where = places(error)
    said = " ".join(f"{type(error).__name__}: {error}".split())
    return fault(setting, f"{doing} failed: {said}{f' ({where})' if where else ''}; {mend}")


def fault(setting: str, what: str) -> ConfigurationError:
    """A ConfigurationError that names this setting."""
    return ConfigurationError(f"{setting}: {what}")
