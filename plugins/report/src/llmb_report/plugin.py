"""The extension that adds HTML to ``llmb report``."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from llmb import ExtensionHooks, Report, ReportRenderer, hookimpl


class HtmlReport(ExtensionHooks):
    """Reports as one self-contained HTML file."""

    @hookimpl
    def report(self) -> Mapping[str, ReportRenderer]:
        """Return the renderer of HTML. Plotting is imported only when a report is written."""
        return {".html": _render_html, ".htm": _render_html}


def _render_html(report: Report, /) -> str:
    log = logging.getLogger("matplotlib")
    if not log.handlers:
        log.addHandler(logging.NullHandler())  # otherwise Python prints its warnings about the cache of fonts
    from llmb_report.page import render_page

    return render_page(report)
