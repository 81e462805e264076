"""`python -m bot.cli`: the command line without its script."""

from bot.cli.app import main

main()
