"""Pods that ask: a process inside each, which sends DNS queries from there and hands the replies back."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

from tests.kubelab.lab import Lab
from tests.kubelab.options import CLUSTER_DNS
from tests.support.dns_messages import Opt, Reply, query
from tests.support.kube.cluster import PodView, exec_command

_AGENT: Final = Path(__file__).with_name("agent.py").read_text()


class Unanswered(Exception):
    """Nothing came back, or no connection."""


class Asker:
    """A pod and the process in it. Goes by containerd, so it asks on while the API server is away."""

    def __init__(self, pod: PodView, process: "subprocess.Popen[str]") -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.pod = pod
        self._to_agent: IO[str] = process.stdin
        self._from_agent: IO[str] = process.stdout

    def ask(
        self,
        question: str,
        to: str = CLUSTER_DNS,
        port: int = 53,
        tcp: bool = False,
        opt: Opt | None = None,
        source: str = "",
    ) -> Reply:
        """The reply to `NAME TYPE`. Raises Unanswered."""
        message = query(question, opt)
        order = {"to": to, "port": port, "tcp": tcp, "query": message.hex(), "from": source}
        print(json.dumps(order), file=self._to_agent, flush=True)
        result = json.loads(self._from_agent.readline())
        if "error" in result:
            raise Unanswered(f"{self.pod.node} {self.pod.name}: {question} @{to}: {result['error']}")
        reply = Reply(bytes.fromhex(result["reply"]))
        assert reply.wire[:2] == message[:2]
        return reply

    def addresses(self, name: str, qtype: str = "A", to: str = CLUSTER_DNS, port: int = 53) -> set[str]:
        """The addresses of the name. Over TCP where UDP cannot hold them; on failure a set of RCODE or problem."""
        try:
            reply = self.ask(f"{name} {qtype}", to, port)
            if "tc" in reply.flag_names:
                reply = self.ask(f"{name} {qtype}", to, port, tcp=True)
        except Unanswered as problem:
            return {str(problem)}
        return set(reply.data) if reply.rcode == "NOERROR" else {reply.rcode}


@contextmanager
def asker(lab: Lab, pod: PodView) -> Iterator[Asker]:
    """The pod's image needs Python."""
    command = lab.machine(pod.node).command(*exec_command(pod, "python3", "-u", "-c", _AGENT))
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with process:
        try:
            yield Asker(pod, process)
        finally:
            assert process.stdin is not None
            process.stdin.close()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
