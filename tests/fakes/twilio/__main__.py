"""`python -m tests.fakes.twilio --port 0`: prints its URL and serves until it is stopped."""

from tests.fakes.process import main
from tests.fakes.twilio.server import FakeTwilio

if __name__ == "__main__":
    main(lambda port: FakeTwilio(port=port))
