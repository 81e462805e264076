"""The process that the tests' processes are forked from: `python -m tests.e2e.ancestor FD`.

It listens at that descriptor. Whoever connects, a worker of the tests, gives its orders to a fork
of its own, and what is forked there ends with the worker. The ancestor ends with the last one.

An order comes with four descriptors: the standard files, and where the process's id and its
wait status are reported, a line each.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import json
import os
import select
import signal
import socket
import sys
import threading
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

from bot.intake import accept
from bot.texts import Words
from bot.wiring.channels import settings_class
from tests.limits import PATIENCE

_PR_SET_PDEATHSIG = 1
_ORDER_LIMIT = 1 << 16
_DESCRIPTORS_LIMIT = 1024


def _prepare() -> None:
    """Import everything, and build what every process builds alike before it reads anything."""
    for top in ("bot", "channels", "storage"):
        package = import_module(top)
        for module in walk_packages(package.__path__, f"{top}."):
            if ".migrations" not in module.name and not module.name.endswith("__main__"):
                import_module(module.name)
    Words.load()
    settings_class().model_rebuild()
    gc.freeze()


def _wait_for_workers(door: socket.socket) -> socket.socket:
    """Fork for each worker that comes, until the last one has gone; returns in the forked process
    the socket of its orders."""
    serving: set[int] = set()
    poll = select.epoll()
    poll.register(door, select.EPOLLIN)
    while True:
        for ready, _ in poll.poll():
            if ready in serving:
                poll.unregister(ready)  # Later forks have it too, so that closing is not enough.
                os.waitid(os.P_PIDFD, ready, os.WEXITED)
                os.close(ready)
                serving.remove(ready)
                if not serving:
                    os._exit(0)
                continue
            orders, _ = door.accept()
            if (pid := os.fork()) == 0:
                poll.close()
                door.close()
                _end_with_the_parent()
                return orders
            orders.close()
            watched = os.pidfd_open(pid)
            serving.add(watched)
            poll.register(watched, select.EPOLLIN)


def _wait_for_orders(orders: socket.socket) -> None:
    """Fork for each order until nobody gives any more; returns in the forked process."""
    reports: dict[int, tuple[int, int]] = {}
    poll = select.epoll()
    poll.register(orders, select.EPOLLIN)
    while True:
        for ready, _ in poll.poll():
            if ready in reports:
                # A fork that is just beginning has it too: closing alone would not end it.
                poll.unregister(ready)
                pid, report = reports.pop(ready)
                os.write(report, f"{os.waitpid(pid, 0)[1]}\n".encode())
                os.close(ready)
                os.close(report)
                continue
            order, given, _, _ = socket.recv_fds(orders, _ORDER_LIMIT, 4)
            if not order:
                os._exit(0)
            if (pid := os.fork()) == 0:
                _become(json.loads(order), given)
                return
            os.write(given[3], f"{pid}\n".encode())
            watched = os.pidfd_open(pid)
            reports[watched] = (pid, given[3])
            poll.register(watched, select.EPOLLIN)
            for descriptor in given[:3]:
                os.close(descriptor)


def _end_with_the_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _become(order: dict[str, object], given: list[int]) -> None:
    """Be as a process that was started so: its files, environment, folder and words."""
    _end_with_the_parent()
    for standard, descriptor in enumerate(given[:3]):
        os.dup2(descriptor, standard)
    os.closerange(3, _DESCRIPTORS_LIMIT)
    environment, words = order["environment"], order["words"]
    assert isinstance(environment, dict)
    assert isinstance(words, list)
    # A machine that is busy for a while must not look as a slow database does.
    accept.COMMIT_WITHIN = float(environment.pop("COMMIT_WITHIN", PATIENCE))
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(str(order["folder"]))
    program = Path(sys.executable).with_name("answerback")
    sys.path[0] = str(program.parent)
    sys.modules["__main__"].__package__ = None  # A script has none: usage names the program.
    sys.argv = [str(program), *words]


def _run(program: Callable[[], None]) -> None:
    """Run it, and end as the interpreter does, but without taking itself apart: that would touch,
    and so copy, all memory that a fork shares."""
    try:
        program()
    except SystemExit as end:
        if isinstance(end.code, int | None):
            threading._shutdown()  # type: ignore[attr-defined]  # as the interpreter begins its end
            atexit._run_exitfuncs()
            sys.stdout.flush()
            os._exit(end.code or 0)
        raise


if __name__ == "__main__":
    _prepare()
    _wait_for_orders(_wait_for_workers(socket.socket(fileno=int(sys.argv[1]))))
    from bot.cli.app import main

    _run(main)
