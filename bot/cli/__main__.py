"""The entry point: the script `answerback`, and `python -m bot.cli`."""

from __future__ import annotations

import gc


def main() -> None:
    """Import the program, and run it."""
    # Garbage collections while modules are imported would cost a sixth of the start.
    gc.disable()
    from bot.cli.app import main as run  # noqa: PLC0415 - see above

    run()


if __name__ == "__main__":
    main()
