"""Settings of a target in real runs: variables reach jobs and preparation, and preparation names why it fails."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from parts.private_site import PrivateSite

SECRET = "hunter2"
PROXY = f"http://me:{SECRET}@127.0.0.1:9"  # port 9 is closed
FAST = {"UV_HTTP_RETRIES": "0", "UV_NO_CACHE": "1", "NO_PROXY": ""}
NETWORK = ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR")
"""Variables of this machine that would hide what a test lacks."""


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


@pytest.mark.parametrize("where", ["host", "scheduler"])
def test_a_variable_of_the_target_replaces_an_exported_secret(toy: Any, where: str) -> None:
    """The remedy for a proxy that cannot be reached sets HTTPS_PROXY in [target.env]."""
    copy = toy.folder / "copy"
    target = {"env": {"SITE_PROXY": "http://proxy:3128"}, "secrets": ["SITE_PROXY"]}
    task = {"task": "a", "task_on": where, "task_end": f'printf %s "$SITE_PROXY" >{copy}', "dump": True}
    done = toy.llmb("run", toy.spec(framework=task, target=target), "--json", env={"SITE_PROXY": PROXY})
    [run] = json.loads(done.stdout)["runs"]
    assert copy.read_text() == "http://proxy:3128"
    assert "SITE_PROXY=http://proxy:3128" in (toy.work(run["run_id"]) / "env.0").read_text().split("\0")


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


def prepared(toy: Any, site: PrivateSite, target: dict[str, Any], python: str = ">=3.11", **env: str) -> dict[str, Any]:
    """Run a recipe that needs a virtual environment with the package of the site, and return the result."""
    lock = {"lock": site.lock, "python": python}
    spec = toy.spec(framework=lock, target={**target, "env": {**FAST, **target.get("env", {})}})
    done = toy.llmb("run", spec, "--json", env={**dict.fromkeys(NETWORK, ""), **env})
    [run] = json.loads(done.stdout)["runs"]
    assert not any(SECRET.encode() in file.read_bytes() for file in toy.home.rglob("*") if file.is_file())
    return dict(run)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[PrivateSite]:
    with PrivateSite(tmp_path, SECRET) as site:
        yield site


def test_preparation_succeeds_behind_a_proxy_with_an_authority_of_the_site(toy: Any, site: PrivateSite) -> None:
    env = {"SSL_CERT_FILE": str(site.authority), "UV_INDEX_URL": site.index_url}
    run = prepared(toy, site, {"env": env, "secrets": ["HTTPS_PROXY"]}, HTTPS_PROXY=site.proxy_url)
    assert run["state"] == "completed"
    assert {*site.tunnels} == {"packages.invalid:443"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("env", "secrets", "cause", "remedy"),
    [
        ({"UV_INDEX_URL": "SITE"}, {}, "no route to a server: ", "set HTTPS_PROXY in [target.env]"),
        (
            {"UV_INDEX_URL": "SITE"},
            {"HTTPS_PROXY": f"http://me:{SECRET}@127.0.0.1:9"},  # port 9 is closed
            "the proxy in HTTPS_PROXY cannot be reached",
            "correct HTTPS_PROXY in [target.env]",
        ),
        ({"UV_INDEX_URL": "THIS_HOST"}, {}, "unknown certificate issuer: ", "set SSL_CERT_FILE in [target.env]"),
    ],
)
def test_preparation_that_cannot_reach_its_packages_names_the_setting(
    toy: Any, site: PrivateSite, env: dict[str, str], secrets: dict[str, str], cause: str, remedy: str
) -> None:
    index = {"SITE": site.index_url, "THIS_HOST": site.index_on_this_host}[env["UV_INDEX_URL"]]
    run = prepared(toy, site, {"env": {"UV_INDEX_URL": index}, "secrets": [*secrets]}, **secrets)
    assert run["state"] == "failed"
    assert cause in run["reason"]
    assert remedy in run["failure"]["remedy"]


@pytest.mark.slow
def test_preparation_without_a_suitable_python_names_the_setting(toy: Any, site: PrivateSite) -> None:
    run = prepared(toy, site, {}, python=">=3.28")
    assert "no suitable Python: no Python >=3.28 on " in run["reason"]
    assert "set UV_PYTHON_INSTALL_MIRROR in [target.env]" in run["failure"]["remedy"]
