"""Published sets, downloaded from a local server that fails in many ways."""

import hashlib
import http.server
import logging
import os
import re
import socket
import string
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tilp._utils.files import cache_folder
from tilp.datasets import PUBLISHED, PublishedSet, get
from tilp.datasets.published import (
    DownloadSettings,
    RemoteFile,
    fetch_set,
    label_table,
    write_labels,
)
from tilp.errors import DataError, TilpError

TRAIN = b"".join(b"%d\t%d\t%d\t19%02d-##-##\n" % (i, i % 7, i + 1, i % 100) for i in range(20_000))
TEST = b"3\t1\t4\t1999-##-##\n"
LABELS = {
    "entity2id.txt": b"<Ada>\t1\t1815\t1852\n<Bern>\t0\t\t\n",
    "relation2id.txt": b"P7\t0\tcapital of\nP3\t1\tspouse\n",
}


@dataclass
class Script:
    """Files of the server, how it misbehaves by request, and the requests it received."""

    files: dict[str, bytes]
    # Per request: a kind of answer, with an amount. The last one holds for all further requests.
    answers: dict[str, list[tuple[str, float]]] = field(default_factory=dict)
    requests: list[tuple[str, str | None]] = field(default_factory=list)
    published: PublishedSet | None = None

    def publish(self, root: str) -> None:
        """Make a published set of the files under an address."""
        files = tuple(
            RemoteFile(name, f"{root}/{name}", hashlib.sha256(body).hexdigest())
            for name, body in self.files.items()
        )
        self.published = PublishedSet("TOY3k", "a toy", "MIT", files)

    def fetch(self, folder=None, progress=None, **settings) -> Path:
        """Download the published set."""
        quick = {"retry_wait": 0, "lock_wait": 0.01, **settings}
        return fetch_set(
            self.published, folder, progress=progress, settings=DownloadSettings(**quick)
        )

    def answer(self, name: str) -> tuple[str, float]:
        left = self.answers.get(name, [("whole", 0)])
        return left.pop(0) if len(left) > 1 else left[0]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: "Server"

    def do_GET(self) -> None:
        self.close_connection = True
        script, name = self.server.script, self.path.lstrip("/")
        byte_range = self.headers["Range"]
        script.requests.append((name, byte_range))
        body, (kind, n) = script.files[name], script.answer(name)
        if kind == "status":
            self.send_error(int(n))
            return
        if kind == "redirect":
            self.send_response(302)
            self.send_header("Location", "ftp://127.0.0.1/" + name)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if kind == "hang":
            self.server.released.wait(n)
        if kind == "corrupted":
            body = body[::-1]
        if kind == "chunks cut off":
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.write(b"%x\r\n%b\r\n" % (int(n), body[: int(n)]))
            return
        start = int(byte_range.removeprefix("bytes=").removesuffix("-")) if byte_range else 0
        if byte_range and kind != "ignore range":
            start += int(n) if kind == "elsewhere" else 0
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
            body = body[start:]
        else:
            self.send_response(200)
        if kind != "no length":
            announced = len(body) + (int(n) if kind == "wrong length" else 0)
            self.send_header("Content-Length", str(announced))
        self.end_headers()
        self.wfile.write(body[: int(n)] if kind == "cut off" else body)

    def log_message(self, *args: object) -> None:
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = False  # so that closing waits for them

    def __init__(self, script: Script) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.script = script
        self.released = threading.Event()

    def handle_error(self, request: object, client_address: object) -> None:
        pass  # clients that give up are expected


@pytest.fixture
def script(monkeypatch, tmp_path):
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("TILP_CACHE", str(tmp_path / "cache"))
    script = Script({"train.txt": TRAIN, "test.txt": TEST})
    with Server(script) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        script.publish(f"http://127.0.0.1:{server.server_port}")
        yield script
        server.released.set()
        server.shutdown()
        thread.join()


def assert_whole(folder, script):
    for name, body in script.files.items():
        assert (folder / name).read_bytes() == body
    assert not list(folder.glob("*.part"))


def assert_nothing_under_final_name(folder, name="train.txt"):
    assert not (folder / name).exists()


# The list


