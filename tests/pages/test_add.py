"""The page that takes data in: upload route, preview, roles, import, outcome; rights of routes."""

from __future__ import annotations

import io
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest
from page_kit import Open, assert_sound, html_of
from PIL import Image
from starlette.applications import Starlette
from starlette.testclient import TestClient
from streamlit.testing.v1 import AppTest

from core.data.importers import ImportLimits
from core.data.importers.inbox import Inbox
from core.workspace import open_workspace


def picture(seed: int) -> bytes:
    pixels = np.random.default_rng(seed).integers(0, 255, (16, 16, 3), dtype=np.uint8)
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "PNG")
    return out.getvalue()


def pets() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for i in range(4):
            archive.writestr(f"pets/{i}.png", picture(i))
        archive.writestr("pets/broken.png", b"no picture")
        rows = "".join(f"pets/{i}.png,{a},{b}\n" for i, (a, b) in enumerate(
            [("cat", "indoor"), ("dog", "garden"), ("cat", "garden"), ("dog", "indoor")]
        ))  # fmt: skip
        archive.writestr("metadata.csv", "file_name,animal,place\n" + rows)
    return out.getvalue()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("THEODOLITE_HOME", str(tmp_path / "home"))
    open_workspace(tmp_path / "home")
    return tmp_path / "home"


@pytest.fixture
def client(home: Path) -> TestClient:
    from pages._shell.server import ROUTES

    return TestClient(Starlette(routes=ROUTES))


def inbox_of(home: Path) -> Inbox:
    return Inbox.new(home, ImportLimits())


def bundle(files: dict[str, bytes]) -> bytes:
    out = b""
    for name, data in files.items():
        raw = name.encode()
        out += struct.pack(">H", len(raw)) + raw + struct.pack(">Q", len(data)) + data
    return out


def add_page(at: AppTest, home: Path, name: str, data: bytes) -> AppTest:
    """Put a file where an upload puts it, and draw the page again."""
    inbox = inbox_of(home)
    (inbox.folder / name).write_bytes(data)
    at.session_state["add_inbox"] = inbox.name
    return at.run()


def test_the_page_says_what_it_reads_and_its_limits(open_page: Open, home: Path) -> None:
    at = open_page("add", home)
    assert_sound(at)
    words = "\n".join(block.value for block in at.markdown)
    assert "metadata.csv" in words
    assert "At most for a picture: 64 MB and 50 megapixels" in words


def test_preview_correct_import_and_outcome(open_page: Open, home: Path) -> None:
    at = add_page(open_page("add", home), home, "pets.zip", pets())
    assert_sound(at)
    assert at.subheader[0].value == "Zip with a table inside: 4 rows"
    roles = {box.label: box for box in at.selectbox}
    assert roles["Pictures"].value == "file_name"
    assert roles["Classes"].value == "none"
    roles["Classes"].set_value("animal")
    roles["Domains"].set_value("place").run()
    assert "class: animal" in at.dataframe[0].value.columns
    at.button(key="add_import").click().run()
    space = open_workspace(home)
    job = space.jobs.wait(space.jobs.list()[0].id, 60)
    assert job.state == "done", job.error
    at.run()
    assert_sound(at)
    assert "pets is in the workspace." in html_of(at)
    assert "pets/broken.png" in list(at.dataframe[0].value["what"])
    data = space.dataset("pets")
    assert list(data.items["label"]) == ["cat", "dog", "cat", "dog"]
    assert list(data.items["domain"]) == ["indoor", "garden", "garden", "indoor"]
    at.button(key="add_look").click().run()
    assert_sound(at)
    assert "4 items of 2 classes in 2 domains" in html_of(at)
    assert any("Outcome of the import. Taken: 4. Left out: 1." in box.label for box in at.expander)


def test_an_encoding_can_be_corrected(open_page: Open, home: Path) -> None:
    text = "text;label\nстарый дом;x\nновый дом;y\n".encode("cp1251")
    at = add_page(open_page("add", home), home, "caps.csv", text)
    assert_sound(at)
    at.selectbox(key="add_encoding").set_value("cp1252").run()
    assert "ñòàðûé äîì" in list(at.dataframe[0].value.iloc[:, 0])
    at.selectbox(key="add_encoding").set_value("cp1251").run()
    assert "старый дом" in list(at.dataframe[0].value.iloc[:, 0])


def test_what_cannot_be_read_is_said_and_the_page_stays(open_page: Open, home: Path) -> None:
    at = add_page(open_page("add", home), home, "evil.zip", b"PK\x03\x04 torn")
    assert_sound(at)
    assert any("cannot be read as a zip archive" in w.value for w in at.warning)


