"""Runs inside a pod: asks so many questions a second, in turn, each from a new port, until its input ends.

Arguments: how often a second; a JSON list of what is asked, each {"query": HEX, "to": ADDRESS, "tcp": BOOL,
"rcode": NUMBER, "holds": [HEX, ...]}. Prints one JSON object at the end: {"asked": N, "lost": N, "failed": N,
"wrong": N, "silence": SECONDS, "problems": [TEXT, ...]}. Lost is what was not answered within PATIENCE, failed what
came with another RCODE, wrong what has other addresses than it `holds`, `silence` the longest time from one answer to
the next, and `problems` what became of the first of these. Needs nothing but Python.
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
PROBLEMS = 20


class Waiting:
    """A question on its way: sent over UDP, or over TCP once there is a connection."""

    def __init__(self, asked: dict[str, Any]) -> None:
        self.asked, self.since, self._reply = asked, time.time(), b""
        family = socket.AF_INET6 if ":" in asked["to"] else socket.AF_INET
        self.sock = socket.socket(family, socket.SOCK_STREAM if asked["tcp"] else socket.SOCK_DGRAM)
        self.sock.setblocking(False)
        self.until = time.monotonic() + PATIENCE

    def connect(self) -> int:
        """The events to wait for. Raises OSError."""
        try:
            self.sock.connect((self.asked["to"], 53))
        except BlockingIOError:
            return select.POLLOUT
        return self.send()

    def send(self) -> int:
        query = bytes.fromhex(self.asked["query"])
        self.sock.send(len(query).to_bytes(2, "big") + query if self.asked["tcp"] else query)
        return select.POLLIN

    def receive(self) -> bytes:
        """The whole reply; b"" while there is more to come. Raises OSError."""
        octets: bytes = self.sock.recv(65535)
        if not self.asked["tcp"]:
            return octets
        if not octets:
            raise ConnectionResetError("closed before the whole reply was there")
        self._reply += octets
        return self._reply[2:] if len(self._reply) >= 2 + int.from_bytes(self._reply[:2], "big") else b""

    def judge(self, reply: bytes) -> str:
        """What is not as it should be: "", "failed" or "wrong"."""
        if reply[3] & 15 != self.asked["rcode"]:
            return "failed"
        records = [len(each).to_bytes(2, "big") + each for each in map(bytes.fromhex, self.asked["holds"])]
        told = int.from_bytes(reply[6:8], "big")
        return "" if told == len(records) and all(each in reply for each in records) else "wrong"


class Load:
    def __init__(self, asked: list[dict[str, Any]]) -> None:
        self._asked = asked
        self._poll = select.poll()
        self._waiting: dict[int, Waiting] = {}  # by descriptor, in the order of asking
        self._answered = time.monotonic()
        self.silence, self.problems = 0.0, list[str]()
        self.counts = {"asked": 0, "lost": 0, "failed": 0, "wrong": 0}

    def ask(self) -> None:
        one = Waiting(self._asked[self.counts["asked"] % len(self._asked)])
        self.counts["asked"] += 1
        self._waiting[one.sock.fileno()] = one
        self._poll.register(one.sock, select.POLLOUT)
        self._go_on(one, one.connect)

    def listen(self) -> None:
        """For a turn; then give up what has waited for too long."""
        for descriptor, event in self._poll.poll(TURN):
            one = self._waiting[descriptor]
            if event & select.POLLOUT and not event & (select.POLLERR | select.POLLHUP):
                self._go_on(one, one.send)
            else:
                self._take(one)
        for one in list(self._waiting.values()):
            if time.monotonic() < one.until:
                break
            self._end(one, "lost", "nothing came")

    def wait(self) -> None:
        while self._waiting:
            self.listen()

    def _go_on(self, one: Waiting, step: Callable[[], int]) -> None:
        try:
            self._poll.modify(one.sock, step())
        except OSError as error:
            self._end(one, "lost", str(error))

    def _take(self, one: Waiting) -> None:
        try:
            reply = one.receive()
        except OSError as error:  # nobody listens there, as ICMP or TCP says
            self._end(one, "lost", str(error))
            return
        if reply:
            now = time.monotonic()
            self.silence = max(self.silence, now - self._answered)
            self._answered = now
            self._end(one, one.judge(reply), reply.hex())

    def _end(self, one: Waiting, how: str, what: str) -> None:
        if how:
            self.counts[how] += 1
            if len(self.problems) < PROBLEMS:
                when = time.strftime("%H:%M:%S", time.localtime(one.since)) + f"{one.since % 1:.3f}"[1:]
                over = "TCP" if one.asked["tcp"] else "UDP"
                port = one.sock.getsockname()[1]
                self.problems.append(f"{when} {over} from {port} to {one.asked['to']}: {how}: {what}")
        self._poll.unregister(one.sock)
        del self._waiting[one.sock.fileno()]
        one.sock.close()


def main() -> None:
    rate, asked = float(sys.argv[1]), json.loads(sys.argv[2])
    load, begun, number = Load(asked), time.monotonic(), 0
    while not select.select([sys.stdin], [], [], 0)[0]:
        if time.monotonic() >= begun + number / rate:
            number += 1
            load.ask()
        load.listen()
    load.wait()
    print(json.dumps(load.counts | {"silence": load.silence, "problems": load.problems}))


main()
