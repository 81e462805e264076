"""The composition root: the one package that knows everything."""

from bot.operations.session import OperatorSession, database_exists, schema_problem
from bot.settings import Settings
from bot.wiring.channels import configured
from bot.wiring.operator import operator_session
from bot.wiring.process import Parts, Process, Role, running, site, typed
from bot.wiring.remarks import read_settings, remarks

__all__ = [
    "OperatorSession",
    "Parts",
    "Process",
    "Role",
    "Settings",
    "configured",
    "database_exists",
    "operator_session",
    "read_settings",
    "remarks",
    "running",
    "schema_problem",
    "site",
    "typed",
]
