"""A tiny service that answers as it is told to, serves pages, and remembers what it was asked."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ANSWER = {
    "label": "cats",
    "probabilities": {"dogs & owls": 0.25, "cats": 0.7, "the 'others'": 0.05},
    "access": "own-edges",
    "audience": "owner only",
    "used": "Your own connections and features were used, and nobody else's connections.",
    "promise": "This answer is for you alone.",
    "release": "0123456789abcdef",
}


class Stub(ThreadingHTTPServer):
    """Attributes: `asked` (method, path, headers, body), `reply` (status, headers, bytes), `pages`, `shared` (CORS)."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked, self.pages, self.shared = [], {}, False
        self.answer(ANSWER)

    @property
    def origin(self):
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def questions(self):
        return [entry for entry in self.asked if entry[0] == "POST"]

    def answer(self, content, status=200, **headers):
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.reply = (status, {name.replace("_", "-"): value for name, value in headers.items()}, body)


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        name = self.path.lstrip("/") or "index.html"
        self.server.asked.append(("GET", self.path, dict(self.headers), b""))
        if name in self.server.pages:
            self._send(200, {"Content-Type": "text/html; charset=utf-8"}, self.server.pages[name].encode())
        else:
            self._send(404, {}, b"")

    def do_OPTIONS(self):
        self._send(204, {}, b"")

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.asked.append(("POST", self.path, dict(self.headers), body))
        status, headers, content = self.server.reply
        self._send(status, {"Content-Type": "application/json", **headers}, content)

    def _send(self, status, headers, body):
        if self.server.shared:
            headers = headers | {
                "Access-Control-Allow-Origin": "*",
                "Access-Control-Allow-Headers": "authorization, content-type",
                "Access-Control-Expose-Headers": "Retry-After",
            }
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Silent."""


@contextmanager
def running():
    """A service on a free port of this machine."""
    stub = Stub()
    thread = threading.Thread(target=stub.serve_forever, daemon=True)
    thread.start()
    try:
        yield stub
    finally:
        stub.shutdown()
        stub.server_close()
        thread.join()
