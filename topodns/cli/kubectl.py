"""The plugin of kubectl, `kubectl topodns`: asks a server in the cluster through `kubectl port-forward`.

kubectl runs a program `kubectl-topodns` in PATH for the words behind `kubectl topodns`. This program runs kubectl in
turn, so that contexts, logins and proxies are kubectl's own.
"""

import argparse
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Final, NoReturn, cast

from topodns.cli.admin_client import (
    NO_ANSWER,
    AdminError,
    add_report_flags,
    fetch_audit,
    fetch_object,
    object_text,
    print_report,
)
from topodns.cli.colour import show
from topodns.cli.kubectl_client import Kubectl, KubectlError
from topodns.cli.main import run_to_status
from topodns.cli.server_pods import (
    NAMESPACE,
    SELECTOR,
    ApiObject,
    ServerPod,
    find_server_pods,
    pod_addresses,
    pod_name,
    read_pod,
    why_no_forward,
)
from topodns.cli.top import add_top_flags, fetch_top, print_top
from topodns.dns.addresses import packed_address
from topodns.inspect.documents import VERSION, PodWhoDocument, WhoDocument
from topodns.inspect.errors import Refused
from topodns.inspect.text import explanation_text, pod_text, who_text

_KUBECTL_FLAGS: Final = {
    "context": "the context of the kubeconfig",
    "kubeconfig": "the kubeconfig",
    "cluster": "the cluster of the kubeconfig",
    "user": "the user of the kubeconfig",
    "as": "the user to impersonate",
}
_POD: Final = "[NAMESPACE/]NAME of a Pod; without NAMESPACE in that of kubectl's context"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the plugin. Returns the exit status: 0 answered, 2 not, or SIGINT; for `audit` that of `topodns audit`.

    Raises SystemExit for wrong usage (2), and for SIGTERM and SIGHUP: they end the plugin with 128 and their number,
    after the kubectl that it runs.
    """
    flags = plugin_parser().parse_args(sys.argv[1:] if argv is None else argv)
    handlers = {number: signal.signal(number, _end) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        return run_to_status(partial(_run, flags))
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _end(number: int, _: object) -> NoReturn:
    raise SystemExit(128 + number)


def plugin_parser() -> argparse.ArgumentParser:
    """The parser of all commands; each sets `run`, the function that runs it."""
    parser = argparse.ArgumentParser(
        prog="kubectl topodns",
        description="Ask a topodns in the cluster why clients get their answers, where they are, and which get none.",
        epilog="Exit status: 0 answered, 2 not answered or wrong usage; of audit as of `topodns audit`.",
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    explain = _command(commands, "explain", "say why a client gets its answer", _explain)
    client = explain.add_mutually_exclusive_group(required=True)
    client.add_argument("--client", default="", metavar="IP", help="the address that asks")
    client.add_argument("--pod", default="", metavar="POD", help=f"the Pod that asks: {_POD}")
    client.add_argument("--node", default="", metavar="NAME", help="the node that the client is on")
    explain.add_argument("name", help="the name asked for")
    explain.add_argument("type", nargs="?", default="A", help="the type asked for (A)")
    who = _command(commands, "who", "say on which node a client is, and why", _who)
    who.add_argument("client", metavar="ADDRESS|POD", help=f"an address, or {_POD}")
    top = _command(commands, "top", "list the clients or names with the most queries, over all servers", _top)
    add_top_flags(top)
    audit = _command(commands, "audit", "say which clients of Services with topology keys get no endpoint", _audit)
    add_report_flags(audit)
    return parser


def _command(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
    name: str,
    text: str,
    run: Callable[[argparse.Namespace], int],
) -> argparse.ArgumentParser:
    """A parser with the flags of every command."""
    parser = commands.add_parser(name, help=text, description=text.capitalize() + ".", allow_abbrev=False)
    parser.set_defaults(run=run)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        *("-n", "--namespace"),
        default="",
        metavar="NAME",
        help=f"where topodns runs ({NAMESPACE}, or else the one namespace that has it)",
    )
    parser.add_argument(
        *("-l", "--selector"), default=SELECTOR, metavar="LABELS", help=f"the labels of its Pods ({SELECTOR})"
    )
    parser.add_argument("--server-pod", default="", metavar="POD", help="the Pod to ask: [NAMESPACE/]NAME")
    for flag, meaning in _KUBECTL_FLAGS.items():
        parser.add_argument(
            f"--{flag}", dest=f"kubectl_{flag}", default="", metavar="VALUE", help=f"as of kubectl: {meaning}"
        )
    return parser


def _run(flags: argparse.Namespace) -> int:
    try:
        status: int = flags.run(flags)
        return status
    except (AdminError, KubectlError) as problem:
        print(problem, file=sys.stderr)
        return NO_ANSWER


def _kubectl(flags: argparse.Namespace) -> Kubectl:
    given = {flag: getattr(flags, f"kubectl_{flag}") for flag in _KUBECTL_FLAGS}
    return Kubectl([f"--{flag}={value}" for flag, value in given.items() if value])


def _explain(flags: argparse.Namespace) -> int:
    kubectl = _kubectl(flags)
    question = {"name": flags.name, "type": flags.type, "client": flags.client, "node": flags.node}
    if flags.pod:
        question["client"] = _addresses(read_pod(kubectl, flags.pod))[0]
    with _server(flags, kubectl) as server:
        found = fetch_object(server, "/explain", {key: value for key, value in question.items() if value}, "question")
    show(object_text(found, flags.json, explanation_text))
    return 0


def _who(flags: argparse.Namespace) -> int:
    kubectl = _kubectl(flags)
    pod = None if _is_address(flags.client) else read_pod(kubectl, flags.client)
    addresses = (flags.client,) if pod is None else _addresses(pod)
    with _server(flags, kubectl) as server:
        found = [fetch_object(server, "/who", {"client": address}, "clusters") for address in addresses]
    if pod is None:
        show(object_text(found[0], flags.json, who_text))
        return 0
    node = pod.get("spec", {}).get("nodeName")
    replies = cast("list[WhoDocument]", found)
    document: PodWhoDocument = {"version": VERSION, "pod": pod_name(pod), "node": node, "addresses": replies}
    show(object_text(document, flags.json, pod_text))
    return 0


def _top(flags: argparse.Namespace) -> int:
    kubectl = _kubectl(flags)
    documents = []
    for pod in find_server_pods(kubectl, flags.namespace, flags.selector, flags.server_pod):
        with _forwarded(kubectl, pod) as server:
            documents.append(fetch_top(server, flags.by))
    print_top(documents, flags)
    return 0


def _audit(flags: argparse.Namespace) -> int:
    from topodns.inspect.what_if import parse_changes  # here: `explain` and `who` load nothing of clusters

    changes = flags.what_if or []
    try:
        parse_changes(changes)
        with _server(flags, _kubectl(flags)) as server:
            document = fetch_audit(server, changes)
        return print_report(document, flags)
    except (AdminError, KubectlError, Refused) as problem:
        print(problem, file=sys.stderr)
        return NO_ANSWER


@contextmanager
def _server(flags: argparse.Namespace, kubectl: Kubectl) -> Iterator[str]:
    """Within the context, HOST:PORT of the server that the flags choose. Raises KubectlError."""
    pod = find_server_pods(kubectl, flags.namespace, flags.selector, flags.server_pod)[0]
    with _forwarded(kubectl, pod) as server:
        yield server


@contextmanager
def _forwarded(kubectl: Kubectl, pod: ServerPod) -> Iterator[str]:
    """Within the context, HOST:PORT of the server in this Pod. Raises KubectlError."""
    print(f"asking Pod {pod.namespace}/{pod.name}, port {pod.port}", file=sys.stderr)
    try:
        with kubectl.port_forward(pod.namespace, pod.name, pod.port) as server:
            yield server
    except KubectlError as problem:
        raise KubectlError(f"{problem}{why_no_forward(kubectl, pod)}") from None


def _addresses(pod: ApiObject) -> tuple[str, ...]:
    found = pod_addresses(pod)
    if not found:
        raise KubectlError(f"Pod {pod_name(pod)} has no address yet")
    return found


def _is_address(text: str) -> bool:
    try:
        return bool(packed_address(text))
    except ValueError:
        return False
