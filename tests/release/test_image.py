"""The content of the image, and that it runs as a container runtime would run it: by its user, the root read-only."""

import csv
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from release.image import ENVIRONMENT, LABELS, LIBRARIES, LINKS, NET_BIND_SERVICE, PACKAGES, PYTHON, USER, labels
from release.sbom import IMAGE_LOCK, IMAGE_PYTHON, bill_of_materials
from release.source import ROOT, VERSION, created, revision
from tests.kubelab.apt import machine_architecture
from tests.kubelab.cache import CACHE
from tests.support.emulation import MACHINES
from tests.support.host_network_builder import host_network
from tests.support.image_root import (
    WITHOUT_ITS_CAPABILITY,
    WITHOUT_NEW_PRIVILEGES,
    Archive,
    architecture_of,
    confined,
)
from tests.support.server_process import until
from topodns.hostnet.nftables_ruleset import KEY_LENGTH, parse_table, table_text

MAX_BEYOND_PYTHON = 68_000_000  # octets, not compressed; arm64's programs are aligned to 64 KiB
SHELLS = ("/bin/sh", "/bin/bash", "/bin/dash", "/usr/bin/sh", "/bin/busybox", "/usr/bin/env")
QUESTION = """
import socket, sys, time
query = bytes.fromhex("123401000001000000000000") + b"\\x05cache\\x04shop\\x03svc\\x07cluster\\x05local\\0\\0\\1\\0\\1"
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
    client.settimeout(1)
    for _ in range(20):
        client.sendto(query, ("127.0.0.1", int(sys.argv[1])))
        try:
            print(client.recv(512).hex())
            break
        except OSError:
            time.sleep(0.1)
"""


def run(root: Path, files: Path, *command: str, user: str = USER, limits: str = "") -> subprocess.CompletedProcess[str]:
    words = confined(root, user, files, command, limits)
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=600)


def test_the_same_input_makes_the_same_octets_for_every_user(archive: Archive, tmp_path: Path) -> None:
    """With nothing of an earlier build but the packages of Debian as they were downloaded."""
    (tmp_path / "cache").mkdir()
    for downloaded in ("debs", "apt"):
        (tmp_path / "cache" / downloaded).symlink_to(CACHE / downloaded)
    call = f"assemble(Path('{tmp_path}/again.tar'), architecture='{archive.config()['architecture']}')"
    code = f"from pathlib import Path; from release.image import assemble; {call}"
    environment = {**os.environ, "KUBELAB_CACHE": f"{tmp_path}/cache", "PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo"}
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, umask=0o077, check=True)
    assert (tmp_path / "again.tar").read_bytes() == archive.path.read_bytes()


def test_the_configuration_of_the_image_is_complete(archive: Archive) -> None:
    config = archive.config()
    assert config["created"] == created()
    assert config["config"] == {
        "User": "65532:65532",
        "Entrypoint": ["/topodns"],
        "Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", *ENVIRONMENT],
        "WorkingDir": "/",
        "ExposedPorts": {"53/tcp": {}, "53/udp": {}},
        "Labels": labels(),
    }
    assert labels() == LABELS | {
        "org.opencontainers.image.version": VERSION,
        "org.opencontainers.image.revision": revision(),
        "org.opencontainers.image.created": created(),
    }


def test_beyond_a_base_with_python_it_is_small(archive: Archive) -> None:
    _, *beyond = archive.layer_sizes()
    assert sum(beyond) < MAX_BEYOND_PYTHON


def test_there_is_no_shell_and_nothing_that_builds(archive: Archive) -> None:
    names = archive.names()
    assert [shell for shell in SHELLS if shell in names] == []
    built_with = re.compile(r"/(pip|setuptools|wheel|ensurepip/_bundled)/|bin/(gcc|cc|make|apt-get|dpkg|pip3?)$")
    assert [name for name in names if built_with.search(name)] == []


def test_scanners_find_the_packages_of_debian(archive: Archive) -> None:
    noted = {name.rpartition("/")[2] for name in archive.names() if name.startswith("/var/lib/dpkg/status.d/")}
    assert noted == {name for wanted, others in PACKAGES.items() for name in (wanted, *others.split())}


def test_the_bill_of_materials_lists_the_libraries_that_are_in_the_image(archive: Archive) -> None:
    found = re.compile(rf"{re.escape(LIBRARIES)}/([^/]+)-([^/-]+)\.dist-info/METADATA")
    installed = {match.groups() for match in map(found.fullmatch, archive.names()) if match}
    listed = {(each["name"].replace("-", "_"), each["version"]) for each in bill_of_materials(IMAGE_LOCK)["components"]}
    assert installed == listed | {("topodns", VERSION)}


def test_every_module_has_bytecode_of_the_images_python(archive: Archive) -> None:
    """Without it a start takes longer, and its root is read-only."""
    names = archive.names()
    modules = [name for name in names if name.endswith(".py") and "/lib/python3" in name]
    assert {f"{LIBRARIES}/topodns/__init__.py", f"/usr/lib/python{IMAGE_PYTHON}/os.py"} < {*modules}
    without = [name.rpartition("/")[2] for name in modules if bytecode_of(name) not in names]
    assert without == ["sitecustomize.py"]  # a link to /etc, where Debian's Python has it


