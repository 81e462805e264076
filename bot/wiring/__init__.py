"""The composition root: the one package that knows everything."""

from bot.settings import Settings, read_settings
from bot.wiring.console import typed
from bot.wiring.process import Parts, Process, Role, running
from bot.wiring.session import Office, office, opened, schema_problem

__all__ = [
    "Office",
    "Parts",
    "Process",
    "Role",
    "Settings",
    "office",
    "opened",
    "read_settings",
    "running",
    "schema_problem",
    "typed",
]
