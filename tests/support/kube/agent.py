"""Runs inside a pod: asks the DNS questions that it is handed, one JSON line each, and hands back what came.

In: {"to": ADDRESS, "port": N, "tcp": BOOL, "query": HEX, "from": ADDRESS or ""}.
Out: {"reply": HEX} or {"error": TEXT}.
Needs nothing but Python. Asks up to three times over UDP, as resolvers do.
"""

import json
import socket
import sys

TRIES = 3
SECONDS = 2.0


def ask(to: str, port: int, tcp: bool, query: bytes, source: str) -> bytes:
    family = socket.AF_INET6 if ":" in to else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM if tcp else socket.SOCK_DGRAM) as sock:
        sock.settimeout(SECONDS)
        if source:
            sock.bind((source, 0))
        sock.connect((to, port))
        if not tcp:
            sock.send(query)
            return sock.recv(65535)
        sock.sendall(len(query).to_bytes(2, "big") + query)
        with sock.makefile("rb") as stream:
            size = int.from_bytes(stream.read(2), "big")
            return stream.read(size)


def answer(line: str) -> dict[str, str]:
    order = json.loads(line)
    problem = ""
    for _ in range(TRIES):
        try:
            query = bytes.fromhex(order["query"])
            return {"reply": ask(order["to"], order["port"], order["tcp"], query, order["from"]).hex()}
        except OSError as error:
            problem = str(error)
    return {"error": problem}


for line in sys.stdin:
    print(json.dumps(answer(line)), flush=True)
