"""By which names this API may be asked, and by whose pages: the rules behind `middleware`'s refusals.

Any page that a browser of this machine shows can send requests to its loopback. Pages of other sites cannot read the answers,
unless their site's name is resolved to this machine (DNS rebinding): then they are the API's own pages to the browser, and
their reads carry no Origin. What they cannot change is the Host header, which names their site.
"""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit

LOOPBACK_NAMES = frozenset({"127.0.0.1", "localhost", "::1"})
EVERYWHERE = frozenset({"0.0.0.0", "::"})  # noqa: S104 - compared, not bound
READS = frozenset({"GET", "HEAD", "OPTIONS"})
OTHER_NAME = (
    "the API listens on this machine's loopback and answers to its names alone: ask it by 127.0.0.1 or localhost, or give it "
    "the other name as TIDEGATE_API__HOST or in TIDEGATE_GATE__URL"
)
OTHER_PAGE = "writes from pages of other sites are refused; use the client, the command line, or a page of this host"


class Hosts:
    """Says of each request whether it may come in.

    Args:
        listens: Name or address where the API listens.
        gate_url: Where programs find it: those in a container may have a name of their own for this machine.
    """

    def __init__(self, listens: str, gate_url: str | None = None) -> None:
        known = {listens.lower(), _name_of(gate_url or "")}
        self._names = LOOPBACK_NAMES | {name for name in known if name is not None}
        # Listening everywhere, it is reached under names that it cannot know.
        self._is_everywhere = listens in EVERYWHERE
        self._is_loopback = _is_loopback(listens.lower())

    def refusal(self, method: str, host: bytes | None, origin: bytes | None) -> str | None:
        """Returns why a request with these headers is refused, and what to do; None when it is not."""
        # Every browser names the host. Probes that speak HTTP/1.0 do not.
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
    """Returns its name or address without port and brackets, in lower case."""
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


def _is_loopback(name: str) -> bool:
    try:
        return name in LOOPBACK_NAMES or ip_address(name).is_loopback
    except ValueError:
        return False
