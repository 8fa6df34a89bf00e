"""Causes of failed preparation, found in what uv, pip, git and curl print."""

from __future__ import annotations

import pytest

from llmb.logs.failures.signature_files import preparation_failure

FETCH = "error: Failed to fetch: https://packages.example/simple/attrs/\n  cause: client error (Connect)\n"
PIP = "WARNING: Retrying after connection broken by "
MIRROR = (
    "error: Failed to download `https://github.com/astral-sh/x.tar.gz`\n  cause: HTTP status client error (404)\n"
    "no Python >=3.12 on login1, and uv cannot download one"
)


@pytest.mark.parametrize(
    ("log", "cause", "setting"),
    [
        (FETCH + "  cause: dns error\n", "no route to a server", "HTTPS_PROXY"),
        (FETCH + "  cause: tcp connect error\n  cause: Connection refused\n", "no route to a server", "UV_INDEX_URL"),
        (FETCH + "  cause: operation timed out\n", "no route to a server", "HTTPS_PROXY"),
        (
            FETCH + "  cause: tunnel error: failed to create underlying connection\n  cause: tcp connect error\n",
            "the proxy in HTTPS_PROXY cannot be reached",
            "HTTPS_PROXY",
        ),
        (FETCH + "  cause: invalid peer certificate: UnknownIssuer\n", "unknown certificate issuer", "SSL_CERT_FILE"),
        (
            f"{PIP}'SSLError(SSLCertVerificationError(1, '[SSL: CERTIFICATE_VERIFY_FAILED] failed'))'",
            "unknown certificate issuer",
            "SSL_CERT_FILE",
        ),
        (
            f"{PIP}'NewConnectionError('<x>: Failed to establish a new connection: [Errno 111] Connection refused')'",
            "no route to a server",
            "PIP_INDEX_URL",
        ),
        ("fatal: unable to access 'https://x/': Could not resolve host: x", "no route to a server", "HTTPS_PROXY"),
        (
            "fatal: unable to access 'https://x/': SSL certificate problem: self-signed certificate",
            "unknown certificate issuer",
            "GIT_SSL_CAINFO",
        ),
        (MIRROR, "no suitable Python", "UV_PYTHON_INSTALL_MIRROR"),
    ],
)
def test_a_known_failure_names_its_cause_and_the_setting_that_fixes_it(log: str, cause: str, setting: str) -> None:
    found = preparation_failure(log)
    assert found
    assert found.cause == cause
    assert setting in found.remedy
    assert "[target.env]" in found.remedy


def test_the_remedy_of_a_failed_download_of_python_begins_with_the_mirror() -> None:
    found = preparation_failure(MIRROR)
    assert found
    assert found.remedy.startswith("set UV_PYTHON_INSTALL_MIRROR in [target.env] to a mirror")
    assert "; or install Python >=3.12 with the system's package manager or a module" in found.remedy


def test_another_failure_has_no_known_cause() -> None:
    assert preparation_failure("error: hash mismatch") is None
