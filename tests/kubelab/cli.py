"""The commands of kubelab."""

import argparse
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.kubelab.cache import CACHE
from tests.kubelab.debian import DEBIAN_LAYERS, debian_layer
from tests.kubelab.images import Image, requirements_layer, write_image
from tests.kubelab.kwok import FakeNode, add_fake_nodes, remove_fake_nodes
from tests.kubelab.lab import Lab
from tests.kubelab.machine import LabError
from tests.kubelab.options import CLUSTER_DNS, Options, node_list
from tests.kubelab.prepare import prepare
from tests.kubelab.status import status

_TITLE: Final = "A real Kubernetes of several nodes on one machine, closed off from it."
_WITHOUT_LAB: Final = ("prepare", "image", "up", "down")

Arguments = argparse.Namespace


def main(words: Sequence[str]) -> int:
    own, rest = _split(words)
    arguments = _parser().parse_args(own)
    arguments.rest = rest
    try:
        lab = Lab(arguments.state)
        if arguments.command not in _WITHOUT_LAB and not lab.kubeconfig.exists():
            raise LabError(f"no lab is up in {lab.dir}")
        _COMMANDS[arguments.command](lab, arguments)
    except LabError as problem:
        print(f"kubelab: {problem}", file=sys.stderr)
        return 1
    except subprocess.CalledProcessError as problem:
        said = problem.stderr or b""
        print(f"kubelab: {problem}\n{said if isinstance(said, str) else said.decode()}", file=sys.stderr)
        return 1
    return 0


