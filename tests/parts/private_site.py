"""A site without internet access: a package index with a certificate of its own authority, behind a proxy."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import http.server
import select
import socket
import ssl
import subprocess
import threading
import zipfile
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

HOST = "packages.invalid"  # no name server has this name, so only the proxy reaches it


class PrivateSite:
    """The index at ``https://packages.invalid/simple``, which only ``proxy_url`` reaches.

    ``lock`` is a lock file with the one package of the index. ``authority`` is the file with the certificate of the
    authority that signed the one of the index. ``tunnels`` lists the destinations of the proxy's connections.
    """

    index_url = f"https://{HOST}/simple"

    def __init__(self, folder: Path, password: str) -> None:
        self.authority = folder / "authority.pem"
        self.tunnels: list[str] = []
        self._folder = folder
        self._credentials = "Basic " + b64encode(f"me:{password}".encode()).decode()
        self.lock = _write_package(folder / "files/simple/tiny")
        self._stack = contextlib.ExitStack()
        self._password = password
        self.proxy_url = self.index_on_this_host = ""

    def __enter__(self) -> PrivateSite:
        _sign_certificate(self._folder, self.authority)
        handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(self._folder / "files"))
        index = self._stack.enter_context(_serving(handler))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._folder / "server.pem", self._folder / "server.key")
        index.socket = context.wrap_socket(index.socket, server_side=True)
        self.index_on_this_host = f"https://localhost:{index.server_port}/simple"
        proxy = self._stack.enter_context(_serving(self._proxy_handler(index.server_port)))
        self.proxy_url = f"http://me:{self._password}@127.0.0.1:{proxy.server_port}"
        for server in (index, proxy):
            threading.Thread(target=server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._stack.close()

    def _proxy_handler(self, port: int) -> type[http.server.BaseHTTPRequestHandler]:
        """Return the handler of a proxy that connects its users to the index, whatever host they name."""
        tunnels, credentials = self.tunnels, self._credentials

        class Proxy(http.server.BaseHTTPRequestHandler):
            def do_CONNECT(self) -> None:
                if self.headers.get("Proxy-Authorization") != credentials:
                    self.send_error(407)
                    return
                tunnels.append(self.path)
                with socket.create_connection(("127.0.0.1", port)) as far:
                    self.send_response(200)
                    self.end_headers()
                    _copy_both_ways(self.connection, far)

        return Proxy


@contextlib.contextmanager
def _serving(handler: object) -> Iterator[http.server.ThreadingHTTPServer]:
    """Yield a server on a free port, which the caller starts; shut it down at the end."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)  # type: ignore[arg-type] # a partial class
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


def _copy_both_ways(near: socket.socket, far: socket.socket) -> None:
    """Copy bytes between two sockets until one of them is closed."""
    with contextlib.suppress(OSError):
        while True:
            for one in select.select([near, far], [], [])[0]:
                if not (block := one.recv(65536)):
                    return
                (far if one is near else near).sendall(block)


def _sign_certificate(folder: Path, authority: Path) -> None:
    """Create an authority, and a certificate of the index that the authority signed."""

    def openssl(*words: str) -> None:
        subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)

    names = f"subjectAltName=DNS:{HOST},DNS:localhost"
    new = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")  # RSA keys take longer to find
    openssl("req", "-x509", *new, "-days", "2", "-subj", "/CN=site", "-keyout", "site.key", "-out", str(authority))
    openssl("req", *new, "-subj", f"/CN={HOST}", "-addext", names, "-keyout", "server.key", "-out", "server.csr")
    signing = ("-CA", str(authority), "-CAkey", "site.key", "-CAcreateserial", "-copy_extensions", "copyall")
    openssl("x509", "-req", "-in", "server.csr", "-days", "2", *signing, "-out", "server.pem")


def _write_package(folder: Path) -> str:
    """Write a package index with one tiny package. Return a lock file with the package."""
    folder.mkdir(parents=True)
    wheel = folder / "tiny-1.0-py3-none-any.whl"
    info = "tiny-1.0.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("tiny.py", "")
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", f"tiny.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    (folder / "index.html").write_text(f'<a href="{wheel.name}#sha256={digest}">{wheel.name}</a>')
    return f"tiny==1.0 --hash=sha256:{digest}\n"
