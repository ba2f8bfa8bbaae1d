"""Debian's archive by apt: what this machine's apt offers, and for another architecture or suite what apt offers with
lists of its own, in the cache. The machine's lists and architectures stay as they are.
"""

import fcntl
import subprocess
from functools import cache
from pathlib import Path
from typing import Final

from tests.kubelab.cache import CACHE, say

KEYRING: Final = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
DEVELOPMENT: Final = "sid"  # Debian's development release, which has neither updates nor security fixes of its own

_APT: Final = ("apt-get", "-qq", "-o", "APT::Sandbox::User=root")


@cache
def machine_architecture() -> str:
    """Debian's name of this machine's architecture: "amd64", "arm64". Raises OSError or CalledProcessError."""
    command = ["dpkg", "--print-architecture"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def apt_get(architecture: str = "", suite: str = "") -> list[str]:
    """The first words of `apt-get download` for an architecture and a suite, by default this machine's.

    Other lists than the machine's are brought up to date, once in a process. Raises OSError on a machine without
    Debian's archive, CalledProcessError where it cannot be reached and the cache has no lists.
    """
    architecture = architecture or machine_architecture()
    return [*_APT, *(_own_lists(architecture, suite) if suite or architecture != machine_architecture() else ())]


@cache
def _own_lists(architecture: str, suite: str) -> tuple[str, ...]:
    """Options by which apt uses lists in the cache; nothing counts as installed."""
    folder = CACHE / "apt" / f"{suite or 'machine'}-{architecture}"
    for name in ("lists/partial", "cache/archives/partial"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    begin = f"deb [arch={architecture} signed-by={KEYRING}] "
    (folder / "sources.list").write_text("".join(f"{begin}{source}\n" for source in _sources(suite)))
    options = {
        "APT::Architecture": architecture,
        "APT::Architectures": architecture,
        "Acquire::Languages": "none",
        "Dir::Cache": folder / "cache",
        "Dir::Etc::sourcelist": folder / "sources.list",
        "Dir::Etc::sourceparts": "-",
        "Dir::State::lists": folder / "lists",
        "Dir::State::status": "/dev/null",
    }
    words = tuple(f"-o{name}={value}" for name, value in options.items())
    with open(folder / "lock", "w") as turn:  # apt does not wait for another that has these lists
        fcntl.flock(turn, fcntl.LOCK_EX)
        update = subprocess.run([*_APT, *words, "update"], check=False, capture_output=True, text=True)
    if update.returncode:
        if not any((folder / "lists").glob("*_Packages*")):
            update.check_returncode()
        say(f"the lists of {folder.name} are those of an earlier time: {update.stderr.strip()}")
    return words


def _sources(suite: str) -> list[str]:
    """Debian's sources of this machine: address, suite and component of each; with `suite`, those of that suite.

    "trixie" has its updates and security fixes where the machine's own release has some; "sid" is the archive alone.
    """
    form = "$(ORIGIN) $(REPO_URI) $(RELEASE) $(COMPONENT) $(LABEL)"
    apt = ["apt-get", "indextargets", "--format", form, "Created-By: Packages"]
    listed = subprocess.run(apt, check=True, capture_output=True, text=True).stdout.splitlines()
    sources = [line.split(maxsplit=4)[1:] for line in sorted(set(listed)) if line.startswith("Debian ")]
    archives = [uri for uri, _, _, label in sources if label == "Debian"]
    if not archives:
        raise OSError("apt has no index of Debian's archive here (apt-get update)")
    if suite == DEVELOPMENT:
        return [f"{archives[0]} {suite} main"]
    if not suite:
        return [f"{uri} {release} {component}" for uri, release, component, _ in sources]
    # Of bookworm, bookworm-updates and bookworm-security, what is after the name.
    parts = [(uri, release.partition("-")[2], component) for uri, release, component, _ in sources]
    return sorted({f"{uri} {'-'.join(filter(None, [suite, part]))} {component}" for uri, part, component in parts})
