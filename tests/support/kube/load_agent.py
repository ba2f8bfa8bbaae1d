"""Runs inside a pod: asks one question so many times a second, each time from a new port, until its input ends.

Arguments: the query in hexadecimal, how often a second, the addresses in turn. Prints a JSON line for each question as
soon as it is known what became of it: [NUMBER, ADDRESS, ASKED, ANSWERED, RCODE], times by the machine's monotonic
clock; the last two are null where nothing came within PATIENCE. Needs nothing but Python.
"""

import json
import select
import socket
import sys
import time

PATIENCE = 3.0  # seconds, without asking again
TURN = 5  # milliseconds without an answer, then it is looked whether something is due


class Waiting:
    """A question without an answer yet."""

    def __init__(self, number: int, to: str) -> None:
        self.number, self.to, self.asked = number, to, time.monotonic()
        self.socket = socket.socket(socket.AF_INET6 if ":" in to else socket.AF_INET, socket.SOCK_DGRAM)


class Load:
    def __init__(self, query: bytes, addresses: list[str]) -> None:
        self._query, self._addresses = query, addresses
        self._poll = select.poll()
        self._waiting: dict[int, Waiting] = {}  # by descriptor, in the order of asking

    def ask(self, number: int) -> None:
        one = Waiting(number, self._addresses[number % len(self._addresses)])
        self._waiting[one.socket.fileno()] = one
        self._poll.register(one.socket, select.POLLIN)
        try:
            one.socket.connect((one.to, 53))
            one.socket.send(self._query)
        except OSError:
            self._end(one, b"")

    def listen(self) -> None:
        """For a turn; then give up what has waited for too long."""
        for descriptor, _ in self._poll.poll(TURN):
            one = self._waiting[descriptor]
            try:
                self._end(one, one.socket.recv(65535))
            except OSError:  # nobody listens there, as ICMP says
                self._end(one, b"")
        for one in list(self._waiting.values()):
            if time.monotonic() < one.asked + PATIENCE:
                break
            self._end(one, b"")

    def wait(self) -> None:
        while self._waiting:
            self.listen()

    def _end(self, one: Waiting, reply: bytes) -> None:
        became = [time.monotonic(), reply[3] & 15] if reply else [None, None]
        print(json.dumps([one.number, one.to, one.asked, *became]), flush=True)
        self._poll.unregister(one.socket)
        del self._waiting[one.socket.fileno()]
        one.socket.close()


def main() -> None:
    message, rate, *addresses = sys.argv[1:]
    load, begun, number = Load(bytes.fromhex(message), addresses), time.monotonic(), 0
    while not select.select([sys.stdin], [], [], 0)[0]:
        if time.monotonic() >= begun + number / float(rate):
            load.ask(number)
            number += 1
        load.listen()
    load.wait()


main()
