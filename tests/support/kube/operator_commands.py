"""An operator's commands, as the documents show them: with helm and kubectl of the lab and the working tree's image."""

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.kubelab.lab import Lab
from tests.kubelab.programs import programs
from tests.support.chart.helm import HELM
from tests.support.kube.image import ROOT, TOPODNS_IMAGE
from tests.support.runnable_blocks import block

_PLUGIN: Final = (
    f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -c '
    "'from topodns.cli.kubectl import main; raise SystemExit(main())' \"$@\"\n"
)
"""The program `kubectl-topodns` of the working tree, which is not installed."""


class Operator:
    """`directory` becomes the home of helm, kubectl and its plugin."""

    def __init__(self, lab: Lab, directory: Path) -> None:
        plugin = directory / "kubectl-topodns"
        plugin.write_text(_PLUGIN)
        plugin.chmod(0o755)
        for name, program in {"helm": HELM.folder / "helm", "kubectl": programs()["kubectl"]}.items():
            (directory / name).symlink_to(program)
        repository, _, tag = TOPODNS_IMAGE.rpartition(":")
        homes = {f"HELM_{name}_HOME": str(directory / name.lower()) for name in ("CACHE", "CONFIG", "DATA")}
        self._environment = homes | {
            "PATH": f"{directory}:{os.environ['PATH']}",
            "HOME": str(directory),
            "KUBECONFIG": str(lab.kubeconfig),
            "IMAGE": repository,
            "TAG": tag,
        }

    def follow(self, document: str, *names: str, **variables: str) -> str:
        """Run these blocks of the document, one after the other; what they print."""
        environment = self._environment | variables
        return "".join(block(document, name).run(environment) for name in names)

    def paste(self, document: str, name: str) -> "subprocess.Popen[bytes]":
        """Begin with a block pasted into a shell, which goes on after a command that fails."""
        # With the signals of a terminal, also where this process ignores some (nohup).
        command = ["env", "--default-signal", "bash", "-c", block(document, name).text]
        quiet = subprocess.DEVNULL
        environment = os.environ | self._environment
        return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=quiet, stderr=quiet, start_new_session=True)

    @contextmanager
    def forwarding(self, command: str) -> Iterator[int]:
        """The port of 127.0.0.1 which this `kubectl port-forward ... PORT` forwards, while the block runs.

        A free one in place of PORT, which another program of this host may have.
        """
        *words, port = shlex.split(command)
        environment = os.environ | self._environment
        with subprocess.Popen([*words, f":{port}"], env=environment, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                printed = process.stdout.readline()
                assert printed.endswith(f" -> {port}\n"), printed
                yield int(printed.split()[2].rpartition(":")[2])
            finally:
                process.kill()

    def run(self, *words: str) -> str:
        """The output of this command, which has to succeed."""
        done = self.tried(*words)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def tried(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """The same for one that may fail."""
        environment = os.environ | self._environment
        return subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