@pytest.mark.parametrize("entry", PUBLISHED.values(), ids=list(PUBLISHED))
def test_entries_are_well_formed(entry):
    names = [file.name for file in entry.files]
    assert {"train.txt", "valid.txt", "test.txt"} <= set(names)
    assert len(set(names)) == len(names)
    assert entry.description
    assert entry.licence
    for file in entry.files:
        assert len(file.sha256) == 64
        assert set(file.sha256) <= set(string.hexdigits.lower())
        pattern = r"https://raw\.githubusercontent\.com/[\w-]+/[\w-]+/[0-9a-f]{40}/[\w/]+\.txt"
        assert re.fullmatch(pattern, file.url)
        assert file.url.endswith("/" + file.name)


def test_no_two_files_share_address_or_checksum():
    files = [file for entry in PUBLISHED.values() for file in entry.files]
    assert len({file.url for file in files}) == len({file.sha256 for file in files}) == len(files)


@pytest.mark.parametrize("entry", PUBLISHED.values(), ids=list(PUBLISHED))
def test_checksums_match_local_copies(entry):
    if "TILP_DATA" not in os.environ:
        pytest.skip("TILP_DATA names no folder with copies of the published sets")
    folder = Path(os.environ["TILP_DATA"]) / entry.name
    compared = 0
    for file in entry.files:
        if (folder / file.name).exists():
            digest = hashlib.sha256((folder / file.name).read_bytes()).hexdigest()
            assert digest == file.sha256, file.name
            compared += 1
    assert compared >= 3


def test_unknown_name_suggests_the_nearest():
    with pytest.raises(
        TilpError, match=r"(?s)'wikidata12'.*WIKIDATA12k, YAGO11k.*mean WIKIDATA12k"
    ):
        get("wikidata12")
    with pytest.raises(TilpError, match=r"known: WIKIDATA12k, YAGO11k, ICEWS14\.$"):
        get("~~~")


# The folder


