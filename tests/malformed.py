"""Malformed requests, drawn from a seed, and a client that sends them."""

import json
import random
import socket

PATHS = (
    "/",
    "/health",
    "/openapi.json",
    "/static/nothing.js",
    "/api/v1/model",
    "/api/v1/relations",
    "/api/v1/entities",
    "/api/v1/rules",
    "/api/v1/rules/0/picture.svg",
    "/api/v1/predict",
    "/api/v1/predict/batch",
    "/api/v1/explain",
    "/api/v1/data",
    "/api/v1/facts",
)
STRANGE_PATHS = (
    "/api/v1/rules/-1/picture.svg",
    "/api/v1/rules/99999999999999999999999/picture.svg",
    "/api/v1/rules/1e9/picture.svg",
    "/static/../api.py",
    "/static/%2e%2e%2fapp.py",
    "/static/..%5c..%5capp.py",
    "/static//etc/passwd",
    "/%00",
    "/%ff%fe",
    "//",
    "/api/v1/../../health",
    "/api/v1/predict/",
    "http://elsewhere/api/v1/model",
    "*",
    "/" + "a" * 5_000,
    "/api/v1/facts?entity=" + "%F0%9F" * 500,
)
PARAMETERS = (
    "text",
    "limit",
    "offset",
    "relation",
    "inverse",
    "sort",
    "order",
    "min_confidence",
    "min_support",
    "length",
    "body",
    "temporal",
    "entity",
)
WORDS = (
    "",
    "0",
    "-1",
    "1e400",
    "NaN",
    "inf",
    "true",
    "null",
    "9" * 30,
    "%00",
    "%ED%A0%80",
    "%",
    "%zz",
    "a" * 2_000,
    "<script>alert(1)</script>",
    "' OR 1=1 --",
    "../../etc/passwd",
    "{}",
    "%E2%80%AE",
)
VALUES = (
    "null",
    "true",
    "0",
    "-1",
    "1.5",
    "1e400",
    "-1e400",
    "NaN",
    "Infinity",
    "9" * 30,
    "9" * 5_000,
    '""',
    '"\\u0000"',
    '"\\ud800"',
    '"\\udfff\\ud800"',
    '"\\u202e"',
    '"' + "a" * 5_000 + '"',
    '"1952-99-99"',
    '"present"',
    '"<script>alert(1)</script>"',
    "[]",
    "{}",
    "[" * 500 + "]" * 500,
    '{"a":' * 200 + "1" + "}" * 200,
)
FIELDS = (
    "relation",
    "subject",
    "object",
    "start",
    "end",
    "k",
    "candidate",
    "groundings",
    "reasons",
    "pictures",
    "queries",
    "strange",
    "\\ud800",
    "__class__",
)
BODIES = (
    b"",
    b"{",
    b"[]",
    b"null",
    b"0",
    b'"text"',
    b"\xef\xbb\xbf{}",
    b"\xff\xfe{\x00}\x00",
    b"\x00" * 50,
    b"[" * 20_000,
    b'{"queries":' + b"[" * 20_000,
    b"{}{}",
    b"{'relation': 1}",
    b'{"queries":[' + b"0," * 5_000 + b"0]}",
    b'{"queries":[' + b"{}," * 5_000 + b"{}]}",
    b"{" + b",".join(b'"%d":0' % n for n in range(5_000)) + b"}",
)
METHODS = ("GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE", "FETCH", "get")
TYPES = (
    "application/json",
    "application/json",
    "application/json; charset=utf-16",
    "text/plain",
    "multipart/form-data; boundary=x",
    "application/x-www-form-urlencoded",
    "application/JSON",
    "",
    "\xff",
)
HEADERS = (
    "X: " + "y" * 20_000,
    "X",
    ": nothing",
    "X : y",
    " X: y",
    "X: a\x00b",
    "X: a\rb",
    "Host: one\r\nHost: two",
    "Transfer-Encoding: gzip",
    "Expect: 100-continue",
    "Expect: the unexpected",
    "Upgrade: websocket\r\nConnection: Upgrade",
    "Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings",
    "Content-Encoding: gzip",
    "Range: bytes=9-0",
    "If-None-Match: " + '"' * 99,
    "Accept-Encoding: " + ",".join(["br"] * 500),
    "Cookie: " + "=;" * 500,
)


