"""A program `kubectl` that answers from a script, for the plugin of kubectl: see `FakeKubectl`.

Run as a program it notes its words and its end in the folder of its first argument, and does what `script.json` says.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

RUN: Final = f'#!/bin/sh\nexec "{sys.executable}" -S "{__file__}" "%s" "$@"\n'
"""A shell script with the process id that Popen returns, so that signals to it arrive."""


class FakeKubectl:
    """The program `kubectl` in the folder `path`, with what it answers.

    `pods`: the objects that `get pods` finds, filtered by `--namespace`. `forbidden`: the resources (`pods`,
    `portforward`, `exec`) that RBAC denies. `forwards_to`: HOST:PORT to which `port-forward` relays, "" for a program
    that says nothing and waits, "exit" for one that ends at once. `exec` runs topodns here, and has it ask that server.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.path = folder / "bin"
        self.path.mkdir()
        program = self.path / "kubectl"
        program.write_text(RUN % folder)
        program.chmod(0o755)
        self.script()

    def script(
        self,
        pods: Sequence[Mapping[str, Any]] = (),
        forbidden: Sequence[str] = (),
        forwards_to: str = "exit",
        output: str | None = None,
        stubborn: bool = False,
    ) -> None:
        """What it answers from now on. `output`: what `get` prints instead. `stubborn`: it ignores SIGTERM."""
        script = {
            "pods": list(pods),
            "forbidden": list(forbidden),
            "forwards_to": forwards_to,
            "output": output,
            "stubborn": stubborn,
        }
        (self._folder / "script.json").write_text(json.dumps(script))

    def calls(self) -> list[list[str]]:
        """The words of each call, in order."""
        return [json.loads(line) for line in self._lines("calls")]

    def forwarding(self) -> list[int]:
        """The process ids of `port-forward`, also of those that ended."""
        return [int(line) for line in self._lines("pids")]

    def running(self) -> list[int]:
        """The process ids of `port-forward` that have not ended."""
        return [pid for pid in self.forwarding() if Path(f"/proc/{pid}").exists()]

    def _lines(self, name: str) -> list[str]:
        path = self._folder / name
        return path.read_text().splitlines() if path.exists() else []


def pod(name: str, namespace: str = "kube-system", *, ready: bool = True, **fields: Any) -> dict[str, Any]:
    """A Pod of topodns as the API server has it. `fields`: of its container; `ips`, `node`: of the Pod."""
    ips, node = fields.pop("ips", []), fields.pop("node", "node-a1")
    container = {"name": "topodns", "readinessProbe": {"httpGet": {"path": "/ready", "port": 8181}}} | fields
    return {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"nodeName": node, "containers": [container]},
        "status": {
            "podIPs": [{"ip": ip} for ip in ips],
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
        },
    }


def main(folder: Path, words: Sequence[str]) -> int:
    with (folder / "calls").open("a") as calls:
        calls.write(f"{json.dumps(words)}\n")
    script = json.loads((folder / "script.json").read_text())
    flags = dict(word.split("=", 1) for word in words if word.startswith("--") and "=" in word)
    bare = [word for word in words if not word.startswith("-")]
    if bare[:2] == ["auth", "can-i"]:
        denied = (flags.get("--subresource") or bare[3]) in script["forbidden"]
        print("no" if denied else "yes")
        return int(denied)
    if bare[0] == "get":
        return _get(script, bare[1:], flags)
    if bare[0] == "exec":
        return _exec(script, words[words.index("--") + 1 :])
    assert bare[0] == "port-forward"
    return _port_forward(folder, script)


def _get(script: Mapping[str, Any], words: Sequence[str], flags: Mapping[str, str]) -> int:
    if script["output"] is not None:
        print(script["output"])
        return 0
    if "pods" in script["forbidden"]:
        print('Error from server (Forbidden): pods is forbidden: User "me" cannot list resource', file=sys.stderr)
        return 1
    place = flags.get("--namespace", "default" if words[0] == "pod" else "")
    pods = [each for each in script["pods"] if place in ("", each["metadata"]["namespace"])]
    as_text = flags.get("--output", "").startswith("jsonpath=")
    if words[0] == "pods":
        lines = [f"{each['status']['conditions'][0]['status']} {each['metadata']['name']}" for each in pods]
        print("\n".join(lines) if as_text else json.dumps({"kind": "List", "items": pods}))
        return 0
    for each in pods:
        if each["metadata"]["name"] == words[1]:
            addresses = [found["ip"] for found in each["status"]["podIPs"]]
            print("".join(addresses[:1]) if as_text else json.dumps(each))
            return 0
    print(f'Error from server (NotFound): pods "{words[1]}" not found', file=sys.stderr)
    return 1


def _exec(script: Mapping[str, Any], command: Sequence[str]) -> int:
    if "exec" in script["forbidden"]:
        print('Error from server (Forbidden): pods "x" is forbidden', file=sys.stderr)
        return 1
    program, *words = command
    assert program == "/topodns"
    server = [] if words == ["-version"] else ["--server", script["forwards_to"]]
    return subprocess.run([sys.executable, "-m", "topodns", *words, *server], check=False).returncode


def _port_forward(folder: Path, script: Mapping[str, Any]) -> int:
    with (folder / "pids").open("a") as pids:
        pids.write(f"{os.getpid()}\n")
    if script["stubborn"]:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if script["forwards_to"] == "exit" or "portforward" in script["forbidden"]:
        print('Error from server (Forbidden): pods "x" is forbidden', file=sys.stderr)
        return 1
    if script["forwards_to"]:
        asyncio.run(_relay(script["forwards_to"]))
    time.sleep(600)
    return 0


async def _relay(to: str) -> None:
    host, _, port = to.rpartition(":")

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while octets := await reader.read(65536):
            writer.write(octets)
        writer.close()

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # From 127.0.0.1, as the kubelet connects inside of the Pod.
        there = await asyncio.open_connection(host, int(port), local_addr=("127.0.0.1", 0))
        await asyncio.gather(copy(reader, there[1]), copy(there[0], writer), return_exceptions=True)

    server = await asyncio.start_server(forward, "127.0.0.1", 0)
    print(f"Forwarding from 127.0.0.1:{server.sockets[0].getsockname()[1]} -> 8181", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
