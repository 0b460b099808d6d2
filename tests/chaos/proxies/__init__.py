"""What stands between a node and its bricks: `store_proxy.py` spoils requests to the store, `link.py` cuts connections.

All of them live in one process (`__main__.py`) with a port for their control (`control.py`).
"""
