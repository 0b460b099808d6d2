"""`python -m tidegate_node`: the same as `tidegate node`. With `--orders-on-stdin` it is one of several workers
(`worker_processes.py`).
"""

import sys

from tidegate_node.main import run
from tidegate_node.worker_processes import ORDERS_ON_STDIN

sys.exit(run(orders=sys.stdin.fileno() if ORDERS_ON_STDIN in sys.argv[1:] else None))
