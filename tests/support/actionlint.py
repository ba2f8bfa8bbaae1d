"""actionlint, which checks the workflows for GitHub: built once into tests/kubelab's cache, under its version.

`python -m tests.support.actionlint` checks them; where it cannot be built, that says so and goes on.
"""

import subprocess
import sys
from typing import Final

from release.source import ROOT
from tests.kubelab.cache import filling
from tests.kubelab.programs import Build, make_build

_MODULE: Final = "github.com/rhysd/actionlint"
ACTIONLINT: Final = Build("actionlint", _MODULE, {"actionlint": f"{_MODULE}/cmd/actionlint"})


def main() -> int:
    """The exit status."""
    try:
        if ACTIONLINT.missing:
            with filling():
                make_build(ACTIONLINT)
    except (OSError, subprocess.CalledProcessError) as problem:
        print(f"NO ACTIONLINT COULD BE BUILT HERE, .github/workflows is not checked: {problem}")
        return 0
    alike = ["-shellcheck=", "-pyflakes="]  # on a machine that has these programs and on one that has not
    workflows = map(str, sorted((ROOT / ".github/workflows").glob("*.yaml")))
    command = [str(ACTIONLINT.folder / "actionlint"), *alike, *workflows]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
