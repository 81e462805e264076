"""The pages that may use the API, and how much a visitor may ask of it."""

from __future__ import annotations

import ipaddress

import pytest

from bot.domain.decisions.network import network_name
from channels.web.access.limits import Limit, Limits
from channels.web.access.origins import Origin, Origins, bare_origin
from tests.clocks import ShiftedClock

SITE = "https://www.example.com"
ORIGINS = Origins(frozenset({SITE, "http://localhost:3000"}), "https://bot.example.com")


@pytest.mark.parametrize(
    ("origin", "judged"),
    [
        ("", Origin.OURS),
        ("http://bot.internal:8080", Origin.OURS),
        ("https://bot.internal:8080", Origin.OURS),
        ("https://bot.example.com", Origin.OURS),
        (SITE, Origin.LISTED),
        ("http://localhost:3000", Origin.LISTED),
        ("null", Origin.STRANGE),
        ("http://www.example.com", Origin.STRANGE),
        ("https://www.example.com:444", Origin.STRANGE),
        ("https://www.example.com.evil.test", Origin.STRANGE),
        ("https://evil.test/?https://www.example.com", Origin.STRANGE),
        ("https://www.example.com@evil.test", Origin.STRANGE),
        ("https://sub.www.example.com", Origin.STRANGE),
        ("HTTPS://WWW.EXAMPLE.COM", Origin.STRANGE),
        ("http://localhost", Origin.STRANGE),
        ("http://bot.internal", Origin.STRANGE),
        ("file://", Origin.STRANGE),
        (SITE + " " + SITE, Origin.STRANGE),
    ],
)
def test_a_whole_origin_is_compared(origin: str, judged: Origin) -> None:
    assert ORIGINS.judge(origin, "http", "bot.internal:8080") is judged


@pytest.mark.parametrize("host", ["", "null", "*", "evil.test/x", "a b", "[::1", "x@y", "x:99999"])
def test_a_host_header_that_is_no_host_allows_nobody(host: str) -> None:
    for origin in ("null", "http://", f"http://{host}", "https://evil.test"):
        assert ORIGINS.judge(origin, "http", host) is not Origin.LISTED
    assert ORIGINS.judge("null", "http", host) is Origin.STRANGE


def test_beside_the_terminal_a_name_that_somebody_leads_to_this_machine_is_no_page_of_ours() -> (
    None
):
    here = Origins(frozenset(), only_here=True)
    for host in ("127.0.0.1:8080", "localhost:8080", "[::1]:8080"):
        assert here.judge(f"http://{host}", "http", host) is Origin.OURS
    for host in ("evil.test:8080", "127.0.0.1.evil.test:8080"):
        assert here.judge(f"http://{host}", "http", host) is Origin.STRANGE


def test_only_a_listed_page_is_told_that_it_may_read() -> None:
    told = ORIGINS.headers(SITE, Origin.LISTED)
    assert told["Access-Control-Allow-Origin"] == SITE
    for judged in Origin:
        told = ORIGINS.preflight("https://evil.test", judged)
        assert told["Vary"] == "Origin"
        assert "Access-Control-Allow-Credentials" not in told
        assert ("Access-Control-Allow-Origin" in told) == (judged is Origin.LISTED)


@pytest.mark.parametrize(
    ("written", "bare"),
    [
        ("https://www.Example.com:443/", SITE),
        ("http://localhost:3000", "http://localhost:3000"),
        ("http://[::1]:80", "http://[::1]"),
        ("https://*.example.com", None),
        ("*", None),
        ("www.example.com", None),
        ("https://www.example.com/chat", None),
        ("https://www.example.com:99999", None),
        ("ftp://www.example.com", None),
    ],
)
def test_an_origin_is_brought_into_the_form_that_browsers_send(
    written: str, bare: str | None
) -> None:
    assert bare_origin(written) == bare


def stopped() -> ShiftedClock:
    clock = ShiftedClock()
    clock.stop()
    return clock


def test_a_minutes_worth_may_come_at_once_and_then_one_after_the_other() -> None:
    clock = stopped()
    limit = Limit(60, clock)
    assert [limit.wait("ada") for _ in range(60)] == [0.0] * 60
    wait = limit.wait("ada")
    assert wait == pytest.approx(1.0)
    assert limit.wait("bob") == 0.0
    clock.advance(wait)
    assert limit.wait("ada") == 0.0
    assert limit.wait("ada") > 0.0


def test_who_was_refused_waits_no_longer_for_asking_again() -> None:
    limit = Limit(1, stopped())
    assert limit.wait("ada") == 0.0
    assert len({limit.wait("ada") for _ in range(100)}) == 1


def test_names_that_are_made_up_take_no_more_and_more_room() -> None:
    limit = Limit(1, stopped())
    for number in range(30_000):
        assert limit.wait(str(number)) == 0.0
    assert len(limit._free_at) <= 20_000


def test_a_visitor_and_an_address_are_limited_apart() -> None:
    limits = Limits(visitor=2, address=3, clock=stopped())
    assert [limits.message_waits("ada", "1.2.3.4") > 0 for _ in range(3)] == [False, False, True]
    assert [limits.message_waits("bob", "1.2.3.4") > 0 for _ in range(2)] == [False, True]
    assert limits.message_waits("cyd", "5.6.7.8") == 0.0
    assert not limits.visitor_waits("ada")
    assert not limits.address_waits("1.2.3.4")


PROXIES = tuple(map(ipaddress.ip_network, ("127.0.0.1", "10.0.0.0/8", "2001:db8:1::/48")))


@pytest.mark.parametrize(
    ("peer", "forwarded", "counted"),
    [
        ("203.0.113.9", [], "203.0.113.9"),
        ("203.0.113.9", ["198.51.100.1"], "203.0.113.9"),
        ("127.0.0.1", ["198.51.100.1"], "198.51.100.1"),
        ("127.0.0.1", ["1.1.1.1", "198.51.100.1"], "198.51.100.1"),
        ("127.0.0.1", ["1.1.1.1", "198.51.100.1", "10.1.2.3"], "198.51.100.1"),
        ("127.0.0.1", ["10.1.2.3"], "10.1.2.3"),
        ("127.0.0.1", [], "127.0.0.1"),
        ("127.0.0.1", ["unknown"], "127.0.0.1"),
        ("127.0.0.1", ["198.51.100.1:5555"], "198.51.100.1"),
        ("::ffff:127.0.0.1", ["198.51.100.1"], "198.51.100.1"),
        ("2001:db8:2:3:4:5:6:7", [], "2001:db8:2:3::/64"),
        ("2001:db8:1::1", ["[2001:db8:2:3::9]:443"], "2001:db8:2:3::/64"),
        ("fe80::1%eth0", [], "fe80::/64"),
        ("", [], ""),
    ],
)
def test_what_is_counted_is_the_address_that_the_last_trusted_proxy_saw(
    peer: str, forwarded: list[str], counted: str
) -> None:
    assert network_name(peer, forwarded, PROXIES) == counted
