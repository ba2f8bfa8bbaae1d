"""`python -m tests.kubelab COMMAND`."""

import sys

from tests.kubelab.cli import main

sys.exit(main(sys.argv[1:]))
