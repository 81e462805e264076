"""Work through a chat's rows page by page, each page in a transaction of a bounded size."""

from __future__ import annotations

import sqlalchemy as sa

ROWS = 200
"""Rows of one page."""

_AFTER = sa.bindparam("after", type_=sa.BigInteger)


def page_end(ids: sa.Column[int], *conditions: sa.ColumnElement[bool]) -> sa.Select[int | None]:
    """The last id of the page that begins behind `after` and ends at `until` at the latest; NULL
    when there are no more."""
    inside = (*conditions, ids > _AFTER, ids <= sa.bindparam("until", type_=sa.BigInteger))
    page = sa.select(ids.label("id")).where(*inside).order_by(ids).limit(ROWS).subquery()
    return sa.select(sa.func.max(page.c.id))


def in_page(ids: sa.Column[int]) -> sa.ColumnElement[bool]:
    """Stands in the page behind `after` whose last id is `last`."""
    return sa.and_(ids > _AFTER, ids <= sa.bindparam("last", type_=sa.BigInteger))
