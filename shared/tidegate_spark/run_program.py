"""The script that launchers start: `run_program.py <file> <args…>`. It only makes its package importable; see
`wrapper`.
"""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":
    package = Path(__file__).resolve().parent
    # Python put this folder first on the path, where our module names would hide the user's. Its parent takes the
    # place until the user's folder does.
    sys.path[:] = [str(package.parent), *(entry for entry in sys.path if entry != str(package))]
    from tidegate_spark.wrapper import main

    main(sys.argv[1:])
