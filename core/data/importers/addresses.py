"""Pictures by web address, where an administrator allows them: never into the own network.

A name is resolved once, every address it has must be public, and the connection goes to that
very address: a second answer of the name server cannot lead elsewhere. Each redirect is
checked anew.
"""

from __future__ import annotations

import http.client
import ipaddress
import socket
import ssl
import time
from typing import Any
from urllib.parse import SplitResult, urljoin, urlsplit

from core.data.importers.limits import ImportLimits, size
from core.errors import BadInput

_REDIRECTS = 3
_MOVED = {301, 302, 303, 307, 308}
_BLOCK = 1 << 16


def fetch(address: str, limits: ImportLimits) -> bytes:
    """Return what lies at a web address.

    Raises
    ------
    BadInput
        No http(s) address, one of a private network, an answer other than 200, too many
        bytes or seconds; the reason is the message.
    """
    deadline = time.monotonic() + limits.url_seconds
    for _ in range(_REDIRECTS + 1):
        parts = checked(address)
        target = public_address(parts)
        try:
            status, moved, body = _get(parts, target, limits, deadline)
        except BadInput:
            raise
        except (OSError, http.client.HTTPException, ValueError) as err:
            reason = str(err)[:120] or type(err).__name__
            raise BadInput(f"the web address did not answer: {reason}") from err
        if status not in _MOVED:
            if status != 200:
                raise BadInput(f"the web address answered {status}")
            return body
        address = urljoin(address, moved)
    raise BadInput(f"the web address redirects more than {_REDIRECTS} times")


def checked(address: str) -> SplitResult:
    """Return the parts of an address that may be fetched.

    Raises
    ------
    BadInput
        Not http or https, no host, a user name in it, or an unusual port.
    """
    try:
        parts = urlsplit(address.strip())
        port = parts.port
    except ValueError as err:
        raise BadInput("it is no web address") from err
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise BadInput("only http and https addresses are fetched")
    if parts.username is not None or parts.password is not None:
        raise BadInput("an address with a user name is not fetched")
    if port not in {None, 80, 443}:
        raise BadInput(f"port {port} is not fetched from, only 80 and 443")
    if any(ord(letter) <= 32 or ord(letter) == 127 for letter in address.strip()):
        raise BadInput("it is no web address")
    return parts


def public_address(parts: SplitResult) -> str:
    """Return the address a host has, when all it has are public.

    Raises
    ------
    BadInput
        The host is unknown, or one of its addresses is private, local or reserved.
    """
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        found = socket.getaddrinfo(parts.hostname, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as err:
        raise BadInput("its host is not known") from err
    addresses = [str(entry[4][0]).partition("%")[0] for entry in found]
    if not addresses or not all(is_public(address) for address in addresses):
        raise BadInput("its host lies in a private network")
    return addresses[0]


def is_public(address: str) -> bool:
    """Say whether an IP address is one of the public internet.

    Examples
    --------
    >>> [is_public(a) for a in ("8.8.8.8", "127.0.0.1", "169.254.169.254", "::ffff:10.0.0.1")]
    [True, False, False, False]
    """
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(ip, ipaddress.IPv6Address):
        # Addresses that wrap another one are as public as the one inside.
        inner = ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else None)
        if inner is None and ip in ipaddress.ip_network("64:ff9b::/96"):
            inner = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(str(inner))
    return ip.is_global and not ip.is_multicast


class _Pinned(http.client.HTTPConnection):
    """A connection to one address that still speaks to the host by its name."""

    def __init__(self, parts: SplitResult, target: str, timeout: float) -> None:
        secure = parts.scheme == "https"
        super().__init__(str(parts.hostname), parts.port or (443 if secure else 80), timeout)
        self._target = target
        self._secure = secure

    def connect(self) -> None:
        """Connect to the address that was checked."""
        sock: Any = socket.create_connection((self._target, self.port), self.timeout)
        if self._secure:
            context = ssl.create_default_context()
            sock = context.wrap_socket(sock, server_hostname=self.host)
        self.sock = sock


def _get(
    parts: SplitResult, target: str, limits: ImportLimits, deadline: float
) -> tuple[int, str, bytes]:
    connection = _Pinned(parts, target, _left(deadline))
    try:
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        connection.request("GET", path, headers={"User-Agent": "theodolite", "Accept": "image/*"})
        # The connection lets go of its socket when the server closes; the answer goes on.
        sock = connection.sock
        answer = connection.getresponse()
        if answer.status in _MOVED:
            return answer.status, answer.headers.get("Location", ""), b""
        body = bytearray()
        while block := answer.read(_BLOCK):
            body += block
            if len(body) > limits.url_bytes:
                raise BadInput(f"more than {size(limits.url_bytes)} at the web address")
            sock.settimeout(_left(deadline))
        return answer.status, "", bytes(body)
    finally:
        connection.close()


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise BadInput("the web address took too long")
    return left
