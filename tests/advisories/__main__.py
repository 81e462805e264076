"""Ask the list that is kept for what is locked: `make audit ARGS=--offline`. Ends with 1 when a
locked release has an advisory, or a locked package was never looked up."""

from __future__ import annotations

import sys

from tests.advisories import LOCKS, ROOT, known, pins


def main() -> int:
    """Print what the list says of each lock file."""
    listed, failed, packages = known(), False, set[str]()
    for name in LOCKS:
        locked = pins((ROOT / name).read_text(encoding="utf-8"))
        packages |= locked.keys()
        for advisory, release in listed.of(locked):
            failed = True
            ids = ", ".join((advisory.id, *advisory.aliases))
            print(f"{name}: {advisory.package} {release} has {ids}, fixed in {advisory.fixed_in}")
            print(f"  {advisory.says}")
    if unknown := sorted(packages - listed.looked_up):
        failed = True
        print(f"never looked up, see CONTRIBUTING.md: {', '.join(unknown)}")
    count = len(listed.advisories)
    print(f"{len(packages)} packages, {count} advisories, as they were known on {listed.read_on}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
