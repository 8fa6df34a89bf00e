"""A network on this machine that can be cut, made silent and repaired, and that counts bytes."""

from __future__ import annotations

import contextlib
import socket
import threading

from parts.ports import free_port


class Network:
    """Forwards TCP connections from ``port`` to an address. ``bytes_up`` and ``bytes_down`` count the bytes."""

    def __init__(self, address: str, port: int) -> None:
        self._to = (address, port)
        self.port = free_port()
        self.bytes_up = self.bytes_down = 0
        self._open = threading.Event()
        self._listener: socket.socket | None = None
        self._sockets: list[socket.socket] = []

    def __enter__(self) -> Network:
        self.mend()
        return self

    def __exit__(self, *_exception: object) -> None:
        self.cut()

    @property
    def bytes(self) -> int:
        """Bytes in both directions."""
        return self.bytes_up + self.bytes_down

    def mend(self) -> None:
        """Forward bytes, and accept new connections."""
        self._open.set()
        if self._listener is None:
            self._listener = socket.create_server(("127.0.0.1", self.port))
            threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def cut(self) -> None:
        """Break all connections, and refuse new ones."""
        self._open.set()
        listener, self._listener = self._listener, None
        sockets, self._sockets = self._sockets, []
        for each in [*([listener] if listener else []), *sockets]:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def silence(self) -> None:
        """Deliver no bytes, but keep all connections open."""
        self._open.clear()

    def _accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = listener.accept()
                far = socket.create_connection(self._to)
                self._sockets += [near, far]
                for each in (near, far):
                    each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                for source, sink, counter in ((near, far, "bytes_up"), (far, near, "bytes_down")):
                    threading.Thread(target=self._carry, args=(source, sink, counter), daemon=True).start()

    def _carry(self, source: socket.socket, sink: socket.socket, counter: str) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                self._open.wait()
                sink.sendall(data)
                setattr(self, counter, getattr(self, counter) + len(data))
        for each in (source, sink):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
