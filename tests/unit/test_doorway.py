"""Who is let in where there are too many connections, and who makes way; with real sockets."""

from __future__ import annotations

import os
import socket
from contextlib import ExitStack, suppress
from ipaddress import ip_network
from typing import TYPE_CHECKING

import pytest

from holdfast.app.connections import CountedConnection, Doorway, Listener, Shares

if TYPE_CHECKING:
    from collections.abc import Iterator

ANN, BOB, EVE = "127.0.0.1", "127.0.0.2", "127.0.0.3"


class Entry:
    """A listener, and callers from several addresses."""

    def __init__(self, stack: ExitStack, shares: Shares) -> None:
        self.stack, self.doorway = stack, Doorway(shares)
        self.listener = stack.enter_context(Listener.over(socket.create_server(("127.0.0.1", 0)), self.doorway))
        self.listener.settimeout(0)

    def call(self, who: str) -> tuple[socket.socket, CountedConnection | None]:
        """Connect, and return both ends; none of the server's if the caller was not let in."""
        caller = socket.create_connection(self.listener.getsockname(), source_address=(who, 0))
        self.stack.enter_context(caller)
        caller.settimeout(0)
        with suppress(BlockingIOError):
            made, _ = self.listener.accept()
            assert isinstance(made, CountedConnection)
            return caller, self.stack.enter_context(made)
        return caller, None

    def answered(self, who: str) -> CountedConnection:
        _, made = self.call(who)
        assert made is not None
        self.doorway.answering(made)
        return made


def is_open(caller: socket.socket) -> bool:
    with suppress(BlockingIOError):
        return bool(caller.recv(1))
    return True


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def test_who_has_its_share_makes_way_for_itself_and_not_others(stack: ExitStack) -> None:
    entry = Entry(stack, Shares(4, 1))
    first, second, third = (entry.call(ANN)[0] for _ in range(3))
    other = entry.call(BOB)[0]
    assert [is_open(one) for one in (first, second, third, other)] == [False, True, True, True]


def test_where_all_are_taken_who_has_most_idle_ones_makes_way(stack: ExitStack) -> None:
    entry = Entry(stack, Shares(5, 1, (ip_network(f"{ANN}/32"),)))
    many = [entry.call(ANN)[0] for _ in range(4)]
    one = entry.call(BOB)[0]
    assert all(map(is_open, many))
    late = entry.call(EVE)[0]
    assert [is_open(caller) for caller in (*many, one, late)] == [False, True, True, True, True, True]


def test_what_is_answered_never_makes_way_and_a_caller_with_its_share_of_that_is_told(stack: ExitStack) -> None:
    entry = Entry(stack, Shares(4, 1))
    first, _ = entry.answered(ANN), entry.answered(ANN)
    _, told = entry.call(ANN)
    assert told is not None
    assert told.is_beside
    assert entry.call(ANN)[1] is None, "and no more than that"
    _, other = entry.call(BOB)
    assert other is not None
    assert not other.is_beside
    first.close()
    _, again = entry.call(ANN)
    assert again is not None
    assert not again.is_beside
    told.close()
    entry.doorway.answering(again)
    _, told = entry.call(ANN)
    assert told is not None
    assert told.is_beside, "who was told before has gone"


def test_who_rests_makes_way_after_who_sends_nothing(stack: ExitStack) -> None:
    entry = Entry(stack, Shares(4, 1))
    resting, silent = entry.call(ANN), entry.call(ANN)
    assert resting[1] is not None
    entry.doorway.answering(resting[1])
    entry.doorway.resting(resting[1])
    entry.call(ANN)
    assert (is_open(resting[0]), is_open(silent[0])) == (True, False)


def test_one_that_made_way_is_not_there_any_more_when_its_key_is_agreed_on(stack: ExitStack) -> None:
    entry = Entry(stack, Shares(2, 1))
    _, first = entry.call(ANN)
    entry.call(ANN)
    assert first is not None
    assert entry.doorway.arrived(first, None) is None  # type: ignore[arg-type] # it never comes to it
    entry.doorway.answering(first)
    entry.doorway.resting(first)
    _, third = entry.call(BOB)
    assert third is not None
    assert not third.is_beside


def test_accounts_and_sites_have_shares_as_addresses_do() -> None:
    shares = Shares(100, 1, (ip_network("192.0.2.0/24"),))
    assert (shares.of(0), shares.of(os.geteuid()), shares.of(4_000_000)) == (100, 100, 50)
    assert (shares.of(ip_network("192.0.2.7/32")), shares.of(ip_network("198.51.100.1/32"))) == (100, 50)
    assert shares.of(ip_network("2001:db8::/64")) == 50
    assert Shares(1, 1).of(4_000_000) == 1


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="no IPv6 here")
def test_an_address_is_the_same_whichever_family_it_comes_by(stack: ExitStack) -> None:
    both = socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True)
    listener = stack.enter_context(Listener.over(both, Doorway(Shares(4, 1))))
    peers = []
    for address in ("127.0.0.1", "::1"):
        stack.enter_context(socket.create_connection((address, listener.getsockname()[1])))
        made, _ = listener.accept()
        stack.enter_context(made)
        assert isinstance(made, CountedConnection)
        peers.append(str(made.peer))
    assert peers == ["127.0.0.1/32", "::1/128"]
