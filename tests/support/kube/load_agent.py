"""Runs inside a pod: asks so many questions a second, in turn, each from a new port, until its input ends.

Arguments: how often a second; a JSON list of what is asked, each {"query": HEX, "to": ADDRESS, "tcp": BOOL}. Prints a
JSON line for each question as soon as it is known what became of it: [NUMBER, ASKED, ANSWERED, REPLY], times by the
machine's monotonic clock. Where nothing came within PATIENCE, ANSWERED is null and REPLY says why; else it is
hexadecimal. Needs nothing but Python.
"""

import json
import select
import socket
import sys
import time
from collections.abc import Callable
from typing import Any

PATIENCE = 3.0  # seconds, without asking again
TURN = 5  # milliseconds without an answer, then it is looked whether something is due


class Waiting:
    """A question on its way: sent over UDP, or over TCP once there is a connection."""

    def __init__(self, number: int, order: dict[str, Any]) -> None:
        self.number, self.asked, self._reply = number, time.monotonic(), b""
        self._to, self._tcp, self._query = order["to"], order["tcp"], bytes.fromhex(order["query"])
        family = socket.AF_INET6 if ":" in self._to else socket.AF_INET
        self.socket = socket.socket(family, socket.SOCK_STREAM if self._tcp else socket.SOCK_DGRAM)
        self.socket.setblocking(False)

    def connect(self) -> int:
        """The events to wait for. Raises OSError."""
        try:
            self.socket.connect((self._to, 53))
        except BlockingIOError:
            return select.POLLOUT
        return self.send()

    def send(self) -> int:
        self.socket.send(len(self._query).to_bytes(2, "big") + self._query if self._tcp else self._query)
        return select.POLLIN

    def receive(self) -> bytes:
        """The whole reply; b"" while there is more to come. Raises OSError."""
        octets: bytes = self.socket.recv(65535)
        if not self._tcp:
            return octets
        if not octets:
            raise ConnectionResetError("closed before the whole reply was there")
        self._reply += octets
        return self._reply[2:] if len(self._reply) >= 2 + int.from_bytes(self._reply[:2], "big") else b""


class Load:
    def __init__(self, orders: list[dict[str, Any]]) -> None:
        self._orders = orders
        self._poll = select.poll()
        self._waiting: dict[int, Waiting] = {}  # by descriptor, in the order of asking

    def ask(self, number: int) -> None:
        one = Waiting(number, self._orders[number % len(self._orders)])
        self._waiting[one.socket.fileno()] = one
        self._poll.register(one.socket, select.POLLOUT)
        self._go_on(one, one.connect)

    def listen(self) -> None:
        """For a turn; then give up the questions that have waited for too long."""
        for descriptor, event in self._poll.poll(TURN):
            one = self._waiting[descriptor]
            if event & select.POLLOUT and not event & (select.POLLERR | select.POLLHUP):
                self._go_on(one, one.send)
            else:
                self._take(one)
        for one in list(self._waiting.values()):
            if time.monotonic() < one.asked + PATIENCE:
                break
            self._end(one, None, "nothing came")

    def wait(self) -> None:
        while self._waiting:
            self.listen()

    def _go_on(self, one: Waiting, step: Callable[[], int]) -> None:
        try:
            self._poll.modify(one.socket, step())
        except OSError as problem:
            self._end(one, None, str(problem))

    def _take(self, one: Waiting) -> None:
        try:
            reply = one.receive()
        except OSError as problem:  # nothing listens there, as ICMP or TCP says
            self._end(one, None, str(problem))
            return
        if reply:
            self._end(one, time.monotonic(), reply.hex())

    def _end(self, one: Waiting, answered: float | None, reply: str) -> None:
        print(json.dumps([one.number, one.asked, answered, reply]), flush=True)
        self._poll.unregister(one.socket)
        del self._waiting[one.socket.fileno()]
        one.socket.close()


def main() -> None:
    rate, orders = float(sys.argv[1]), json.loads(sys.argv[2])
    load, begun, number = Load(orders), time.monotonic(), 0
    while not select.select([sys.stdin], [], [], 0)[0]:
        if time.monotonic() >= begun + number / rate:
            load.ask(number)
            number += 1
        load.listen()
    load.wait()


main()
