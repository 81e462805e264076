"""The operator's page of a process, wired: there where somebody may sign in to it."""

from __future__ import annotations

from bot.lazy_imports import lazy_imports
from bot.leases.runtime import Runtime
from bot.settings import Settings
from bot.wiring.role import Role

with lazy_imports(__name__):
    from bot.operator.app import OperatorPage, PageTerms


def operator_page(settings: Settings, role: Role, rt: Runtime) -> OperatorPage | None:
    """The page, in a process that is asked for pages."""
    operators = settings.operators
    if role is Role.WORKER or not operators:
        return None
    terms = PageTerms(
        operators,
        public_url=settings.public_url,
        open_=settings.operator_open,
        proxies=settings.web_proxies,
        lease_seconds=settings.lease_seconds,
        heartbeat=settings.heartbeat_seconds,
        canned=settings.canned_texts,
    )
    return OperatorPage(rt, terms)
