"""Web addresses in a table: fetched only where allowed, and never from the own network."""

from __future__ import annotations

import http.server
import socket
import threading

import pytest

from core.data.importers import ImportLimits
from core.data.importers import addresses as web
from core.errors import BadInput

LIMITS = ImportLimits(urls=1, url_bytes=10_000, url_seconds=5)
INSIDE = ["127.0.0.1", "10.1.2.3", "192.168.0.1", "172.16.9.9", "169.254.169.254", "0.0.0.0",
          "100.64.0.1", "224.0.0.1", "::1", "fe80::1", "fd00::1", "::ffff:127.0.0.1",
          "64:ff9b::7f00:1", "2002:7f00:1::", "ff02::1", "not an address"]  # fmt: skip


@pytest.mark.parametrize("address", INSIDE)
def test_addresses_of_the_own_network_are_not_public(address):
    """Bank 40: loopback, private, link-local, metadata, multicast, and those wrapped in IPv6."""
    assert not web.is_public(address)


@pytest.mark.parametrize("address", ["8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8"])
def test_public_addresses_are(address):
    assert web.is_public(address)


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("file:///etc/passwd", "only http and https"),
        ("ftp://example.org/a.png", "only http and https"),
        ("gopher://example.org/", "only http and https"),
        ("http:///a.png", "only http and https"),
        ("http://user:pass@example.org/a.png", "user name"),
        ("http://example.org:22/a.png", "port 22"),
        ("http://example.org:99999/", "no web address"),
        ("http://exa mple.org/", "no web address"),
        ("http://[::1/", "no web address"),
    ],
)
def test_other_schemes_users_and_ports_are_refused(address, why):
    """Bank 40: only plain http and https on their own ports."""
    with pytest.raises(BadInput, match=why):
        web.checked(address)


def resolving(monkeypatch, *found: str) -> None:
    answer = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (ip, 80)) for ip in found]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *a, **k: answer)


def test_a_name_with_one_private_address_is_refused(monkeypatch):
    """Bank 40: every address of a name must be public, not only the first."""
    resolving(monkeypatch, "8.8.8.8", "127.0.0.1")
    with pytest.raises(BadInput, match="private network"):
        web.fetch("http://rebind.example/a.png", LIMITS)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]", "2130706433", "0x7f.1"])
def test_names_of_this_machine_are_refused(host):
    """Bank 40: whatever way this machine is written."""
    with pytest.raises(BadInput, match=r"private network|not known"):
        web.fetch(f"http://{host}/a.png", LIMITS)


class Answer(http.server.BaseHTTPRequestHandler):
    """Answers by path; one path redirects to another host."""

    def do_GET(self) -> None:
        asked.append((self.headers["Host"], self.path))
        if self.path == "/inside":
            self.send_response(302)
            self.send_header("Location", "http://169.254.169.254/latest/meta-data")
            self.end_headers()
            return
        if self.path == "/round":
            self.send_response(302)
            self.send_header("Location", "/round")
            self.end_headers()
            return
        self.send_response(404 if self.path == "/absent" else 200)
        self.end_headers()
        body = b"x" * (50_000 if self.path == "/large" else 10)
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


asked: list[tuple[str, str]] = []


@pytest.fixture
def server(monkeypatch):
    """A server on this machine that stands in for a public one, reached by its name only."""
    found = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    thread = threading.Thread(target=found.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    asked.clear()

    def connect(where, timeout=None):
        assert where[0] == "93.184.215.14", f"connected to {where}"
        sock = socket.socket()
        sock.settimeout(timeout)
        sock.connect(("127.0.0.1", found.server_port))
        return sock

    monkeypatch.setattr(socket, "create_connection", connect)
    names = {"pictures.example": "93.184.215.14", "169.254.169.254": "169.254.169.254"}
    monkeypatch.setattr(
        socket,
        "getaddrinfo",
        lambda host, *a, **k: [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (names[host], 80))],
    )
    yield found
    found.shutdown()
    found.server_close()


def test_a_public_address_is_fetched_from_the_address_that_was_checked(server):
    """Bank 40: the connection goes to the checked address, with the host's own name."""
    assert web.fetch("http://pictures.example/a.png?x=1", LIMITS) == b"x" * 10
    assert asked == [("pictures.example", "/a.png?x=1")]


@pytest.mark.parametrize(
    ("path", "why"),
    [("/inside", "private network"), ("/round", "redirects more than 3"),
     ("/absent", "answered 404"), ("/large", "more than 10 kB")],
)  # fmt: skip
def test_redirects_and_answers_are_checked(server, path, why):
    """Bank 40: no redirect leads inside, none goes on for ever, no answer is endless."""
    with pytest.raises(BadInput, match=why):
        web.fetch(f"http://pictures.example{path}", LIMITS)


def test_a_column_of_addresses_is_imported_where_it_is_allowed(kit, server, monkeypatch):
    """Bank 5: URL by opt-in: what the address gives must still be a picture."""
    table = b"url,label\nhttp://pictures.example/a.png,x\nhttp://pictures.example/absent,y\n"
    body = kit.picture(1)
    monkeypatch.setattr(Answer, "do_GET", lambda self: _picture(self, body))
    data = kit.take(kit.file("t.csv", table), limits=LIMITS, roles={"image": "url"})
    assert data.image_bytes(0) == body
    assert kit.reasons(data) == {"row 2": "the web address answered 404"}


def _picture(handler: Answer, body: bytes) -> None:
    handler.send_response(404 if handler.path == "/absent" else 200)
    handler.end_headers()
    handler.wfile.write(body)
