"""Planted errors in extensions: each fails its test of `ExtensionContract` with a message, and no other test."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from parts.contract_failures import find_failures

from llmb.testing import ExtensionContract

EXTENSION = """
from llmb import Accelerator, ExtensionHooks, Signature, hookimpl

class Plugin(ExtensionHooks):
    @hookimpl
    def accelerators(self):
        return [Accelerator(name="npu7", gpus_per_node=4, peak_flops={"bf16": 362e12})]

    @hookimpl
    def diagnose(self):
        return [Signature(needle="npu7: link down", cause="a link failed", remedy="call Acme")]

    @hookimpl
    def report(self):
        return {".md": lambda report: f"{len(report.runs)} runs"}
"""
PREFIX = "extension plugin 'extra' (llmb-odd-extra 1.2.3): "


def install(site: Any, code: str) -> None:
    site.extension(code, distribution="llmb-odd-extra")


def failures() -> dict[str, str]:
    """Run the contract tests. Return the messages of those that fail, by name."""

    class TestExtra(ExtensionContract):
        extension = "extra"

    return find_failures(TestExtra())


def test_a_correct_extension_passes(active_site: Any) -> None:
    install(active_site, EXTENSION)
    assert failures() == {}


@pytest.mark.parametrize(
    ("test", "old", "new", "message"),
    [
        ("implements_its_hooks", "def accelerators(self)", "def accelerator(self)", "accelerator() is not a hook"),
        ("accelerators_are_valid", "362e12", "362.0", "accelerators() failed: InvalidValueError: Accelerator.peak"),
        ("causes_can_be_read", 'remedy="call Acme"', "remedy=3", "diagnose() failed: InvalidValueError: Signature."),
        ("reports_are_written", 'f"{len(report.runs)} runs"', "report.rows", "the renderer of .md failed: Attribute"),
        ("reports_are_written", '".md"', '"md"', "report() returned the suffix 'md'; expected a dot and small letters"),
        ("reports_are_written", 'f"{len(report.runs)} runs"', "3", "the renderer of .md returned int; expected str"),
    ],
)
def test_a_planted_error_fails_its_test_and_no_other(
    active_site: Any, test: str, old: str, new: str, message: str
) -> None:
    assert old in EXTENSION
    install(active_site, EXTENSION.replace(old, new))
    found = failures()
    assert set(found) == {test}
    assert (PREFIX in found[test], message in found[test]) == (True, True), found


def test_the_contract_without_the_packages_that_it_needs_shows_how_to_install_them() -> None:
    code = "import sys; sys.modules['hypothesis'] = None; import llmb.testing"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert 'llmb.testing needs hypothesis; install it with `pip install "llmb[testing]"`' in done.stderr


def test_code_that_ends_the_process_at_its_import_is_named(active_site: Any) -> None:
    install(active_site, f"import os\nos._exit(0)\n{EXTENSION}")

    class TestExtra(ExtensionContract):
        extension = "extra"

    with pytest.raises(pytest.fail.Exception, match="importing llmb_odd_extra ended Python with exit code 0"):
        TestExtra().test_import_is_light()
