"""The kubectl plugin as krew installs it: an archive of the shell script, and the manifest that names it.

https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest/ has the manifest's form. An index of plugins takes it as
plugins/topodns.yaml. `python -m release.krew https://github.com/OWNER/topodns` writes both into dist/.
"""

import gzip
import hashlib
import io
import sys
import tarfile
from pathlib import Path
from typing import Final

from release.source import DIST, ROOT, VERSION, epoch
from tests.support.chart.readable_yaml import readable_yaml

_FILES: Final = {
    "kubectl-topodns": (ROOT / "topodns/cli/kubectl-topodns.sh", 0o755),
    "LICENSE": (ROOT / "LICENSE", 0o644),
}
_DESCRIPTION: Final = """\
Asks a topodns in the cluster why a client gets its DNS answer (explain), on
which node a client is (who), which clients or names have the most queries
(top), and which clients the topology keys of Services leave without an
endpoint (audit). Each command runs in a server's Pod, by kubectl exec.
"""
_CAVEATS: Final = """\
Needs a POSIX shell, and the right to list Pods and to create pods/exec in the
namespace where topodns runs.
"""


def write_krew(folder: Path, repository: str) -> tuple[Path, Path]:
    """Write the archive, the same octets for the same files and time, and the manifest.

    `repository`: the URL of the project, among whose release's files at `/releases/download/vVERSION` the archive is.
    """
    archive = write_archive(folder)
    manifest = folder / "topodns.yaml"
    manifest.write_text(readable_yaml(_manifest(archive, repository.rstrip("/"))))
    return archive, manifest


def write_archive(folder: Path) -> Path:
    """Write the archive alone, which is among a release's files."""
    folder.mkdir(parents=True, exist_ok=True)
    archive = folder / f"kubectl-topodns-{VERSION}.tar.gz"
    archive.write_bytes(_archive())
    return archive


def _archive() -> bytes:
    packed = io.BytesIO()
    with (
        gzip.GzipFile("", "wb", mtime=0, fileobj=packed) as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.USTAR_FORMAT) as tar,
    ):
        for name, (path, mode) in _FILES.items():
            content = path.read_bytes()
            info = tarfile.TarInfo(name)
            info.size, info.mode, info.mtime = len(content), mode, epoch()
            tar.addfile(info, io.BytesIO(content))
    return packed.getvalue()


def _manifest(archive: Path, repository: str) -> dict[str, object]:
    platform = {
        "selector": {"matchExpressions": [{"key": "os", "operator": "In", "values": ["linux", "darwin"]}]},
        "uri": f"{repository}/releases/download/v{VERSION}/{archive.name}",
        "sha256": hashlib.sha256(archive.read_bytes()).hexdigest(),
        "bin": "kubectl-topodns",
        "files": [{"from": name, "to": "."} for name in _FILES],
    }
    return {
        "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
        "kind": "Plugin",
        "metadata": {"name": "topodns"},
        "spec": {
            "version": f"v{VERSION}",
            "homepage": repository,
            "shortDescription": "Explain DNS answers by topology",
            "description": _DESCRIPTION,
            "caveats": _CAVEATS,
            "platforms": [platform],
        },
    }


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("expected the URL of the repository, such as https://github.com/OWNER/topodns")
    print(*write_krew(DIST, sys.argv[1]), sep="\n")
