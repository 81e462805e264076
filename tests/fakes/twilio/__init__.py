"""A Twilio Messages API that misbehaves on demand, with the webhooks that belong to it."""

from tests.fakes.twilio.server import FakeTwilio

__all__ = ["FakeTwilio"]
