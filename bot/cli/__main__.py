"""The entry point: the script `answerback`, and `python -m bot.cli`."""

from __future__ import annotations

import gc
import sys


def main() -> None:
    """Import the program, and run it."""
    # What is imported stays for good: looking through it for garbage would cost a sixth of the
    # start, and later each full collection a tenth of a second in which nothing else happens.
    gc.disable()
    # structlog and httpx load it, where it is, for tracebacks and tables that nobody draws here.
    sys.modules["rich"] = None  # type: ignore[assignment]  # the language's word for absent
    from bot.cli.app import main as run  # noqa: PLC0415 - see above

    del sys.modules["rich"]
    gc.freeze()
    gc.enable()
    run()


if __name__ == "__main__":
    main()