class Malformed:
    """Draws malformed requests; the same seed draws the same.

    Args:
        seed: of all that is drawn.
        queries: bodies that would be answered, to be spoiled.
    """

    def __init__(self, seed, queries):
        self._chance = random.Random(seed)
        self._queries = [json.dumps(query).encode() for query in queries]
        self._kinds = (
            self._noise,
            self._strange_path,
            self._strange_parameters,
            self._strange_method,
            self._strange_header,
            self._strange_body,
            self._strange_fields,
            self._wrong_length,
            self._wrong_chunks,
            self._spoiled,
            self._half,
        )

    def draw(self):
        """Return the bytes of a request, and whether it must get a response."""
        return self._chance.choice(self._kinds)()

    def _noise(self):
        return self._chance.randbytes(self._chance.randrange(1, 400)) + b"\r\n\r\n", False

    def _strange_path(self):
        return self._request("GET", self._chance.choice(STRANGE_PATHS)), True

    def _strange_parameters(self):
        pairs = [
            f"{self._chance.choice(PARAMETERS)}={self._chance.choice(WORDS)}".replace(" ", "+")
            for _ in range(self._chance.randrange(1, 5))
        ]
        return self._request("GET", f"{self._chance.choice(PATHS)}?{'&'.join(pairs)}"), True

    def _strange_method(self):
        return self._request(self._chance.choice(METHODS), self._chance.choice(PATHS)), True

    def _strange_header(self):
        path = self._chance.choice(PATHS)
        return self._request("GET", path, headers=[self._chance.choice(HEADERS)]), False

    def _strange_body(self):
        kind = self._chance.choice(TYPES)
        return self._post(self._chance.choice(BODIES), kind), True

    def _strange_fields(self):
        fields = self._chance.choices(FIELDS, k=self._chance.randrange(1, 7))
        values = [self._chance.choice(VALUES) for _ in fields]
        whole = "{" + ",".join(f'"{f}":{v}' for f, v in zip(fields, values, strict=True)) + "}"
        if self._chance.random() < 0.3:
            whole = f'{{"queries":[{whole}],"k":{self._chance.choice(VALUES)}}}'
        return self._post(whole.encode()), True

    def _wrong_length(self):
        body = self._chance.choice(self._queries)
        length = self._chance.choice(
            ("0", "1", "-1", "x", "1e3", "9" * 40, str(len(body) - 1), str(len(body) + 9), "3, 4")
        )
        return self._request("POST", "/api/v1/predict", body=body, length=length), False

    def _wrong_chunks(self):
        body = self._chance.choice(self._queries)
        size = self._chance.choice(
            (b"zz", b"-1", b"f" * 30, b"0", b"1", b"", b"%x;x=y" % len(body))
        )
        end = self._chance.choice((b"0\r\n\r\n", b"", b"0\r\nX: y\r\n\r\n", b"\x00"))
        head = self._request(
            "POST", "/api/v1/predict", headers=["Transfer-Encoding: chunked"], length=None
        )
        return head + size + b"\r\n" + body + b"\r\n" + end, False

    def _spoiled(self):
        whole = bytearray(self._post(self._chance.choice(self._queries)))
        for _ in range(self._chance.randrange(1, 6)):
            whole[self._chance.randrange(len(whole))] = self._chance.randrange(256)
        return bytes(whole), False

    def _half(self):
        whole = self._post(self._chance.choice(self._queries))
        return whole[: self._chance.randrange(1, len(whole))], False

    def _post(self, body, kind="application/json"):
        path = self._chance.choice(("/api/v1/predict", "/api/v1/predict/batch", "/api/v1/explain"))
        return self._request("POST", path, body=body, headers=[f"Content-Type: {kind}"])

    def _request(self, method, path, *, body=b"", headers=(), length=""):
        lines = [f"{method} {path} HTTP/1.1", "Host: localhost", "Connection: close", *headers]
        if length is not None and (body or length):
            lines.append(f"Content-Length: {length or len(body)}")
        return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


def send(port, request, *, due, seconds=30.0):
    """Send the bytes of a request; return the status of the response, 0 for none.

    Raises:
        TimeoutError: the server neither answered nor closed the connection in time, though the
            client had closed its side.
    """
    with socket.create_connection(("127.0.0.1", port), timeout=seconds) as connection:
        try:
            connection.sendall(request)
            if not due:
                connection.shutdown(socket.SHUT_WR)
            answer = b""
            while part := connection.recv(65_536):
                answer = (answer + part)[:4_096] if len(answer) < 4_096 else answer
        except (ConnectionResetError, BrokenPipeError):
            return 0
    while answer.startswith(b"HTTP/1.1 100"):  # to go on is no answer yet
        answer = answer.partition(b"\r\n\r\n")[2]
    return int(answer[9:12]) if answer.startswith(b"HTTP/1.") else 0
