"""The place on the network from which a request came, as far as that can be known."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

_IPV6_SITE = 64
"""Leading bits that one customer of a network has to himself."""

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def networks(listed: str) -> tuple[Network, ...]:
    """The addresses and networks between commas or blanks. Raises ValueError."""
    try:
        return tuple(map(ipaddress.ip_network, listed.replace(",", " ").split()))
    except ValueError as error:
        raise ValueError(f"{error}; write addresses or networks: 127.0.0.1,10.0.0.0/8") from None


def network_name(peer: str, forwarded: Sequence[str], proxies: Sequence[Network]) -> str:
    """The address that is counted: the one that the last trusted proxy in the row saw.

    `forwarded` are the entries of X-Forwarded-For in their order. Anybody can write what stands
    left of the first entry that no proxy of ours wrote, so nothing there counts.
    """
    seen = peer
    for entry in reversed(forwarded):
        address = _parsed(seen)
        if address is None or not any(address in network for network in proxies):
            break
        seen = entry.strip()
    address = _parsed(seen)
    if address is None:
        return peer
    if address.version == 4:
        return str(address)
    return str(ipaddress.ip_network((address, _IPV6_SITE), strict=False))


def from_here(peer: str, forwarded: Sequence[str]) -> bool:
    """Tell whether a request began on this machine: everybody who is told to have passed it on is
    on it, too. A proxy beside us has an address of this machine, and so would all who come by it.
    """
    seen = [_parsed(address) for address in (peer, *forwarded)]
    return all(address is not None and address.is_loopback for address in seen)


def _parsed(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    bare = text.strip().removeprefix("[").partition("]")[0]
    if bare.count(":") == 1:
        bare = bare.partition(":")[0]  # An IPv4 address with a port, as some proxies write it.
    try:
        address = ipaddress.ip_address(bare)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address