def _split(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The words after `kubectl` or `exec-node NODE` belong to that command, options and all: argparse must not see
    them. --state may be before the command or right after it.
    """
    state, rest = _take_state(list(words))
    own, rest = rest[:1], rest[1:]
    later, rest = _take_state(rest)
    state = later or state
    if own == ["kubectl"]:
        return own + state, rest
    if own == ["exec-node"]:
        return own + state + rest[:1], rest[2:] if rest[1:2] == ["--"] else rest[1:]
    return own + state + rest, []


def _take_state(words: list[str]) -> tuple[list[str], list[str]]:
    if not words or words[0].split("=")[0] != "--state":
        return [], words
    size = 1 if "=" in words[0] else 2
    return words[:size], words[size:]


def _parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="kubelab", description=_TITLE)
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    default = Path(os.environ.get("KUBELAB_STATE") or CACHE / "lab")

    def command(name: str, text: str) -> argparse.ArgumentParser:
        new = commands.add_parser(name, help=text, description=text)
        place = "directory of the lab (default: $KUBELAB_STATE, or `lab` in the cache)"
        new.add_argument("--state", type=Path, default=default, help=place)
        return new

    command("prepare", "fill the cache: programs, CNI plugins, images")
    _add_up(command("up", "start a lab and wait until its nodes are Ready"))
    command("down", "end a lab and remove its files").add_argument("--keep-logs", action="store_true")
    command("status", "machines, addresses, processes")
    command("kubeconfig", "print a kubeconfig for use on the host")
    command("kubectl", "run kubectl as administrator")
    command("exec-node", "run a command on a machine (nodeN or control-plane)").add_argument("node")
    load = command("load-image", "import image archives into every node's containerd")
    load.add_argument("archives", type=Path, nargs="+")
    fake = command("fake-nodes", "have so many nodes with no machine behind them, played by kwok (0: none)")
    fake.add_argument("count", type=int)
    fake.add_argument("--zones", default="a,b,c", help="zone of each node, in turn (default: a,b,c)")
    service = command("service", "stop, kill or start a service of a machine (kubelet, kube-apiserver, ...)")
    service.add_argument("node")
    service.add_argument("action", choices=["start", "stop", "kill", "restart"])
    service.add_argument("service")
    _add_image(command("image", "assemble an image archive, without a registry"))
    return top


def _add_up(up: argparse.ArgumentParser) -> None:
    up.add_argument("--nodes", type=int, help="how many (default: as many as zones)")
    up.add_argument("--zones", default="a,a,b,c", help="zone of each node, or REGION/ZONE (default: a,a,b,c)")
    up.add_argument("--dual-stack", action="store_true", help="IPv6 beside IPv4 for nodes, pods and Services")
    up.add_argument("--proxy-mode", default="nftables", choices=["nftables", "iptables", "none"])
    up.add_argument("--cluster-dns", default=CLUSTER_DNS, help=f"pods' nameserver (default: {CLUSTER_DNS})")
    up.add_argument("--timeout", type=float, default=120)


def _add_image(image: argparse.ArgumentParser) -> None:
    image.add_argument("out", type=Path)
    image.add_argument("name")
    for layer in DEBIAN_LAYERS:
        help_text = f"begin with the layer {layer}"
        image.add_argument(f"--{layer}", action="append_const", dest="layers", const=layer, default=[], help=help_text)
    image.add_argument("--requirements", type=Path, help="a pip lock file with hashes, to install for Python")
    image.add_argument("--add", action="append", default=[], metavar="SRC:DST", help="a file, or what a folder holds")
    image.add_argument("--entrypoint", type=_words, default=[], help="shell words or a JSON list")
    image.add_argument("--cmd", type=_words, default=[], help="shell words or a JSON list")
    image.add_argument("--env", action="append", default=[], metavar="NAME=VALUE")
    image.add_argument("--workdir", default="/")
    image.add_argument("--user", default="")


def _words(text: str) -> list[str]:
    return list(map(str, json.loads(text))) if text.startswith("[") else shlex.split(text)


def _up(lab: Lab, arguments: Arguments) -> None:
    nodes = node_list(arguments.zones, arguments.nodes)
    options = Options(nodes, arguments.dual_stack, arguments.proxy_mode, arguments.cluster_dns)
    lab.up(options, patience=arguments.timeout)


def _replace_process(command: list[str]) -> None:
    os.execv(command[0], command)


def _service(lab: Lab, arguments: Arguments) -> None:
    machine = lab.machine(arguments.node)
    if arguments.action != "start":
        machine.stop(arguments.service, "KILL" if arguments.action == "kill" else "TERM")
    if arguments.action in ("start", "restart"):
        if arguments.service == "kubelet":
            lab.register(lab.node(machine.name))
        machine.start(arguments.service)


def _image(_: Lab, arguments: Arguments) -> None:
    layers = [debian_layer(name) for name in arguments.layers]
    if arguments.requirements:
        layers.append(requirements_layer(arguments.requirements))
    pairs = [added.rsplit(":", 1) for added in arguments.add]
    image = Image(
        name=arguments.name,
        layers=layers,
        add=[(Path(source), target) for source, target in pairs],
        entrypoint=arguments.entrypoint,
        command=arguments.cmd,
        environment=arguments.env,
        directory=arguments.workdir,
        user=arguments.user,
    )
    write_image(arguments.out, image)


def _load(lab: Lab, arguments: Arguments) -> None:
    for archive in arguments.archives:
        lab.load_image(archive)


def _fake_nodes(lab: Lab, arguments: Arguments) -> None:
    remove_fake_nodes(lab)
    nodes = [FakeNode(i, node.labels) for i, node in enumerate(node_list(arguments.zones, arguments.count))]
    if arguments.count:
        add_fake_nodes(lab, nodes)


_COMMANDS: Final[Mapping[str, Callable[[Lab, Arguments], None]]] = {
    "prepare": lambda lab, arguments: prepare(),
    "up": _up,
    "down": lambda lab, arguments: lab.down(arguments.keep_logs),
    "status": lambda lab, arguments: print(status(lab)),
    "kubeconfig": lambda lab, arguments: print(lab.kubeconfig.read_text()),
    "kubectl": lambda lab, arguments: _replace_process(lab.kubectl(*arguments.rest)),
    "exec-node": lambda lab, arguments: _replace_process(lab.machine(arguments.node).command(*arguments.rest)),
    "load-image": _load,
    "fake-nodes": _fake_nodes,
    "service": _service,
    "image": _image,
}
