"""Checks the Host and Origin headers of requests, for the middleware.

Any page in a browser of this machine can send requests to loopback. A page of another site cannot read the answers, unless its site's
name resolves to this machine (DNS rebinding). Then the browser treats it as a page of the API, and its reads carry no Origin.
But such a page cannot change the Host header, which names its site.
"""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit

LOOPBACK_NAMES = frozenset({"127.0.0.1", "localhost", "::1"})
EVERYWHERE = frozenset({"0.0.0.0", "::"})  # noqa: S104 - compared, not bound
READS = frozenset({"GET", "HEAD", "OPTIONS"})
OTHER_NAME = (
    "the API listens on loopback and accepts only loopback names as Host: use 127.0.0.1 or localhost, or configure "
    "the other name in TIDEGATE_API__HOST or TIDEGATE_GATE__URL"
)
OTHER_PAGE = "writes from pages of other sites are refused; use the client, the command line, or a page of this host"


class Hosts:
    """Accepts or refuses a request by its headers.

    Args:
        listens: Name or address on which the API listens.
        gate_url: Base URL that programs use. Programs in a container may know this machine by another name.
    """

    def __init__(self, listens: str, gate_url: str | None = None) -> None:
        known = {listens.lower(), _name_of(gate_url or "")}
        self._names = LOOPBACK_NAMES | {name for name in known if name is not None}
        # On all addresses the API is reached by names that it cannot know.
        self._is_everywhere = listens in EVERYWHERE
        self._is_loopback = _is_loopback(listens.lower())

    def refusal(self, method: str, host: bytes | None, origin: bytes | None) -> str | None:
        """Returns why a request with these headers is refused, and what to do; None if it is accepted."""
        # Every browser sends a Host header; probes with HTTP/1.0 do not.
        if self._is_loopback and host is not None and not self._is_known(host):
            return OTHER_NAME
        if method in READS or origin is None:
            return None
        if origin.partition(b"://")[2] != (host or b"") or not (self._is_everywhere or self._is_known(host or b"")):
            return OTHER_PAGE
        return None

    def _is_known(self, host: bytes) -> bool:
        name = _name_of(f"//{host.decode('latin-1')}")
        return name is not None and (name in self._names or _is_loopback(name))


def _name_of(url: str) -> str | None:
    """Returns the host of a URL, without port and brackets, in lower case."""
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


def _is_loopback(name: str) -> bool:
    try:
        return name in LOOPBACK_NAMES or ip_address(name).is_loopback
    except ValueError:
        return False
