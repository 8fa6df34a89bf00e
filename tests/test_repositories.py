"""Repositories of a framework's environment: one commit of a real Git repository, fetched once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from parts.deadline import DEADLINE_S
from parts.git import GIT, Upstream


@pytest.fixture
def upstream(tmp_path: Path) -> Upstream:
    return Upstream(tmp_path / "upstream it's")


def fetched(toy: Any, commit: str) -> Path:
    return toy.home / "work" / "cache" / "repositories" / f"toy-{commit[:12]}"


def content(toy: Any, commit: str) -> str:
    return (fetched(toy, commit) / "scripts" / "train.py").read_text()


def asking(upstream: Upstream, commit: str) -> dict[str, Any]:
    return {"repository": [upstream.url, commit]}


def test_only_the_commit_is_fetched_without_its_history(toy: Any, upstream: Upstream) -> None:
    commit = upstream.commits[1]
    assert toy.run(framework=asking(upstream, commit))["state"] == "completed"
    assert content(toy, commit) == "version 1"
    log = subprocess.run(
        ["git", "-C", fetched(toy, commit), "log", "--format=%H"], capture_output=True, text=True, check=True
    )
    assert log.stdout.split() == [commit]
    assert [path.name for path in fetched(toy, commit).parent.iterdir()] == [f"toy-{commit[:12]}"]


def test_all_commits_are_fetched_from_a_server_without_single_commits(
    toy: Any, upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"COUNT": "1", "KEY_0": "protocol.version", "VALUE_0": "0"}.items():
        monkeypatch.setenv(f"GIT_CONFIG_{name}", value)
    assert toy.run(framework=asking(upstream, upstream.commits[1]))["state"] == "completed"
    assert content(toy, upstream.commits[1]) == "version 1"


def test_it_is_fetched_once_for_all_runs(toy: Any, upstream: Upstream) -> None:
    commit = upstream.commits[0]
    assert toy.run(framework=asking(upstream, commit))["state"] == "completed"
    made = fetched(toy, commit).stat().st_ino
    upstream.folder.rename(upstream.folder.with_name("gone"))
    assert toy.run(framework=asking(upstream, commit))["state"] == "completed"
    assert fetched(toy, commit).stat().st_ino == made


def damage(folder: Path, how: str) -> None:
    file = folder / "scripts" / "train.py"
    if how == "a file is gone":
        file.unlink()
    elif how == "a file is changed":
        file.write_text("something else")
    elif how == "another commit":
        subprocess.run([*GIT, "-C", folder, "commit", "--quiet", "--allow-empty", "-m", "mine"], check=True)
    else:
        subprocess.run(["rm", "-rf", folder], check=True)
        folder.mkdir()


@pytest.mark.slow
def test_a_damaged_repository_is_fetched_again(toy: Any, upstream: Upstream) -> None:
    commit = upstream.commits[2]
    assert toy.run(framework=asking(upstream, commit))["state"] == "completed"
    for how in ("a file is gone", "a file is changed", "another commit", "the folder is empty"):
        damage(fetched(toy, commit), how)
        assert toy.run(framework=asking(upstream, commit))["state"] == "completed", how
        assert content(toy, commit) == "version 2", how
        head = ["git", "-C", fetched(toy, commit), "rev-parse", "HEAD"]
        assert subprocess.check_output(head, text=True).strip() == commit, how


def test_files_that_a_run_adds_do_no_harm(toy: Any, upstream: Upstream) -> None:
    commit = upstream.commits[2]
    assert toy.run(framework=asking(upstream, commit))["state"] == "completed"
    (fetched(toy, commit) / "scripts" / "train.pyc").write_text("compiled")
    upstream.folder.rename(upstream.folder.with_name("gone"))
    assert toy.run(framework=asking(upstream, commit))["state"] == "completed"


def test_a_fetch_that_is_killed_is_repeated(toy: Any, upstream: Upstream, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first git that fetches leaves half of its work and waits to be killed."""
    programs = toy.folder / "bin"
    programs.mkdir()
    real, once = subprocess.check_output(["which", "git"], text=True).strip(), toy.folder / "fetching"
    git = programs / "git"
    git.write_text(
        f'#!/bin/sh\ncase "$*" in *" fetch --"*) if [ ! -e {once} ]; then echo half >"$2/half"; '
        f'echo $PPID >{once}.new; mv {once}.new {once}; sleep 600; fi;; esac\nexec {real} "$@"\n'
    )
    git.chmod(0o755)
    spec = toy.spec(framework=asking(upstream, upstream.commits[1]))
    process = toy.start("run", spec, "--json", env={"PATH": f"{programs}:{os.environ['PATH']}"})
    job = int(toy.wait(lambda: once.exists() and once.read_text()))
    supervisor = int(Path(f"/proc/{job}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(supervisor, signal.SIGKILL)
    out, err = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 0, out + err
    assert content(toy, upstream.commits[1]) == "version 1"
    assert not (fetched(toy, upstream.commits[1]) / "half").exists()


@pytest.mark.parametrize(
    ("url", "commit", "words"),
    [
        ("file:///nowhere/at/all", "0" * 40, "'/nowhere/at/all' does not appear to be a git repository"),
        (None, "0" * 40, "0000000000000000000000000000000000000000"),
        ("https://127.0.0.1:9/x.git", "0" * 40, "unable to access 'https://127.0.0.1:9/x.git/'"),
    ],
)
def test_a_failed_fetch_is_one_line(toy: Any, upstream: Upstream, url: str | None, commit: str, words: str) -> None:
    run = toy.run(framework={"repository": [url or upstream.url, commit]})
    cause = run["failure"]["cause"]
    assert run["state"] == "failed"
    assert cause.startswith("repository could not be created: ")
    assert f"cannot fetch {commit} of {url or upstream.url}: " in cause
    assert words in cause
    assert "\n" not in cause


def test_a_damaged_upstream_has_its_error_although_git_prints_null_bytes(toy: Any, upstream: Upstream) -> None:
    commit = upstream.commits[1]
    blob = upstream.git("rev-parse", f"{commit}:scripts/train.py")
    (upstream.folder / ".git/objects" / blob[:2] / blob[2:]).unlink()
    cause = toy.run(framework=asking(upstream, commit))["failure"]["cause"]
    assert f"cannot fetch {commit} of {upstream.url}: " in cause
    assert "error: " in cause or "fatal: " in cause


def test_a_dry_run_shows_it_among_the_preparation(toy: Any, upstream: Upstream) -> None:
    spec = toy.spec(framework=asking(upstream, upstream.commits[0]))
    [task] = json.loads(toy.llmb("run", spec, "--dry-run", "--json").stdout)["preparations"].values()
    assert task["kind"] == "repository"
    assert upstream.commits[0] in task["check"]
    assert "# to create first: repository" in toy.llmb("run", spec, "--dry-run").stdout
    assert not toy.home.exists()


def test_a_run_records_the_task_that_it_waits_for(toy: Any, upstream: Upstream) -> None:
    import llmb

    def wait(pause_s: float) -> None:
        if toy.journal("task-begin"):
            toy.task_gate.touch()
        time.sleep(pause_s)

    options = {**asking(upstream, upstream.commits[0]), "task": "data", "task_gate": str(toy.task_gate)}
    with llmb.start(llmb.load(toy.spec(framework=options))) as session:
        session.wait(sleep=wait)
    [record] = toy.records
    events = map(json.loads, (record / "events.jsonl").read_text().splitlines())
    waited_for = [event["task"] for event in events if event.get("state") == "preparing"]
    assert [key.partition("-")[0] for key in waited_for] == ["repository", "toy"]
