"""A guard of the server of live views: pages of other sites cannot connect to it.

A browser lets any page open a WebSocket to this machine, and names the site of the page in the
header Origin. A page whose own name leads to this machine (DNS rebinding) has a foreign Host.
"""
from __future__ import annotations

import contextlib
import http
import ipaddress
import threading
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

__all__ = ["guarded", "is_foreign"]

_LOCK = threading.Lock()


def _is_loopback(name: str) -> bool:
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def is_foreign(host: str, header_host: str | None, origin: str | None) -> bool:
    """Return whether a request comes from a page of another site.

    Parameters
    ----------
    host : str
        Address that the server listens on.
    header_host, origin : str, optional
        The headers Host and Origin. Programs other than browsers send no Origin.
    """
    try:
        asked = urlsplit(f"//{header_host or ''}")
        name, port = asked.hostname or "", asked.port
        if _is_loopback(host) and not (_is_loopback(name) or name == host):
            return True
        if origin is None:
            return False
        page = urlsplit(origin)
        own = {"http": 80, "https": 443}.get(page.scheme)
        return own is None or page.hostname != name or (page.port or own) != (port or own)
    except ValueError:
        return True


@contextlib.contextmanager
def guarded(host: str) -> Iterator[list[Any]]:
    """Guard every server that starts inside: it answers foreign requests with 403.

    viser passes no check to the server of websockets, so the call that starts the server is wrapped
    while it starts. The list that is yielded has an entry for each guarded server.
    """
    import websockets.asyncio.server as server
    from websockets.datastructures import Headers
    from websockets.http11 import Response

    start = server.serve
    guards: list[Any] = []

    def serve(*arguments: Any, process_request: Any = None, **more: Any) -> Any:
        def check(connection: Any, request: Any) -> Any:
            headers = request.headers
            hosts, origins = headers.get_all("Host"), headers.get_all("Origin")
            # A header that comes twice is foreign as well.
            if max(len(hosts), len(origins)) > 1 or is_foreign(host, *(hosts or [None]), *(origins or [None])):
                return Response(http.HTTPStatus.FORBIDDEN, "FORBIDDEN", Headers())
            return None if process_request is None else process_request(connection, request)

        guards.append(check)
        return start(*arguments, process_request=check, **more)

    with _LOCK:
        server.serve = serve  # type: ignore[assignment,misc]
        try:
            yield guards
        finally:
            server.serve = start  # type: ignore[misc]
