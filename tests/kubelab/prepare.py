"""Filling the cache, and whether this machine can have a lab at all."""

import os
import platform
import shutil
import subprocess

from tests.kubelab.cache import CACHE, filling
from tests.kubelab.images import lab_images
from tests.kubelab.machine import LabError
from tests.kubelab.programs import KWOK, make_build, make_programs, missing_programs

_TOOLS = ("unshare", "nsenter", "mount", "ip", "nft", "openssl", "dpkg-deb")
_NAMESPACES = ("unshare", "--net", "--mount", "--uts", "--ipc", "--pid", "--fork")


def prepare() -> None:
    """Make what the cache lacks: half an hour when that is everything, no time when it is nothing. Raises LabError.

    kwok comes last: where all but that could be made, there can be a lab.
    """
    if reason := why_never():
        raise LabError(reason)
    with filling():
        try:
            make_programs()
            lab_images()
            make_build(KWOK)
        except (OSError, subprocess.CalledProcessError) as problem:
            raise LabError(f"could not fill {CACHE}: {problem}") from None


def why_impossible() -> str:
    """Why no lab can be started now; "" if one can."""
    reason = why_never()
    if not reason and (missing := missing_programs()):
        reason = f"{CACHE} lacks {' '.join(missing)}: run `make test-cluster`, which builds them or says why it cannot"
    return reason


def why_no_fake_nodes() -> str:
    """Why a lab that can be started cannot have nodes that kwok plays; "" if it can."""
    return f"{CACHE} lacks kwok: run `make test-cluster`, which builds it or says why it cannot" if KWOK.missing else ""


def why_never() -> str:
    """Why not even `prepare` would help."""
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        return f"kubelab needs Linux on amd64, this is {platform.system()} on {platform.machine()}"
    if os.geteuid():
        return "kubelab needs root: namespaces, mounts, cgroups"
    if missing := [tool for tool in _TOOLS if not shutil.which(tool)]:
        return f"kubelab needs the programs {', '.join(missing)}"
    trial = subprocess.run([*_NAMESPACES, "true"], capture_output=True, text=True, check=False)
    return f"kubelab needs namespaces of its own: {trial.stderr.strip()}" if trial.returncode else ""
