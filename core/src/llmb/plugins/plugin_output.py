"""Output of plugin code, which goes to standard error: standard output belongs to llmb, as with ``--json``."""

import io
import sys
import threading
from collections.abc import Callable
from typing import Any


class PluginOutput:
    """A replacement of ``sys.stdout`` while plugin code runs. Only threads with plugin code print on standard error.

    ``runs_in`` checks whether plugin code runs in a thread, also later: a plugin may keep this object, as in a logging
    handler.
    """

    def __init__(self, stdout: Any, runs_in: Callable[[int], bool]) -> None:
        self.stdout = stdout
        self._runs_in = runs_in

    def close(self) -> None:
        """Close nothing: the stream is llmb's."""

    def move_log_handlers(self) -> None:
        """Make the root logger's handlers of a plugin print on standard error: llmb and paramiko log there too."""
        handlers = sys.modules["logging"].root.handlers if "logging" in sys.modules else ()
        for handler in handlers:
            if getattr(handler, "stream", None) is self:
                handler.setStream(sys.stderr)

    def __getattr__(self, name: str) -> Any:
        in_plugin = self._runs_in(threading.get_ident())
        return getattr((sys.stderr or io.StringIO()) if in_plugin else self.stdout, name)
