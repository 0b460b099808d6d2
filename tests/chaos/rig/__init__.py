"""The chaos rig: a cluster whose every connection passes through a proxy, nemeses for it, and loads that write evidence.

- `proxies/`: faults before the store, cuts on the way to broker and store; a process of their own.
"""
