"""The composition root: the one package that knows everything."""

from bot.settings import Settings, read_settings
from bot.wiring.console import typed
from bot.wiring.process import Parts, Process, Role, running
from bot.wiring.session import OperatorSession, opened, operator_session, schema_problem

__all__ = [
    "OperatorSession",
    "Parts",
    "Process",
    "Role",
    "Settings",
    "opened",
    "operator_session",
    "read_settings",
    "running",
    "schema_problem",
    "typed",
]
