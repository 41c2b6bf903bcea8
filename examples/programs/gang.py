"""Ranks that meet over TCP and add up their shares, round by round; one of them may die on the first attempt.

Rank 0 listens on HOLDFAST_MASTER_PORT, the others connect to it at HOLDFAST_MASTER_ADDR. As in a collective of a
training library, a lost rank leaves the others waiting: it takes the gang's restart to go on.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import sys
import time

PATIENCE_S = 30.0


def share(rank: int, size: int, number: int) -> float:
    """Work out this rank's part of the round: a slice of the Leibniz series for pi."""
    terms = range(number * 20_000 + rank, (number + 1) * 20_000, size)
    return sum((-1.0) ** term * 4 / (2 * term + 1) for term in terms)


def listen(port: int, size: int) -> list[socket.socket]:
    """Wait for all other ranks, as rank 0."""
    with socket.create_server(("", port), backlog=size) as server:
        server.settimeout(PATIENCE_S)
        return [server.accept()[0] for _ in range(size - 1)]


def connect(host: str, port: int) -> socket.socket:
    """Reach rank 0, which may not listen yet."""
    give_up = time.monotonic() + PATIENCE_S
    while True:
        try:
            return socket.create_connection((host, port), timeout=PATIENCE_S)
        except ConnectionRefusedError:
            if time.monotonic() > give_up:
                raise
            time.sleep(0.02)


def receive(peer: socket.socket) -> float:
    """Read one number, or wait for ever, when the other side is gone."""
    line = peer.makefile().readline()
    if not line:
        print("a rank is gone; waiting for it", flush=True)
        time.sleep(PATIENCE_S)
        sys.exit("nobody came to restart the gang")
    return float(json.loads(line))


def send(peer: socket.socket, value: float) -> None:
    """Write one number; that nobody reads it any more is noticed when nothing comes back."""
    try:
        peer.sendall(f"{json.dumps(value)}\n".encode())
    except ConnectionError:
        print("could not tell a rank", flush=True)


def add_up(rank: int, peers: list[socket.socket], mine: float) -> float:
    """Sum the shares of all ranks, and let every rank know the sum."""
    if rank:
        send(peers[0], mine)
        return receive(peers[0])
    total = mine + sum(receive(peer) for peer in peers)
    for peer in peers:
        send(peer, total)
    return total


def main() -> int:
    """Meet, work through the rounds, and print the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--fail-rank", type=int, default=-1)
    parser.add_argument("--fail-round", type=int, default=3)
    options = parser.parse_args()
    rank, size = int(os.environ.get("HOLDFAST_RANK", "0")), int(os.environ.get("HOLDFAST_SIZE", "1"))
    attempt = os.environ.get("HOLDFAST_ATTEMPT", "1")
    host, port = os.environ.get("HOLDFAST_MASTER_ADDR", "127.0.0.1"), int(os.environ.get("HOLDFAST_MASTER_PORT", "0"))
    peers = [connect(host, port)] if rank else listen(port, size)
    print(f"attempt {attempt}: rank {rank} of {size} has met the others", flush=True)
    total = 0.0
    for number in range(options.rounds):
        if attempt == "1" and rank == options.fail_rank and number == options.fail_round:
            print(f"rank {rank}: the network card stopped answering", file=sys.stderr)
            return 3
        total += add_up(rank, peers, share(rank, size, number))
    for peer in peers:
        peer.close()
    print(f"pi is about {total:.6f}, all {size} ranks agree")
    return 0


if __name__ == "__main__":
    sys.exit(main())