def bytecode_of(module: str) -> str:
    folder, _, name = module.rpartition("/")
    return f"{folder}/__pycache__/{name.removesuffix('.py')}.cpython-{IMAGE_PYTHON.replace('.', '')}.pyc"


def test_no_file_but_the_interpreter_has_extra_privileges(root: Path) -> None:
    granted, with_set_id = [], []
    for path in (path for path in root.rglob("*") if path.is_file() and not path.is_symlink()):
        if path.stat().st_mode & 0o6000:
            with_set_id.append(path)
        if "security.capability" in os.listxattr(path):
            granted.append(path)
    assert with_set_id == []
    assert granted == [Path(f"{root}{PYTHON}")]
    assert os.getxattr(granted[0], "security.capability") == NET_BIND_SERVICE


def test_every_library_of_every_program_is_there(root: Path, demo: Path) -> None:
    """A library that the dynamic linker does not find would be missed only once it is used."""
    binaries = [f"/{path.relative_to(root)}" for path in root.rglob("*") if is_dynamic(path)]
    assert f"{PYTHON}" in binaries
    command = ["/usr/bin/python3", "-c", LINKED, MACHINES[architecture_of(root)].loader, *binaries]
    done = run(root, demo, *command, user="0:0")
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""


def test_every_program_and_library_is_of_the_images_architecture(archive: Archive, root: Path) -> None:
    files = [path for path in root.rglob("*") if is_dynamic(path)]
    expected = MACHINES[archive.config()["architecture"]].elf
    assert len(files) > 100
    assert [path for path in files if int.from_bytes(path.read_bytes()[18:20], "little") != expected] == []


LINKED = """
import subprocess, sys
for path in sys.argv[2:]:
    found = subprocess.run([sys.argv[1], "--list", path], capture_output=True, text=True)
    text = found.stdout + found.stderr
    if "not found" in text or "cannot open" in text:
        print(path, text)
"""


def is_dynamic(path: Path) -> bool:
    if path.is_symlink() or not path.is_file() or path.name.startswith(("ld-linux", "libc.so")):
        return False
    with open(path, "rb") as file:
        head = file.read(20)
    return head[:4] == b"\x7fELF" and head[16] in (2, 3)


@pytest.mark.parametrize("name", LINKS)
def test_each_name_of_the_image_prints_the_version(root: Path, demo: Path, name: str) -> None:
    done = run(root, demo, name, "-version")
    assert done.stdout.splitlines()[0] == f"topodns-{VERSION}", done.stderr


def test_without_the_capability_in_the_bounding_set_only_python3_can_be_started(root: Path, demo: Path) -> None:
    done = run(root, demo, "/topodns", "-version", limits=WITHOUT_ITS_CAPABILITY)
    assert "Operation not permitted" in done.stderr
    done = run(root, demo, "python3", "-m", "topodns", "-version", limits=WITHOUT_ITS_CAPABILITY)
    assert done.stdout.splitlines()[0] == f"topodns-{VERSION}", done.stderr


def test_a_corefile_is_checked(root: Path, demo: Path) -> None:
    done = run(root, demo, "/topodns", "check", "-conf", "/run/Corefile")
    assert (done.returncode, done.stdout) == (0, "/run/Corefile: good: 1 server block\n"), done.stderr


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Path:
    """A folder with a Corefile that names a kubeconfig."""
    (tmp_path / "config").write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: x\n"
        "contexts: [{name: x, context: {cluster: c, user: u}}]\n"
        "clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]\n"
        "users: [{name: u, user: {token: abc}}]\n"
    )
    (tmp_path / "Corefile").write_text(
        ".:1053 {\n    kubernetes cluster.local {\n        kubeconfig config\n    }\n}\n"
    )
    tmp_path.chmod(0o755)
    return tmp_path


@pytest.mark.parametrize("command", [["check", "-conf", "/run/Corefile"], ["-conf", "/run/Corefile"]])
def test_a_kubeconfig_is_refused_and_the_way_out_is_named(root: Path, kubeconfig: Path, command: list[str]) -> None:
    done = run(root, kubeconfig, "/topodns", *command)
    assert done.returncode == 1
    assert "/run/Corefile:3: 'kubeconfig' needs the Python package kubernetes" in done.stdout + done.stderr
    assert "use the image topodns-tools" in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def test_the_image_with_the_kubernetes_package_reads_a_kubeconfig(tools_root: Path, kubeconfig: Path) -> None:
    done = run(tools_root, kubeconfig, "/topodns", "check", "-conf", "/run/Corefile")
    assert (done.returncode, done.stderr) == (0, "")


def test_the_image_with_the_kubernetes_package_has_its_client(tools_root: Path, demo: Path) -> None:
    code = "from kubernetes.aio import client, watch; from kubernetes.aio.leaderelection import leaderelection; "
    done = run(tools_root, demo, "python3", "-c", code + "print(client.CoreV1Api.__name__)")
    assert done.stdout == "CoreV1Api\n", done.stderr


