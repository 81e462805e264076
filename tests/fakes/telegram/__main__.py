"""`python -m tests.fakes.telegram --port 0`: prints its URL and serves until it is stopped."""

from tests.fakes.process import main
from tests.fakes.telegram.server import FakeTelegram

if __name__ == "__main__":
    main(lambda port: FakeTelegram(port=port))
