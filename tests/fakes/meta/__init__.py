"""A Graph API for WhatsApp that misbehaves on demand, with the webhooks that belong to it."""

from tests.fakes.meta.server import FakeMeta

__all__ = ["FakeMeta"]
