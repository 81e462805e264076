"""The values that many statements take, by the names under which they are handed over."""

from __future__ import annotations

import sqlalchemy as sa

ACCOUNT_ID = sa.bindparam("account_id", type_=sa.BigInteger)
CHAT_ID = sa.bindparam("chat_id", type_=sa.BigInteger)
HOLDER_ID = sa.bindparam("holder_id", type_=sa.BigInteger)
PART_ID = sa.bindparam("part_id", type_=sa.BigInteger)
RUN_ID = sa.bindparam("run_id", type_=sa.BigInteger)

GONE = sa.bindparam("gone", type_=sa.BigInteger)
"""A chat that becomes part of the chat KEPT."""
KEPT = sa.bindparam("kept", type_=sa.BigInteger)

HELD_FENCE = sa.bindparam("held_fence", type_=sa.BigInteger)
LEASE_SECONDS = sa.bindparam("lease_seconds", type_=sa.Double)
AT_MOST = sa.bindparam("at_most", type_=sa.Integer)
MOMENT = sa.bindparam("moment", type_=sa.Double)
"""Epoch seconds."""
REASON = sa.bindparam("reason", type_=sa.Text)
SECONDS = sa.bindparam("seconds", type_=sa.Double)
STEP = sa.bindparam("step", type_=sa.Double)
"""Seconds by which the database's clock was set."""
WAIT = sa.bindparam("wait", type_=sa.Double)
"""Seconds until something is due."""
