"""Runs inside a pod: asks one question so many times a second, each time from a new port, until its input ends.

Arguments: the query in hexadecimal, how often a second, the addresses in turn. Prints one JSON object at the end:
{"asked": N, "lost": N, "failed": N, "silence": SECONDS}. Lost is what was not answered within PATIENCE, failed what
came with an RCODE, and `silence` the longest time from one answer to the next. Needs nothing but Python.
"""

import json
import select
import socket
import sys
import time

PATIENCE = 3.0  # seconds, without asking again
TURN = 5  # milliseconds without an answer, then it is looked whether something is due


class Load:
    def __init__(self, query: bytes, addresses: list[str]) -> None:
        self._query, self._addresses = query, addresses
        self._poll = select.poll()
        self._waiting: dict[int, tuple[socket.socket, float]] = {}  # by descriptor, in the order of asking
        self._answered = time.monotonic()
        self.silence, self.counts = 0.0, {"asked": 0, "lost": 0, "failed": 0}

    def ask(self) -> None:
        to = self._addresses[self.counts["asked"] % len(self._addresses)]
        sock = socket.socket(socket.AF_INET6 if ":" in to else socket.AF_INET, socket.SOCK_DGRAM)
        self.counts["asked"] += 1
        self._waiting[sock.fileno()] = sock, time.monotonic()
        self._poll.register(sock, select.POLLIN)
        try:
            sock.connect((to, 53))
            sock.send(self._query)
        except OSError:
            self._end(sock, "lost")

    def listen(self) -> None:
        """For a turn; then give up what has waited for too long."""
        for descriptor, _ in self._poll.poll(TURN):
            sock, _ = self._waiting[descriptor]
            try:
                reply = sock.recv(65535)
            except OSError:  # nobody listens there, as ICMP says
                self._end(sock, "lost")
                continue
            now = time.monotonic()
            self.silence = max(self.silence, now - self._answered)
            self._answered = now
            self._end(sock, "failed" if reply[3] & 15 else "")
        for sock, asked in list(self._waiting.values()):
            if time.monotonic() < asked + PATIENCE:
                break
            self._end(sock, "lost")

    def wait(self) -> None:
        while self._waiting:
            self.listen()

    def _end(self, sock: socket.socket, how: str) -> None:
        if how:
            self.counts[how] += 1
        self._poll.unregister(sock)
        del self._waiting[sock.fileno()]
        sock.close()


def main() -> None:
    message, rate, *addresses = sys.argv[1:]
    load, begun, number = Load(bytes.fromhex(message), addresses), time.monotonic(), 0
    while not select.select([sys.stdin], [], [], 0)[0]:
        if time.monotonic() >= begun + number / float(rate):
            number += 1
            load.ask()
        load.listen()
    load.wait()
    print(json.dumps(load.counts | {"silence": load.silence}))


main()
