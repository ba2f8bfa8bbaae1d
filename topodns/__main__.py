"""`python -m topodns`."""

import sys

from topodns.cli.main import main

sys.exit(main())