def test_the_locator_runs_from_the_image_with_the_kubernetes_package_alone(
    root: Path, tools_root: Path, demo: Path
) -> None:
    refused = run(root, demo, "/topodns", "locator", "--kubeconfig", "/absent")
    assert refused.returncode == 1
    assert refused.stderr.startswith("topodns locator needs the Python package kubernetes")
    assert "use the image topodns-tools" in refused.stderr
    done = run(tools_root, demo, "/topodns", "locator", "--kubeconfig", "/absent")
    assert done.returncode == 1
    assert done.stderr.startswith("cannot read /absent: ")


def test_nothing_is_deleted_from_an_installed_wheel(root: Path) -> None:
    assert deleted_files(root) == []


def test_nothing_is_deleted_from_a_wheel_beside_the_kubernetes_package_either(tools_root: Path) -> None:
    assert deleted_files(tools_root) == []


def deleted_files(root: Path) -> list[str]:
    """The files that wheels list and the image lacks."""
    libraries = Path(f"{root}{LIBRARIES}")
    records = sorted(libraries.glob("*.dist-info/RECORD"))
    assert len(records) > 10
    listed = {row[0] for record in records for row in csv.reader(record.read_text().splitlines())}
    return [name for name in sorted(listed) if not (libraries / name).exists()]


@pytest.mark.parametrize("program", ["nft", "iptables-nft-save", "ip6tables-nft-restore", "iptables", "ip6tables"])
def test_the_firewalls_programs_run(root: Path, demo: Path, program: str) -> None:
    if architecture_of(root) != machine_architecture():
        pytest.skip("NO FIREWALL BY QEMU-USER: it has no NETLINK_NETFILTER, which nft and iptables need to start")
    done = run(root, demo, f"/usr/sbin/{program}", "--version")
    assert done.returncode == 0, done.stderr


def test_the_nodes_older_nft_reads_the_rules_that_the_images_nft_writes(root: Path) -> None:
    """Else other programs of the node, such as kube-proxy, could no longer use nftables."""
    if architecture_of(root) != machine_architecture() or not shutil.which("nft"):
        pytest.skip("NO TWO VERSIONS OF NFT: it takes this machine's, and an image of its architecture")
    rules = table_text(host_network("169.254.20.10,fd00::10"), bytes(KEY_LENGTH), None)
    script = 'chroot "$1" /usr/sbin/nft -f - && nft add table inet other && nft -j list table inet topodns'
    command = ["unshare", "--net", "sh", "-c", script, "sh", str(root)]
    done = subprocess.run(command, input=rules, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert parse_table(done.stdout).usable


@pytest.mark.parametrize(
    ("port", "limits", "corefile"),
    [
        (1053, WITHOUT_NEW_PRIVILEGES, "/run/Corefile"),
        (53, "", "/run/Corefile"),
        (53, "", "/demo/container/Corefile"),
    ],
    ids=["any port without new privileges", "port 53 by the capability of the file", "the example in the image"],
)
def test_it_serves_by_its_user_with_the_root_read_only(
    root: Path, demo: Path, port: int, limits: str, corefile: str
) -> None:
    command = ["/coredns", "-conf", corefile, "-dns.port", str(port)]
    with subprocess.Popen(
        confined(root, USER, demo, command, limits), stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as server:
        try:
            until(lambda: process_of(server.pid), "the server runs")
            inner = process_of(server.pid)
            status = dict(line.split(":\t", 1) for line in Path(f"/proc/{inner}/status").read_text().splitlines())
            assert (status["Uid"].split()[1], status["Gid"].split()[1]) == tuple(USER.split(":"))
            assert int(status["CapEff"], 16) == (0 if limits else 0x400)
            assert answer(inner, port).startswith("1234")
            assert "shop" not in os.listdir(root)
            (mount,) = [line for line in mounts(inner) if line[4] == "/"]
            assert "ro" in mount[5].split(",")
        finally:
            # unshare's --kill-child does not reach it: the kernel forgets that signal where a process changes its user.
            if inner := process_of(server.pid):
                os.kill(inner, signal.SIGKILL)
            server.kill()


def mounts(pid: int) -> Sequence[list[str]]:
    return [line.split() for line in Path(f"/proc/{pid}/mountinfo").read_text().splitlines()]


def process_of(unshare: int) -> int:
    """The process of the server below that which has made its namespaces, once it runs the server; else 0."""
    children = Path(f"/proc/{unshare}/task/{unshare}/children").read_text().split()
    if not children:
        return 0
    words = Path(f"/proc/{children[0]}/cmdline").read_bytes().split(b"\0")
    return int(children[0]) if PYTHON.encode() in words[:2] else 0  # an emulator comes before it


def answer(pid: int, port: int) -> str:
    """The answer of a server in the network of this process, in hexadecimal; "" where there is none."""
    command = ["nsenter", "--net", "--target", str(pid), "python3", "-c", QUESTION, str(port)]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
