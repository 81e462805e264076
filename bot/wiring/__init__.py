"""The composition root: the one package that knows everything.

It is loaded piece by piece: who asks for the database needs no worker.
"""

from bot.lazy_imports import lazy_imports
from bot.wiring.role import Role

with lazy_imports(__name__):
    from bot.operations.session import OperatorSession, database_exists, schema_problem
    from bot.settings import Settings
    from bot.wiring.channels import at_the_terminal, configured
    from bot.wiring.operator import operator_session
    from bot.wiring.process import Parts, Process, asked, at_work, running, site, typed
    from bot.wiring.remarks import read_settings, remarks_on

__all__ = [
    "OperatorSession",
    "Parts",
    "Process",
    "Role",
    "Settings",
    "asked",
    "at_the_terminal",
    "at_work",
    "configured",
    "database_exists",
    "operator_session",
    "read_settings",
    "remarks_on",
    "running",
    "schema_problem",
    "site",
    "typed",
]
