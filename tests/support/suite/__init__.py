"""How the suite itself runs: who takes which tests, and what is printed meanwhile. `tests/conftest.py` plugs it in."""
