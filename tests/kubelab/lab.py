"""A lab: one state directory and the machines in it. `control-plane` carries a bridge, every node has a cable to it.

All that the host sees of a lab is processes, one cgroup, and one port on 127.0.0.1 that leads to the API server.
"""

import fcntl
import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.kubelab import control_plane, users
from tests.kubelab.api import Answer, Api, Object
from tests.kubelab.cache import CACHE, HERE
from tests.kubelab.cgroups import Cgroup, cgroup_pids, join, own_cgroups, remove_cgroups
from tests.kubelab.containerd import give_first_images, load_image
from tests.kubelab.images import lab_images
from tests.kubelab.machine import LabError, Machine
from tests.kubelab.network import wire_control_plane, wire_node
from tests.kubelab.node import define_node, node_object
from tests.kubelab.options import API, Node, Options
from tests.kubelab.programs import missing_programs, programs


class Lab:
    """A cluster in this directory, whether it is up or not."""

    def __init__(self, directory: Path) -> None:
        self.dir = directory.resolve()
        self._children: list[subprocess.Popen[bytes]] = []
        self.name = f"kubelab-{hashlib.sha256(str(self.dir).encode()).hexdigest()[:10]}"

    # What it consists of.

    @cached_property
    def facts(self) -> dict[str, Any]:
        """lab.json, which `up` writes before it makes anything."""
        try:
            facts: dict[str, Any] = json.loads((self.dir / "lab.json").read_text())
        except OSError:
            raise LabError(f"no lab in {self.dir}") from None
        return facts

    @cached_property
    def options(self) -> Options:
        noted = self.facts["options"]
        return Options(**noted | {"nodes": [Node(**node) for node in noted["nodes"]]})

    @cached_property
    def cgroups(self) -> list[Cgroup]:
        return [Cgroup(**cgroup) for cgroup in self.facts["cgroups"]]

    @cached_property
    def machines(self) -> dict[str, Machine]:
        names = (control_plane.NAME, *(node.name for node in self.options.nodes))
        return {name: Machine(name, self.dir / name, self.cgroups) for name in names}

    @cached_property
    def api(self) -> Api:
        return Api(self.kubeconfig)

    @property
    def kubeconfig(self) -> Path:
        return self.dir / "kubeconfig"

    @property
    def control(self) -> Machine:
        return self.machines[control_plane.NAME]

    @property
    def node_machines(self) -> list[Machine]:
        return [self.machines[node.name] for node in self.options.nodes]

    def machine(self, name: str) -> Machine:
        if name not in self.machines:
            raise LabError(f"no machine {name}; there are {', '.join(self.machines)}")
        return self.machines[name]

    def node(self, name: str) -> Node:
        return next(node for node in self.options.nodes if node.name == name)

    def kubectl(self, *words: str) -> list[str]:
        """The command that runs kubectl on the host as administrator, for subprocess."""
        own = [f"--kubeconfig={self.kubeconfig}", f"--cache-dir={self.dir}/kubectl-cache"]
        return [str(programs()["kubectl"]), *own, *words]

    # Up.

    def up(self, options: Options, archives: Sequence[Path] = (), patience: float = 120) -> None:
        """Start it, with these images beside the usual ones; returns when all nodes are Ready."""
        self._check_possible()
        with self._locked():
            if (self.dir / "ready").exists() and self.control.pid:
                raise LabError(f"already up in {self.dir}")
            self._clear()
            for name in ("facts", "options", "cgroups", "machines", "api"):
                self.__dict__.pop(name, None)
            cgroups = [asdict(cgroup) for cgroup in own_cgroups(self.name)]
            self._note({"options": asdict(options), "cgroups": cgroups})
            try:
                self._start(archives, _Waiting(self, patience))
            except BaseException:
                self._clear(keep_logs=True)
                raise

    def _check_possible(self) -> None:
        if os.geteuid():
            raise LabError("kubelab needs root")
        if missing := missing_programs():
            raise LabError(f"{CACHE} lacks {' '.join(missing)}: run kubelab prepare")
        if self.dir.exists() and any(self.dir.iterdir()) and not (self.dir / "lock").exists():
            raise LabError(f"{self.dir} is not empty and not a lab")

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """One `up` or `down` at a time; a killed one holds no lock."""
        self.dir.mkdir(parents=True, exist_ok=True)
        with open(self.dir / "lock", "w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise LabError(f"another up or down is at work in {self.dir}") from None
            yield

    def _note(self, facts: dict[str, Any]) -> None:
        (self.dir / "lab.json").write_text(json.dumps(facts))

    def _start(self, archives: Sequence[Path], waiting: "_Waiting") -> None:
        nodes = self.options.nodes
        users.make_keys(self.dir / "pki")
        token = users.write_users(self.dir / "pki", self.control, self.node_machines)
        self._create_control_plane()
        self._open_door(token)
        waiting.say("control plane started")
        services = ["kubelet"] + ["kube-proxy"] * (self.options.proxy_mode != "none")
        with ThreadPoolExecutor(len(nodes)) as pool:
            list(pool.map(self._create_node, nodes))
            waiting.say("nodes made")
            images = pool.submit(give_first_images, self.node_machines, [*lab_images(), *archives])
            waiting.until("API server ready", lambda: self.api.call("GET", "/readyz").ok)
            for node in nodes:
                self.register(node)
            self.control.start("kube-controller-manager", "kube-scheduler")
            images.result()
            waiting.say("images there")
            list(pool.map(lambda machine: machine.start(*services), self.node_machines))
        waiting.until("nodes Ready", self.all_ready)
        waiting.until("service accounts there", self._has_accounts)
        (self.dir / "ready").touch()

    def _has_accounts(self) -> bool:
        paths = [f"/api/v1/namespaces/{name}/serviceaccounts/default" for name in ("default", "kube-system")]
        return all(self.api.call("GET", path).ok for path in paths)

    def _create(self, machine: Machine) -> None:
        known = [("127.0.0.1", "localhost"), ("::1", "localhost"), (API, control_plane.NAME)]
        known += [(node.ips[0], node.name) for node in self.options.nodes]
        machine.write("etc.upper/resolv.conf", f"nameserver {API}\n")
        machine.write("etc.upper/hosts", "".join(f"{address} {name}\n" for address, name in known))
        self._children.append(machine.create())

    def _create_control_plane(self) -> None:
        self._create(self.control)
        wire_control_plane(self.control, self.options)
        control_plane.define_control_plane(self.control, self.options)
        self.control.start("etcd", "kube-apiserver")

    def _create_node(self, node: Node) -> None:
        machine = self.machines[node.name]
        define_node(machine, node, self.options)
        self._create(machine)
        wire_node(machine, self.control, node, self.options)

    def _open_door(self, token: str) -> None:
        """The relay: listens on the host's loopback, connects in the control plane's network namespace."""
        enter = f'{join(self.control.leaves)}\nexec nsenter --net=/proc/{self.control.pid}/ns/net -- "$@"'
        with (
            socket.create_server(("127.0.0.1", 0)) as listener,
            open(self.control.dir / "log/relay.log", "wb") as log,
        ):
            relay = [sys.executable, str(HERE / "relay.py"), str(listener.fileno()), API, "6443"]
            process = subprocess.Popen(
                ["sh", "-c", enter, "sh", *relay],
                pass_fds=[listener.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
            self._children.append(process)
            self.facts["port"] = listener.getsockname()[1]
        self._note(self.facts)
        server = f"https://127.0.0.1:{self.facts['port']}"
        self.kubeconfig.touch(0o600)
        self.kubeconfig.write_text(json.dumps(users.kubeconfig(server, token, f"{self.dir}/pki/ca.crt"), indent=1))

    # While it runs.

    def register(self, node: Node) -> Answer:
        """Make the Node object, or bring it back."""
        return self.api.call("POST", "/api/v1/nodes", node_object(node, self.options))

    def ready(self) -> dict[str, bool]:
        """Whether each Node there has the condition Ready; empty where the API server does not answer."""
        answer = self.api.call("GET", "/api/v1/nodes")
        return {node["metadata"]["name"]: _is_ready(node) for node in answer.body["items"]} if answer.ok else {}

    def all_ready(self) -> bool:
        ready = self.ready()
        return all(ready.get(node.name) for node in self.options.nodes)

    def load_image(self, archive: Path) -> None:
        load_image(self.node_machines, archive)

    # Down.

    def down(self, keep_logs: bool = False) -> None:
        """End all of it, however far `up` came; safe to repeat."""
        if not (self.dir / "lock").exists():
            return
        with self._locked():
            self._clear(keep_logs)
        if not keep_logs:
            with suppress(OSError):
                (self.dir / "lock").unlink()
                self.dir.rmdir()

    def _clear(self, keep_logs: bool = False) -> None:
        """End every process in the lab's cgroups; with them go namespaces, links and mounts. Then the files."""
        (self.dir / "ready").unlink(missing_ok=True)
        paths = self._cgroup_paths()
        _kill_all(paths)
        while self._children:
            self._children.pop().wait(10)
        left = paths
        deadline = time.monotonic() + 10
        while left := remove_cgroups(left):
            if time.monotonic() > deadline:
                raise LabError(f"could not remove {' '.join(left)}: processes {cgroup_pids(left)}")
            time.sleep(0.05)
        tops = list(self.dir.iterdir())
        entries = [inside for top in tops for inside in (top.iterdir() if keep_logs and top.is_dir() else [top])]
        _remove([entry for entry in entries if entry.name not in ("lock", "log")])

    def _cgroup_paths(self) -> list[str]:
        paths = {cgroup.path for cgroup in own_cgroups(self.name)}
        with suppress(LabError, ValueError, KeyError):  # none noted, or only half
            paths |= {cgroup.path for cgroup in self.cgroups}
        return [path for path in paths if os.path.basename(path) == self.name and os.path.isdir(path)]


class _Waiting:
    """The course of one `up`: said as it goes, and given up where it stops."""

    def __init__(self, lab: Lab, patience: float) -> None:
        self._lab, self._patience, self._begun = lab, patience, time.monotonic()

    def say(self, text: str) -> None:
        print(f"{time.monotonic() - self._begun:6.1f}s {text}", file=sys.stderr, flush=True)

    def until(self, what: str, test: Callable[[], bool]) -> None:
        while not test():
            for log in (log for machine in self._lab.machines.values() for log in machine.ended()):
                raise LabError(f"ended: {log}:\n" + "\n".join(log.read_text().splitlines()[-3:]))
            if time.monotonic() - self._begun > self._patience:
                raise LabError(f"not in {self._patience:.0f} s: {what}; logs: {self._lab.dir}/*/log")
            time.sleep(0.1)
        self.say(what)


def _kill_all(paths: Sequence[str]) -> None:
    """Until none is left: a process may have begun another meanwhile."""
    for _ in range(200):
        pids = cgroup_pids(paths) - {0, os.getpid()}
        if not pids:
            return
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)


def _remove(entries: Sequence[Path]) -> None:
    """Side by side: the nodes' containerd folders have tens of thousands of files."""
    removals = [subprocess.Popen(["rm", "-rf", "--one-file-system", entry]) for entry in entries]
    if any([removal.wait() for removal in removals]):
        raise LabError(f"could not remove all of {' '.join(map(str, entries))}")


def _is_ready(node: Object) -> bool:
    conditions = node["status"].get("conditions", ())
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)
