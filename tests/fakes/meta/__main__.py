"""`python -m tests.fakes.meta --port 0`: prints its URL and serves until it is stopped."""

from tests.fakes.meta.server import FakeMeta
from tests.fakes.process import main

if __name__ == "__main__":
    main(lambda port: FakeMeta(port=port))
