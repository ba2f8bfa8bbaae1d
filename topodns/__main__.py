"""`python -m topodns`."""

import sys

from topodns.cli import main

sys.exit(main())
