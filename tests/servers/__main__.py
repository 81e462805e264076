"""Start both servers by hand, for a database to try things on."""

from __future__ import annotations

import signal

from tests.servers import Postgres, Valkey


def main() -> None:
    """Start both servers, print how to reach them, and wait for Ctrl-C or SIGTERM."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with Postgres(tcp=True) as postgres, Valkey(tcp=True) as valkey:
        print(f"export DATABASE_URL='{postgres.tcp_url()}'")
        print(f"export REDIS_URL='{valkey.tcp_url()}'", flush=True)
        try:
            signal.pause()
        except KeyboardInterrupt:
            print("stopped")


main()
