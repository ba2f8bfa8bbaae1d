"""Programs beside helm that tests/chart runs, built once into tests/kubelab's cache, under their versions.

`python -m tests.support.chart.tools` builds those that are missing, or says why it cannot.
"""

import subprocess
from typing import Final

from tests.kubelab.cache import filling
from tests.kubelab.programs import Build, make_build

_KUSTOMIZE: Final = "sigs.k8s.io/kustomize/kustomize/v5"
_KREW: Final = "sigs.k8s.io/krew"
KUSTOMIZE: Final = Build("kustomize", _KUSTOMIZE, {"kustomize": _KUSTOMIZE})
KREW: Final = Build("krew", _KREW, {"krew": f"{_KREW}/cmd/krew"})

if __name__ == "__main__":
    for build in (KUSTOMIZE, KREW):
        try:
            with filling():
                make_build(build)
        except (OSError, subprocess.CalledProcessError) as problem:
            print(f"no {build.name} could be built here: {problem}")
