"""`python -m tidegate_node`: as `tidegate node`."""

import sys

from tidegate_node.main import run

sys.exit(run())
