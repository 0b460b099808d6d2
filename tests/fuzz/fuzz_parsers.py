"""The parsers under a coverage-guided fuzzer: `make fuzz-parsers FUZZ_S=600`. Not of the suite, whose environment has no atheris.

A fault ends the fuzzer, with the input in a file below `build/`; `python -m tests.fuzz.fuzz_parsers FILE` runs it again.
"""

from __future__ import annotations

import sys

import atheris

with atheris.instrument_imports(include=["tidegate_core"]):
    from tests.fuzz.parsers import parse_one

if __name__ == "__main__":
    atheris.Setup(sys.argv, parse_one)
    atheris.Fuzz()
