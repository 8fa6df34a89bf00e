"""The bash functions of every job script: provenance without secrets, and the environment of the ranks."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from llmb import FrozenMap, Job, Phase, environment_function, job_functions
from llmb.records.provenance import parse_provenance
from llmb.scripts.job_functions import functions_of
from llmb.values.secret_names import SECRET_VARIABLE

SECRETS = [
    "HF_TOKEN",
    "MY_SECRET",
    "DB_PASSWORD",
    "DB_PASSWD",
    "CREDENTIALS",
    "NGC_API_KEY",
    "ACCESSKEY",
    "SSH_KEY",
    "GH_PAT",
    "SLACK_WEBHOOK",
    "HOOK_WEBHOOK_URL",
    "PAT",
    "KEY",
]


def provenance(folder: Path, *patterns: str, calls: int = 1, rank: int = 0, **env: str) -> dict[str, str]:
    """Return the environment that a rank adds to the provenance."""
    script = f"{job_functions()}\n" + calls * f"add_software_provenance {' '.join(map(repr, patterns))}\n"
    env = {"PATH": "/usr/bin:/bin", "RANK": str(rank), **env}
    (folder / "provenance").write_text("host=a\n")
    subprocess.run(["bash", "-uc", script], cwd=folder, env=env, check=True)
    lines = (folder / "provenance").read_bytes()
    assert lines.count(b"nccl=") == (rank == 0)
    found = parse_provenance(lines).get("env", {})
    assert isinstance(found, dict)
    return found


def test_a_script_gets_the_functions_that_it_calls_and_those_that_they_call() -> None:
    script = "add_software_provenance A\nrecord_failure() {\n  echo\n}\ncheck_output train out 5\n"
    kept = re.findall(r"^(\w+)\(\)", functions_of(script), re.MULTILINE)
    assert kept == ["check_output", "add_software_provenance", "print_library_versions", "print_environment"]
    assert functions_of("echo nothing") == ""
    every = re.findall(r"^(\w+)\(\)", job_functions(), re.MULTILINE)
    assert functions_of(" ".join(every)) == job_functions()


def test_only_rank_0_adds_its_environment_and_only_once(tmp_path: Path) -> None:
    env = {"FLAGS": "--a=b\n--c", "CUDA_VERSION": "12.6"}
    assert provenance(tmp_path, calls=2, **env).items() >= {
        ("FLAGS", "--a=b --c"),
        ("CUDA_VERSION", "12.6"),
        ("RANK", "0"),
    }
    assert "cuda=12.6" in (tmp_path / "provenance").read_text().splitlines()
    assert provenance(tmp_path, rank=1, **env) == {}


@pytest.mark.parametrize("name", SECRETS)
def test_a_variable_that_a_spec_must_not_contain_is_omitted(tmp_path: Path, name: str) -> None:
    assert SECRET_VARIABLE.search(name)
    assert name not in provenance(tmp_path, **{name: "x"})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LOGIN", "x"),
        ("SITE_ID", "x"),
        ("http_proxy", "x"),
        ("MYSQL_PWD", "x"),
        ("SLACK_WEBHOOK", "https://example.org/x"),
        ("INDEX_URL", "https://me:password@example.org/simple"),
        ("READER", "hf_abcdefgh"),
    ],
)
def test_a_variable_that_matches_a_pattern_or_looks_secret_is_omitted(tmp_path: Path, name: str, value: str) -> None:
    assert name not in provenance(tmp_path, "LOGIN", "SITE_*", **{name: value})


@pytest.mark.parametrize(
    ("venv", "place", "env", "path"),
    [
        ("", "inside", {}, "/left"),
        ("/v", "inside", {}, ""),
        ("/v", "outside", {}, "/left"),
        ("/v", "inside", {"PYTHONPATH": "/of the job"}, "/of the job"),
        ("/v", "outside", {"PYTHONPATH": "$(touch x)"}, "$(touch x)"),
    ],
)
def test_in_a_virtual_environment_pythonpath_comes_from_the_job_only(
    venv: str, place: str, env: dict[str, str], path: str
) -> None:
    job = Job(
        id="a",
        directory="/a",
        phases=(Phase(name="train", command=("true",)),),
        nodes=1,
        tasks_per_node=1,
        gpus_per_node=0,
        time_limit_s=1,
        env=FrozenMap(env),
    )
    script = f'{environment_function(job, venv=venv)}\nenvironment {place}\necho "${{PYTHONPATH-}} ${{PATH%%/bin*}}"'
    left = {"PYTHONPATH": "/left", "PATH": "/usr/bin"}
    done = subprocess.run(["/bin/bash", "-eu", "-c", script], env=left, capture_output=True, text=True, check=True)
    assert done.stdout == f"{path} {venv if place == 'inside' and venv else '/usr'}\n"
