"""The composition root: the one package that knows everything."""

from bot.settings import Settings, read_settings
from bot.wiring.office import Office, office, opened, schema_problem
from bot.wiring.process import Parts, Process, Role, running
from bot.wiring.typed import typed

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
