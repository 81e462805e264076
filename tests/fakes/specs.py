"""The providers' machine-readable descriptions, where they are there."""

from pathlib import Path

DIRECTORY = Path(__file__).parents[2].parent / "shared" / "specs"
"""Beside the project and not part of it; tests that need it skip where it is absent."""

TELEGRAM = DIRECTORY / "telegram-bot-api-10.1.json"
TWILIO = DIRECTORY / "twilio-messages-openapi.json"
META = DIRECTORY / "whatsapp-cloud-messages.json"
