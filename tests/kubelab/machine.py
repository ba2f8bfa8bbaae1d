"""A machine of a lab: namespaces kept open by a reaper as their PID 1, a cgroup, and a directory with all of its
configuration and output. Knows nothing of Kubernetes.
"""

import json
import os
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Final

from tests.kubelab.cache import HERE
from tests.kubelab.cgroups import Cgroup, cgroup_pids, join
from tests.kubelab.programs import CNI, PROGRAMS, programs

IN: Final = "/run/kubelab"  # a machine's directory, seen from inside
PATH: Final = f"{IN}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

_ENTER: Final = """\
#!/bin/sh
# enter COMMAND... : runs a command on {name}, in its cgroup and namespaces.
grep -qx {pid} {leaf}/cgroup.procs || {{ echo "{name} is not running" >&2; exit 1; }}
{join}
exec nsenter --target {pid} --net --mount --uts --ipc --cgroup --pid -- env -i PATH={path} HOME=/root LANG=C.UTF-8 \\
     TERM="${{TERM:-dumb}}" KUBECONFIG={inside}/admin.kubeconfig CONTAINERD_NAMESPACE=k8s.io \\
     CONTAINERD_SUPPRESS_DEPRECATION_WARNINGS=1 "$@"
"""


class LabError(Exception):
    """Something that the one who called can mend, or should at least read."""


class Machine:
    """It need not run, nor exist: `create` makes it, and killing the processes in its cgroups ends it."""

    def __init__(self, name: str, directory: Path, cgroups: Sequence[Cgroup]) -> None:
        self.name = name
        self.dir = directory
        self._cgroups = cgroups

    @property
    def leaves(self) -> list[str]:
        """The cgroups where its processes live, one a hierarchy."""
        return [f"{cgroup.path}/{self.name}/init" for cgroup in self._cgroups]

    @property
    def pids(self) -> set[int]:
        return cgroup_pids([f"{self._cgroups[0].path}/{self.name}"])

    @property
    def pid(self) -> int | None:
        """PID 1 of the machine as the host counts, if it runs."""
        with suppress(OSError, ValueError):
            pid = int((self.dir / "pid").read_text())
            return pid if pid in self.pids else None
        return None

    def write(self, name: str, content: str | Mapping[str, Any], mode: int = 0o644) -> None:
        """A file in its directory; an object becomes JSON."""
        path = self.dir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode)
        path.write_text(content if isinstance(content, str) else json.dumps(content, indent=1))
        path.chmod(mode)

    def create(self) -> "subprocess.Popen[bytes]":
        """Cgroup, namespaces, PID 1 and mounts; afterwards the script `enter` leads in.

        Returns the process that waits for PID 1, for the caller to wait for.
        """
        for folder in ("log", "services", "pids", "etc.upper"):
            (self.dir / folder).mkdir(parents=True, exist_ok=True)
        for cgroup in self._cgroups:
            cgroup.make(self.name, "init")
        self._link_programs()
        mounts = "".join(f"{cgroup.type} {cgroup.name} {cgroup.options}\n" for cgroup in self._cgroups)
        self.write("cgroup-mounts", mounts)
        starter, pid = self._start_first()
        self.write("pid", pid)
        leaf, joining = self.leaves[0], join(self.leaves)
        script = _ENTER.format(name=self.name, pid=pid, leaf=leaf, join=joining, path=PATH, inside=IN)
        self.write("enter", script, 0o755)
        return starter

    def _link_programs(self) -> None:
        """bin/ leads to programs/, where the machine sees the cache's."""
        folder = self.dir / "bin"
        folder.mkdir()
        for name, path in programs().items():
            (folder / name).symlink_to(Path("../programs") / path.relative_to(PROGRAMS))

    def _start_first(self) -> "tuple[subprocess.Popen[bytes], str]":
        environment = {
            "PATH": PATH,
            "NAME": self.name,
            "DIR": str(self.dir),
            "PROGRAMS": str(PROGRAMS),
            "CNI": str(CNI),
            "INIT": " ".join(self.leaves),
            "TOP": " ".join(f"{cgroup.path}/{self.name}" for cgroup in self._cgroups),
        }
        with open(self.dir / "log/machine.log", "wb") as log:
            starter = subprocess.Popen(
                ["sh", HERE / "machine.sh"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
                env=environment,
            )
        assert starter.stdout is not None
        with starter.stdout:
            pid = starter.stdout.readline().strip().decode()
        if not pid:
            starter.wait()
            raise LabError(f"{self.name}: {(self.dir / 'log/machine.log').read_text().strip()}")
        return starter, pid

    def command(self, *words: str | Path) -> list[str]:
        """The command that runs these words on the machine, for subprocess."""
        return [str(self.dir / "enter"), *map(str, words)]

    def run(self, *words: str | Path, stdin: IO[bytes] | None = None, keep_output: bool = True) -> str:
        """A command on the machine, to its end; its output. What leaves a service behind must not keep the output."""
        pipe = subprocess.PIPE if keep_output else subprocess.DEVNULL
        done = subprocess.run(
            self.command(*words),
            stdin=subprocess.DEVNULL if stdin is None else stdin,
            stdout=pipe,
            stderr=pipe,
            check=False,
        )
        if done.returncode:
            said = (done.stderr or b"").decode(errors="replace").strip() or f"rc {done.returncode}"
            raise LabError(f"{self.name}: {shlex.join(map(str, words))}: {said}")
        return (done.stdout or b"").decode(errors="replace").strip()

    def ip_batch(self, lines: Sequence[str]) -> None:
        """`ip` in the machine's network namespace, but counting pids as the host does (for `netns PID`)."""
        command = ["nsenter", f"--net=/proc/{self.pid}/ns/net", "ip", "-batch", "-"]
        done = subprocess.run(command, text=True, capture_output=True, input="\n".join(lines), check=False)
        if done.returncode:
            raise LabError(f"{self.name}: ip: {done.stderr.strip()}")

    # Services: scripts that anyone can read, and start by hand.

    def define(self, service: str, command: Sequence[str]) -> None:
        words = " \\\n  ".join(map(shlex.quote, command))
        text = f"#!/bin/sh\necho $$ > {IN}/pids/{service}\nexec {words} >> {IN}/log/{service}.log 2>&1 < /dev/null\n"
        self.write(f"services/{service}", text, 0o755)

    def start(self, *services: str) -> None:
        for service in services:
            self.run("setsid", "--fork", f"{IN}/services/{service}", keep_output=False)

    def stop(self, service: str, signal: str = "TERM") -> None:
        """Returns when it is gone."""
        end = f"cd {IN}/pids && p=$(cat {service}) && rm {service} && kill -{signal} $p"
        self.run("sh", "-c", f"{end} && while [ -d /proc/$p ]; do sleep 0.05; done")

    def ended(self) -> list[Path]:
        """The logs of services that were started, not stopped, and run no more."""
        logs, inside = [], Path(f"/proc/{self.pid}/root/proc")
        for entry in (self.dir / "pids").glob("*"):
            with suppress(FileNotFoundError):
                pid = entry.read_text().strip()
                if pid and not (inside / pid).exists() and entry.exists():
                    logs.append(self.dir / f"log/{entry.name}.log")
        return logs


def rss_kib(pid: int) -> int:
    """Resident memory of a process of the host; 0 for one that is gone."""
    with suppress(OSError):
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") // 1024
    return 0