def test_hostile_words_are_shown_as_text(open_page: Open, home: Path) -> None:
    """Bank 11: script, Markdown and LaTeX in captions, classes and names stay text."""
    hostile = "<img src=x onerror=alert(1)> [x](http://y) $a$"
    table = f'text,label,domain\n"{hostile}","{hostile}",{hostile}\nplain,b,c\n'.encode()
    at = add_page(open_page("add", home), home, "h.csv", table)
    at.button(key="add_import").click().run()
    space = open_workspace(home)
    assert space.jobs.wait(space.jobs.list()[0].id, 60).state == "done"
    at = open_page("datasets", home)
    assert_sound(at)
    page = html_of(at)
    assert "<img src=x" not in page
    assert "&lt;img src=x onerror=alert(1)&gt;" in page
    for block in [*at.markdown, *at.caption, *at.subheader]:
        assert "[x](http" not in block.value
        assert "$a$" not in block.value.replace("\\$", "")


def test_a_server_path_needs_leave(open_page: Open, home: Path, tmp_path: Path,
                                   monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    allowed = tmp_path / "allowed"
    allowed.mkdir()
    (allowed / "caps.csv").write_text("text,label\na b,x\nc d,y\n")
    monkeypatch.setenv("THEODOLITE_IMPORT_DIRS", str(allowed))
    at = open_page("add", home)
    at.session_state["add_way"] = "On the server"
    at.run()
    at.text_input(key="add_path").set_value("/etc/passwd").run()
    assert_sound(at)
    assert any("lies outside" in w.value for w in at.warning)
    at.text_input(key="add_path").set_value("caps.csv").run()
    assert at.subheader[0].value == "Table: 2 rows"


def test_a_bundle_is_taken_and_its_bad_names_are_answered(client: TestClient, home: Path) -> None:
    inbox = inbox_of(home)
    body = bundle({"a/1.png": picture(1), "../../x": b"evil", "b/2.png": picture(2)})
    answer = client.post(f"/upload/{inbox.name}", content=body)
    assert answer.status_code == 200
    assert answer.json()["files"] == 2
    assert "leads out" in answer.json()["refused"][0]["reason"]
    assert sorted(p.name for p in inbox.folder.rglob("*.png")) == ["1.png", "2.png"]


def test_one_file_as_it_is(client: TestClient, home: Path) -> None:
    inbox = inbox_of(home)
    answer = client.post(f"/upload/{inbox.name}?name=pets.zip", content=pets())
    assert answer.status_code == 200
    assert (inbox.folder / "pets.zip").read_bytes() == pets()


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/upload/" + "0" * 32, b"", 404),
        ("/upload/..%2f..%2fx", b"", 404),
        ("/upload/mine", b"", 404),
        ("{inbox}", b"\xff\xff", 413),
        ("{inbox}", bundle({"a": b"abc"})[:-1], 413),
        ("{inbox}?name=../x", b"abc", 200),
    ],
)
def test_other_uploads_are_refused(
    client: TestClient, home: Path, path: str, body: bytes, status: int
) -> None:
    inbox = inbox_of(home)
    path = path.replace("{inbox}", f"/upload/{inbox.name}")
    answer = client.post(path, content=body)
    assert answer.status_code == status
    assert not [p for p in inbox.folder.rglob("*") if p.is_file()]
    assert client.get("/ready").status_code == 200


def test_an_upload_past_the_limits_is_refused(
    client: TestClient, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THEODOLITE_IMPORT_TOTAL_BYTES", "1000")
    inbox = inbox_of(home)
    answer = client.post(f"/upload/{inbox.name}", content=bundle({"a.bin": b"x" * 2000}))
    assert answer.status_code == 413
    assert "1 kB are left" in answer.json()["error"]["message"]
    assert not list(inbox.folder.iterdir())


def signed(name: str, body: str) -> str:
    from streamlit.web.server.server_util import get_cookie_secret
    from streamlit.web.server.starlette.starlette_app_utils import create_signed_value

    return create_signed_value(get_cookie_secret(), name, body).decode()


def test_routes_ask_for_the_same_sign_in_as_pages(
    client: TestClient, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a sign-in is configured, neither pictures nor uploads go without its cookie."""
    from pages._shell import gate

    space = open_workspace(home)
    sha = space.blobs.put(picture(1))
    inbox = inbox_of(home)
    assert client.get(f"/thumb/{sha}").status_code == 200
    monkeypatch.setattr(gate, "configured", lambda: True)
    assert client.get(f"/thumb/{sha}").status_code == 401
    assert client.post(f"/upload/{inbox.name}", content=b"").status_code == 401
    name = "_streamlit_user"
    for body, status in (('{"is_logged_in": false}', 401), ("[1]", 401), ("no json", 401),
                         ('{"is_logged_in": true}', 200)):  # fmt: skip
        client.cookies.clear()
        client.cookies.set(name, signed(name, body))
        assert client.get(f"/thumb/{sha}").status_code == status
    client.cookies.clear()
    client.cookies.set(name, signed("another", '{"is_logged_in": true}'))
    assert client.get(f"/thumb/{sha}").status_code == 401
