"""The measure of the other tests here: a victim sees a slow server, and one that it cannot reach."""

import signal
import socket
import time
from pathlib import Path

from tests.support.arrival_times import receive_stamped, stamping
from tests.support.server_process import serving, until
from tests.support.steady_client import MIN_ASKED, cpu_seconds, victim

COREFILE = ". {\n    bind HERE\n    hosts {\n        192.0.2.1 a.example\n    }\n}\n"


def test_an_idle_server_costs_a_victim_nothing_and_a_stopped_one_its_answers(tmp_path: Path) -> None:
    with serving(tmp_path, COREFILE) as server:
        before = cpu_seconds(server.pid)
        with victim(server, "a.example A", "192.0.2.1", per_second=500) as fate:
            until(lambda: fate.asked >= MIN_ASKED, "questions asked")
        assert (fate.lost, fate.wrong) == (0, []), fate
        assert 0 < fate.cpu(50) <= cpu_seconds(server.pid) - before, fate

        with victim(server, "a.example A", "192.0.2.2") as deceived:
            until(lambda: deceived.wrong, "a wrong answer")

        server.signal(signal.SIGSTOP)
        try:
            with victim(server, "a.example A", "192.0.2.1") as forsaken:
                until(lambda: forsaken.lost, "a question lost")
        finally:
            server.signal(signal.SIGCONT)


def test_a_reply_has_arrived_when_the_kernel_had_it_however_late_the_victim_looks() -> None:
    with (
        stamping(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as receiver,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender,
    ):
        receiver.bind(("127.0.0.1", 0))
        for _ in range(2):  # the kernel begins to stamp some time after it is asked to
            sender.sendto(b"reply", receiver.getsockname())
            sent = time.time_ns()
            time.sleep(0.1)
            data, arrived = receive_stamped(receiver)
        assert data == b"reply"
        assert abs(arrived - sent) < 0.05e9