def test_cache_folder_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("TILP_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path


@pytest.mark.parametrize(
    ("platform", "environment", "expected"),
    [
        ("linux", {}, "{home}/.cache/tilp"),
        ("linux", {"XDG_CACHE_HOME": "{home}/xdg"}, "{home}/xdg/tilp"),
        ("linux", {"XDG_CACHE_HOME": "relative"}, "{home}/.cache/tilp"),
        ("darwin", {}, "{home}/Library/Caches/tilp"),
        ("win32", {"LOCALAPPDATA": "{home}/Local"}, "{home}/Local/tilp"),
        ("win32", {}, "{home}/AppData/Local/tilp"),
    ],
)
def test_cache_folder_of_each_platform(monkeypatch, tmp_path, platform, environment, expected):
    for name in ("TILP_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value.format(home=tmp_path))
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.setattr(sys, "platform", platform)
    assert cache_folder() == Path(expected.format(home=tmp_path))


# Downloads that end well


def test_a_whole_set_and_no_second_request(script, tmp_path):
    folder = script.fetch()
    assert folder == tmp_path / "cache" / "TOY3k"
    assert_whole(folder, script)
    assert script.requests == [("train.txt", None), ("test.txt", None)]
    assert script.fetch() == folder
    assert len(script.requests) == 2


def test_a_set_is_found_by_name(script, monkeypatch):
    monkeypatch.setattr("tilp.datasets.published.PUBLISHED", {"TOY3k": script.published})
    folder = script.fetch()
    assert get("TOY3k") == folder
    assert len(script.requests) == 2


def test_a_folder_of_ones_own_and_files_put_there_by_hand(script, tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "train.txt").write_bytes(TRAIN)
    assert script.fetch(folder) == folder
    assert_whole(folder, script)
    assert script.requests == [("test.txt", None)]


def test_progress_grows_to_the_size(script):
    script.answers["train.txt"] = [("cut off", 100_000), ("whole", 0)]
    seen: list[tuple[str, int, int | None]] = []
    script.fetch(progress=lambda *step: seen.append(step))
    train = [(done, total) for name, done, total in seen if name == "train.txt"]
    assert train[0] == (0, len(TRAIN))
    assert (100_000, len(TRAIN)) in train
    assert train[-1] == (len(TRAIN), len(TRAIN))
    assert train == sorted(train)
    assert seen[-1] == ("test.txt", len(TEST), len(TEST))


@pytest.mark.parametrize("kind", ["cut off", "chunks cut off"])
def test_a_cut_off_is_resumed_with_a_request_for_the_rest(script, kind):
    script.answers["train.txt"] = [(kind, 100_000), ("cut off", 50_000), ("whole", 0)]
    assert_whole(script.fetch(), script)
    ranges = [byte_range for name, byte_range in script.requests if name == "train.txt"]
    assert ranges == [None, "bytes=100000-", "bytes=150000-"]


def test_a_later_call_resumes_what_an_earlier_one_left(script):
    script.answers["train.txt"] = [("cut off", 100_000), ("whole", 0)]
    with pytest.raises(TilpError, match=r"cut off after 100,000 of [\d,]+ bytes"):
        script.fetch(attempts=1)
    folder = cache_folder() / "TOY3k"
    assert_nothing_under_final_name(folder)
    assert (folder / "train.txt.part").read_bytes() == TRAIN[:100_000]
    assert_whole(script.fetch(), script)
    assert script.requests[1] == ("train.txt", "bytes=100000-")


def test_a_whole_part_needs_no_request(script):
    folder = cache_folder() / "TOY3k"
    folder.mkdir(parents=True)
    (folder / "train.txt.part").write_bytes(TRAIN)
    assert_whole(script.fetch(), script)
    assert script.requests == [("test.txt", None)]


@pytest.mark.parametrize(
    ("second", "requests"),
    [
        (("ignore range", 0), [None, "bytes=100000-"]),
        (("status", 416), [None, "bytes=100000-", None]),
        (("elsewhere", 5), [None, "bytes=100000-", None]),
    ],
    ids=["range ignored", "range refused", "another range"],
)
def test_a_server_that_does_not_resume_starts_over(script, second, requests):
    script.answers["train.txt"] = [("cut off", 100_000), second, ("whole", 0)]
    assert_whole(script.fetch(), script)
    assert [byte_range for name, byte_range in script.requests if name == "train.txt"] == requests


def test_a_part_that_is_too_long_starts_over(script):
    folder = cache_folder() / "TOY3k"
    folder.mkdir(parents=True)
    (folder / "test.txt.part").write_bytes(TEST + b"more")
    script.answers["test.txt"] = [("status", 416), ("whole", 0)]
    assert_whole(script.fetch(), script)


@pytest.mark.parametrize("status", [500, 503, 429])
def test_a_passing_fault_of_the_server_is_tried_again(script, status):
    script.answers["train.txt"] = [("status", status), ("whole", 0)]
    assert_whole(script.fetch(), script)


def test_too_long_an_announcement_counts_as_a_cut_off(script):
    script.answers["train.txt"] = [("wrong length", 10)]
    seen: list[int | None] = []
    folder = script.fetch(progress=lambda _name, _done, total: seen.append(total))
    assert_whole(folder, script)  # the bytes were all there, as their checksum tells
    assert seen[0] == len(TRAIN) + 10


def test_no_announced_length_is_fine(script):
    script.answers["train.txt"] = [("no length", 0)]
    seen: list[int | None] = []
    assert_whole(script.fetch(progress=lambda _name, _done, total: seen.append(total)), script)
    assert seen[0] is None


def test_a_pause_shorter_than_the_timeout_is_waited_for(script):
    script.answers["train.txt"] = [("hang", 0.2)]
    assert_whole(script.fetch(), script)
    assert len(script.requests) == 2


def test_a_wrong_file_is_named_and_replaced_only_by_a_right_one(script, caplog):
    folder = cache_folder() / "TOY3k"
    folder.mkdir(parents=True)
    (folder / "train.txt").write_bytes(b"mine")
    script.answers["train.txt"] = [("corrupted", 0), ("whole", 0)]
    with pytest.raises(TilpError, match="SHA-256"):
        script.fetch()
    assert (folder / "train.txt").read_bytes() == b"mine"
    assert_whole(script.fetch(), script)
    warnings = [r for r in caplog.records if r.levelno == logging.WARNING]
    assert len(warnings) == 2
    assert str(folder / "train.txt") in warnings[0].getMessage()
    assert hashlib.sha256(b"mine").hexdigest() in warnings[0].getMessage()


def test_a_proxy_of_the_environment_is_asked(script, monkeypatch):
    address = script.published.files[0].url.rsplit("/", 1)[0]
    script.publish("http://nowhere.invalid")
    monkeypatch.setenv("http_proxy", address)
    script.files |= {f"http://nowhere.invalid/{name}": body for name, body in script.files.items()}
    script.fetch()
    assert script.requests[0][0] == "http://nowhere.invalid/train.txt"


# Downloads that cannot


def test_corrupted_bytes_are_removed_and_both_checksums_named(script):
    script.answers["train.txt"] = [("corrupted", 0)]
    with pytest.raises(TilpError) as caught:
        script.fetch()
    folder = cache_folder() / "TOY3k"
    message = str(caught.value)
    assert "train.txt" in message
    assert hashlib.sha256(TRAIN).hexdigest() in message
    assert hashlib.sha256(TRAIN[::-1]).hexdigest() in message
    assert "Try again" in message
    assert_nothing_under_final_name(folder)
    assert not list(folder.glob("*.part"))
    assert len(script.requests) == 1


def test_too_short_an_announcement_is_a_wrong_checksum(script):
    script.answers["train.txt"] = [("wrong length", -10)]
    with pytest.raises(TilpError, match="SHA-256"):
        script.fetch()
    assert_nothing_under_final_name(cache_folder() / "TOY3k")


def assert_explains_manual_download(message, names):
    assert str(cache_folder() / "TOY3k") in message
    assert "by hand" in message
    assert "\n" not in message
    for name in names:
        assert f"{name} (http" in message


def test_a_missing_address_fails_at_once(script):
    script.answers["train.txt"] = [("status", 404)]
    with pytest.raises(TilpError, match=r"train\.txt of TOY3k from http://.*: HTTP 404") as caught:
        script.fetch()
    assert_explains_manual_download(str(caught.value), script.files)
    assert len(script.requests) == 1


def test_only_missing_files_are_named_for_manual_download(script):
    script.answers["test.txt"] = [("status", 404)]
    with pytest.raises(TilpError) as caught:
        script.fetch()
    assert_explains_manual_download(str(caught.value), ["test.txt"])
    assert "train.txt" not in str(caught.value)


def test_attempts_are_bounded(script):
    script.answers["train.txt"] = [("cut off", 0)]
    with pytest.raises(TilpError, match="cut off after 0 of"):
        script.fetch()
    assert len(script.requests) == DownloadSettings().attempts
    assert_nothing_under_final_name(cache_folder() / "TOY3k")


def test_a_hanging_server_is_given_up(script):
    script.answers["train.txt"] = [("hang", 10)]
    with pytest.raises(TilpError, match="timed out") as caught:
        script.fetch(timeout=0.1, attempts=2)
    assert_explains_manual_download(str(caught.value), script.files)


def test_nobody_listening(script):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        script.publish(f"http://127.0.0.1:{unused.getsockname()[1]}")
        with pytest.raises(TilpError, match="refused") as caught:
            script.fetch()
    assert_explains_manual_download(str(caught.value), script.files)


def test_offline(script, monkeypatch):
    hosts = []

    def offline(host, *args, **kwargs):
        hosts.append(host)
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    script.publish("https://files.invalid")
    monkeypatch.setattr(socket, "getaddrinfo", offline)
    with pytest.raises(TilpError, match="Name or service not known") as caught:
        script.fetch()
    assert_explains_manual_download(str(caught.value), script.files)
    assert hosts == ["files.invalid"]


@pytest.mark.parametrize("root", ["ftp://127.0.0.1", "file://", "data:,"])
def test_other_kinds_of_address_are_refused(script, root):
    script.publish(root)
    with pytest.raises(TilpError, match="only http and https"):
        script.fetch()


def test_a_redirection_to_another_kind_of_address_is_refused(script):
    script.answers["train.txt"] = [("redirect", 0)]
    with pytest.raises(TilpError, match="unknown url type: ftp"):
        script.fetch()


def test_a_folder_that_cannot_be_made(script, tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(TilpError, match="TILP_CACHE"):
        script.fetch(tmp_path / "file" / "folder")


def test_an_interruption_keeps_what_came_and_frees_the_lock(script):
    def interrupt(_name, done, _total):
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        script.fetch(progress=interrupt)
    folder = cache_folder() / "TOY3k"
    assert_nothing_under_final_name(folder)
    assert (folder / "train.txt.part").stat().st_size > 0
    assert_whole(script.fetch(), script)
    assert script.requests[1][1] is not None


# Several at once


def test_threads_at_once_give_one_whole_set(script):
    script.answers["train.txt"] = [("hang", 0.2)]
    errors = []

    def fetch():
        try:
            script.fetch()
        except TilpError as error:
            errors.append(error)

    threads = [threading.Thread(target=fetch) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert_whole(cache_folder() / "TOY3k", script)
    assert len(script.requests) == 2


CHILD = """
import sys
from tilp.datasets.published import DownloadSettings, RemoteFile
from tilp.datasets.published import PublishedSet, fetch_set
files = tuple(RemoteFile(*text.split()) for text in sys.argv[1:])
published = PublishedSet("TOY3k", "", "", files)
fetch_set(published, progress=None, settings=DownloadSettings(retry_wait=0))
"""


def test_processes_at_once_give_one_whole_set(script):
    script.answers["train.txt"] = [("hang", 0.5), ("cut off", 100_000), ("whole", 0)]
    files = [f"{f.name} {f.url} {f.sha256}" for f in script.published.files]
    children = [subprocess.Popen([sys.executable, "-c", CHILD, *files]) for _ in range(3)]
    assert [child.wait(timeout=30) for child in children] == [0, 0, 0]
    assert_whole(cache_folder() / "TOY3k", script)
    assert len(script.requests) == 2


def test_a_killed_process_leaves_no_lock_and_its_part_is_resumed(script):
    script.answers["train.txt"] = [("wrong length", 10**6), ("whole", 0)]
    first = script.published.files[0]
    killer = CHILD.replace(
        "progress=None",
        'progress=lambda _, done, __: done > 100_000 and __import__("os")._exit(9)',
    )
    child = subprocess.run(
        [sys.executable, "-c", killer, f"{first.name} {first.url} {first.sha256}"], check=False
    )
    assert child.returncode == 9
    assert_nothing_under_final_name(cache_folder() / "TOY3k")
    assert_whole(script.fetch(), script)
    assert script.requests[1][1].startswith("bytes=")


# Labels


def test_get_writes_the_label_tables(script):
    address = script.published.files[0].url.rsplit("/", 1)[0]
    script.files |= LABELS
    script.publish(address)
    folder = script.fetch()
    assert_whole(folder, script)
    entities, relations = folder / "entities.tsv", folder / "relations.tsv"
    assert entities.read_bytes() == b"id\tkey\tlabel\n0\tBern\tBern\n1\tAda\tAda\n"
    assert relations.read_bytes() == b"id\tkey\tlabel\n0\tP7\tcapital of\n1\tP3\tspouse\n"

    entities.write_bytes(b"my own")
    relations.unlink()
    script.fetch()
    assert entities.read_bytes() == b"my own"
    assert relations.exists()
    assert len(script.requests) == 4


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("b\t1\na\t0\n", ["0 a a", "1 b b"]),
        ("1\tb\n0\ta", ["0 a a", "1 b b"]),
        ("2\nb\t1\r\na\t10\r\n", ["1 b b", "10 a a"]),
        ("\ufeffb\t1\n\n<ü>\t0\n\n", ["0 ü ü", "1 b b"]),
        ("7\t0\n8\t1\n", ["0 7 7", "1 8 8"]),
        ("7\t0\nx\t1\n", ["0 7 7", "1 x x"]),
        ("0\t7\n1\tx\n", ["0 7 7", "1 x x"]),
        ("a\t0\tA\nb\t1\tB\n", ["0 a A", "1 b B"]),
        ("a\t0\tnote\nb\t1\n", ["0 a a", "1 b b"]),
        ("", []),
    ],
)
def test_id_files_in_their_many_layouts(tmp_path, text, expected):
    path = tmp_path / "entity2id.txt"
    path.write_bytes(text.encode())
    assert [" ".join(row) for row in label_table(path)] == expected


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (b"a\t0\nb\n", 2),
        (b"a\t0\n12\n", 2),
        (b"a\t0\nb\tc\n", 2),
        (b"a\t0\n1\tb\n", 2),
        (b"2\na\t0\nb\t-1\n", 3),
        (b"a\t0\n\t1\n", 2),
        (b"a\t0\nb\t1\n\nc\t0\n", 4),
        (b"a\t0\n\xff\t1\n", 2),
    ],
)
def test_malformed_id_files_name_the_line(tmp_path, text, line):
    (tmp_path / "relation2id.txt").write_bytes(text)
    with pytest.raises(DataError, match=rf"relation2id\.txt, line {line} .*get the set again"):
        write_labels(tmp_path)
    assert not (tmp_path / "relations.tsv").exists()
