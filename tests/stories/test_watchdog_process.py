"""The watchdog as a process, with programs in the place of iptables-restore and of the node cache."""

import os
import subprocess
import sys
from pathlib import Path

from tests.support.event_loops import PATIENCE
from topodns.hostnet import watchdog

NODE_CACHE = f"""
import os, signal, time
os.write(int(os.environ[{watchdog.HEARTBEAT_VARIABLE!r}]), {watchdog.RENEW!r})
while not os.path.exists("failed"):
    time.sleep(0.01)
os.kill(os.getpid(), signal.SIGKILL)
"""


def program(path: Path, script: str) -> str:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def test_n09_if_only_ipv4_was_switched_on_it_is_switched_off_when_the_node_cache_is_killed(tmp_path: Path) -> None:
    state = tmp_path / "state"
    ipv4 = program(tmp_path / "iptables-restore", f"/bin/cat > {state}")
    ipv6 = program(
        tmp_path / "ip6tables-restore",
        f'read -r wanted; [ "$wanted" = off ] && exit 0; /bin/cp {state} {tmp_path}/failed; exit 4',
    )
    read_end, write_end = os.pipe()
    os.write(write_end, "\0".join(("off", ipv4, "on\n", "off\n", ipv6, "on\n", "off\n")).encode())
    os.close(write_end)
    done = subprocess.run(
        (sys.executable, "-I", "-S", watchdog.__file__, str(read_end), sys.executable, "-I", "-S", "-c", NODE_CACHE),
        cwd=tmp_path,
        pass_fds=(read_end,),
        timeout=PATIENCE,
        check=False,
    )
    os.close(read_end)
    assert done.returncode == 128 + 9
    assert (tmp_path / "failed").read_text() == "on\n"
    assert state.read_text() == "off\n"
