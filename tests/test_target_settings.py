"""Settings of a target in real runs: variables reach jobs and preparation, and preparation names why it fails."""

from __future__ import annotations

import http.server
import json
import ssl
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

SECRET = "hunter2"
PROXY = f"http://me:{SECRET}@127.0.0.1:9"  # port 9 is closed
CPU = {"recipe": "maxtext/llama2-tiny", "gpu_type": "cpu", "dtype": "fp32"}
FAST = {"UV_HTTP_RETRIES": "0", "UV_NO_CACHE": "1", "UV_INDEX_URL": "https://packages.invalid/simple", "NO_PROXY": ""}


def test_variables_and_secrets_of_the_target_reach_every_job(toy: Any) -> None:
    end = 'printf %s "$SITE-$SITE_PROXY" >"$site"'
    for name, where in (("a", "host"), ("b", "scheduler")):
        copy = toy.folder / name
        target = {"env": {"SITE": "it's", "site": str(copy)}, "secrets": ["SITE_PROXY"]}
        options = {"dump": True, "task": name, "task_on": where, "task_end": end}
        done = toy.llmb("run", toy.spec(framework=options, target=target), "--json", env={"SITE_PROXY": PROXY})
        assert done.returncode == 0, done.stderr
        [run] = json.loads(done.stdout)["runs"]
        assert copy.read_text() == f"it's-{PROXY}"
        env = (toy.work(run["run_id"]) / "env.0").read_text().split("\0")
        assert {"SITE=it's", f"SITE_PROXY={PROXY}"} <= set(env)
        assert not any(SECRET in file.read_text() for file in Path(run["directory"]).rglob("*") if file.is_file())


@pytest.mark.parametrize(
    ("env", "differences"),
    [
        ({"NCCL_IB_HCA": "mlx5_0"}, ""),
        ({"TOY_HANG": ""}, ""),  # the recipe's own value
        ({"TOY_IGNORE_TERM": "yes"}, "target.env.TOY_IGNORE_TERM"),
    ],
)
def test_a_run_has_a_verdict_unless_its_target_changes_a_variable_of_the_recipe(
    toy: Any, env: dict[str, str], differences: str
) -> None:
    tables = {"workload": {"recipe": "toy/judged"}, "framework": {"journal": "/dev/null"}, "target": {"env": env}}
    run = toy.run(**tables)
    assert run["verdict"] == ("undecided" if differences else "pass")
    assert differences in run["reason"]


def failed_preparation(toy: Any, target: dict[str, Any], **env: str) -> dict[str, Any]:
    """Run a recipe that needs a virtual environment, and return its result."""
    spec = toy.spec(workload=CPU, framework={}, target={"env": {**FAST, **target.pop("env", {})}, **target})
    text = Path(spec).read_text()
    Path(spec).write_text(text.replace(text[text.index("[framework]") : text.index("[target]")], ""))
    done = toy.llmb("run", spec, "--json", env={"HTTPS_PROXY": "", "https_proxy": "", **env})
    assert done.returncode == 1, done.stderr
    [run] = json.loads(done.stdout)["runs"]
    assert run["state"] == "failed"
    assert not any(SECRET in file.read_text() for file in toy.home.rglob("*") if file.is_file())
    return dict(run)


@pytest.mark.slow
def test_preparation_without_a_route_names_the_proxy_setting(toy: Any) -> None:
    run = failed_preparation(toy, {})
    assert run["reason"].startswith("virtual environment could not be created: no route to a server: ")
    assert "set HTTPS_PROXY in [target.env]" in run["failure"]["remedy"]


def test_preparation_behind_an_unreachable_proxy_hides_its_password(toy: Any) -> None:
    run = failed_preparation(toy, {"secrets": ["HTTPS_PROXY"]}, HTTPS_PROXY=PROXY)
    assert "the proxy in HTTPS_PROXY cannot be reached" in run["reason"]
    assert run["failure"]["remedy"] == "correct HTTPS_PROXY in [target.env]"


@pytest.fixture
def private_server(tmp_path: Path) -> Iterator[str]:
    """Start a server whose certificate no authority has signed. Return its URL."""
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    files = ["-keyout", str(tmp_path / "key.pem"), "-out", str(tmp_path / "certificate.pem")]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *subject, *files]
    subprocess.run(command, check=True, capture_output=True)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "certificate.pem", tmp_path / "key.pem")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"https://localhost:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.slow
def test_preparation_with_an_unknown_certificate_issuer_names_the_certificate_setting(
    toy: Any, private_server: str
) -> None:
    run = failed_preparation(toy, {"env": {"UV_INDEX_URL": f"{private_server}/simple"}})
    assert "unknown certificate issuer" in run["reason"]
    assert "set SSL_CERT_FILE in [target.env]" in run["failure"]["remedy"]
