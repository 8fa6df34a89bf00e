"""On a Slurm cluster, no text of a spec is executed, and secrets appear only in the job."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from parts.toy import at_gate

import llmb

pytestmark = pytest.mark.real

TOKEN = "very-secret-7d1f9c"
ODD = "$(touch {x}); \"'`touch {x}` \\ #%j"


def odd(toy: Any, end: str = "") -> str:
    return ODD.replace("{x}", str(toy.folder / "x")) + end


def touched(toy: Any) -> list[Path]:
    return [toy.folder / "x"] if (toy.folder / "x").exists() else []


# quoting


@pytest.mark.smoke
def test_special_characters_reach_the_job_unchanged(toy_slurm: Any) -> None:
    text = odd(toy_slurm, "\nline\n")
    run = toy_slurm.run(
        framework={"dump": True, "journal": str(toy_slurm.folder / "it's; $(touch y) journal")}, env={"ODD": text}
    )
    assert run["state"] == "completed"
    assert f"ODD={text}" in (toy_slurm.work(run["run_id"]) / "env.0").read_text().split("\0")
    assert (toy_slurm.folder / "it's; $(touch y) journal").exists()
    assert touched(toy_slurm) == []


def test_the_remedy_of_a_lock_that_is_a_link_is_a_command_that_corrects_it(toy_slurm: Any) -> None:
    lock = toy_slurm.workdir / "runs/.submit"
    lock.parent.mkdir(parents=True)
    lock.symlink_to(toy_slurm.folder / "x")
    with pytest.raises(llmb.TargetError, match="is a symbolic link"):
        toy_slurm.run()
    [run] = toy_slurm.runs("runs")
    assert (run["state"], touched(toy_slurm)) == ("failed", [])
    assert run["failure"]["remedy"] == f"run `rm {lock}` on the host"
    subprocess.run(["bash", "-c", run["failure"]["remedy"].split("`")[1]], check=True)
    assert toy_slurm.run()["state"] == "completed"


def test_a_work_directory_with_special_characters(toy_slurm: Any) -> None:
    toy_slurm.workdir = toy_slurm.folder / 'it\'s $(touch x); "q" %j é'
    run = toy_slurm.run()
    assert run["state"] == "completed"
    assert toy_slurm.steps_of(toy_slurm.records[0]) == [1, 2, 3, 4, 5]
    assert list(toy_slurm.folder.rglob("x")) == []


@pytest.mark.parametrize(
    "key",
    [
        *("account", "partition", "qos", "reservation", "nodelist", "exclude", "constraint", "dependency", "mem"),
        *("mpi", "runtime", "gpu_request"),
    ],
)
@pytest.mark.slow
@pytest.mark.parametrize("end", ["", "\nx"])
def test_invalid_options_are_rejected_without_effect(toy_slurm: Any, key: str, end: str) -> None:
    done = toy_slurm.llmb("run", toy_slurm.spec(target={key: odd(toy_slurm, end)}))
    assert done.returncode in ((1, 2, 4) if not end else (2,)), done.stderr
    assert "Traceback" not in done.stderr
    assert touched(toy_slurm) == []


@pytest.mark.parametrize("name", ["wckey", "comment", "licenses", "acctg-freq"])
def test_further_options_with_special_characters_are_passed_or_rejected(toy_slurm: Any, name: str) -> None:
    done = toy_slurm.llmb("run", toy_slurm.spec(target={"sbatch": {name: odd(toy_slurm)}}))
    assert done.returncode in (0, 2, 4), done.stderr
    assert touched(toy_slurm) == []


def test_an_invalid_name_of_a_further_option_is_rejected(toy_slurm: Any) -> None:
    done = toy_slurm.llmb("run", toy_slurm.spec(target={"sbatch": {odd(toy_slurm): True}}))
    assert done.returncode == 2
    assert "not a long option of sbatch" in done.stderr


# secrets


def places(toy: Any, job_id: str) -> Iterator[tuple[str, str]]:
    """Return everything that other users, or a reader of the record, can read."""
    commands = {
        "ps": ["ps", "axww", "-o", "args"],
        "scontrol": ["scontrol", "-dd", "show", "job", job_id],
        "batch script": ["scontrol", "write", "batch_script", job_id, "-"],
        "steps": ["scontrol", "show", "step"],
        "sacct": ["sacct", "-j", job_id, "-P", "-o", "ALL"],
        "squeue": ["squeue", "-a", "-t", "all", "-j", job_id, "-o", "%all"],
    }
    for name, command in commands.items():
        yield name, subprocess.run(command, capture_output=True, text=True).stdout
    for folder in (toy.home, toy.workdir):
        for file in folder.rglob("*"):
            if file.is_file() and file.name != ".secrets":
                yield str(file), file.read_bytes().decode(errors="replace")


def refuse_token(toy: Any, job_id: str) -> None:
    seen = dict(places(toy, job_id))
    assert [name for name, text in seen.items() if TOKEN in text] == []
    assert {"ps", "sacct"} <= set(seen)


def secret(toy: Any, **options: Any) -> dict[str, Any]:
    return {"secrets": ["TOY_TOKEN"], "gate": str(toy.gate), "gate_step": 2, **options}


def secrets_left(toy: Any) -> list[Path]:
    return list(toy.workdir.rglob("*secrets*"))


@pytest.fixture(autouse=True)
def _token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOY_TOKEN", TOKEN)


@pytest.mark.smoke
def test_a_secret_reaches_the_job_only(toy_slurm: Any) -> None:
    def look() -> None:
        [file] = secrets_left(toy_slurm)
        assert file.stat().st_mode & 0o777 == 0o600
        refuse_token(toy_slurm, toy_slurm.job_id())
        toy_slurm.gate.touch()

    run = toy_slurm.follow(at_gate(toy_slurm, look), framework=secret(toy_slurm))
    assert run["state"] == "completed"
    digest = (toy_slurm.work(run["run_id"]) / "token.sha256").read_text().split()[0]
    assert digest == hashlib.sha256(TOKEN.encode()).hexdigest()
    assert secrets_left(toy_slurm) == []
    refuse_token(toy_slurm, run["job_id"])


@pytest.mark.slow
def test_a_requeued_job_has_its_secret(toy_slurm: Any) -> None:
    def requeue() -> None:
        toy_slurm.cluster.order("scontrol", "requeue", toy_slurm.job_id())

    def look() -> None:
        (next(toy_slurm.workdir.glob("runs/*/token.sha256"))).unlink()
        requeue()

    run = toy_slurm.follow(
        at_gate(toy_slurm, look), at_gate(toy_slurm, toy_slurm.gate.touch, 1), framework=secret(toy_slurm)
    )
    assert run["state"] == "completed"
    assert (toy_slurm.work(run["run_id"]) / "token.sha256").exists()
    assert secrets_left(toy_slurm) == []


@pytest.mark.parametrize("words", [("scancel",), ("scancel", "--signal=KILL", "--full")])
def test_a_secret_does_not_outlive_a_job_that_is_killed(toy_slurm: Any, words: tuple[str, ...]) -> None:
    kill = at_gate(toy_slurm, lambda: toy_slurm.cluster.order(*words, toy_slurm.job_id()))
    run = toy_slurm.follow(kill, framework=secret(toy_slurm))
    assert run["state"] in ("cancelled", "failed")
    assert secrets_left(toy_slurm) == []


def test_a_cancelled_job_removes_its_secret_without_a_follower(toy_slurm: Any) -> None:
    toy_slurm.llmb("run", toy_slurm.spec(framework=secret(toy_slurm)), "--detach")
    toy_slurm.wait(toy_slurm.is_at_gate)
    toy_slurm.cluster.order("scancel", toy_slurm.job_id())
    assert toy_slurm.wait(lambda: not secrets_left(toy_slurm))


def test_the_secret_of_a_job_that_never_began_is_removed(toy_slurm: Any) -> None:
    hold = {"sbatch": {"hold": True}}
    toy_slurm.llmb("run", toy_slurm.spec(framework=secret(toy_slurm), target=hold), "--detach")
    assert len(secrets_left(toy_slurm)) == 1
    [cancelled] = toy_slurm.runs("cancel", toy_slurm.records[0].name)
    assert cancelled["state"] == "cancelled"
    assert secrets_left(toy_slurm) == []


def test_the_secret_of_a_rejected_job_is_removed(toy_slurm: Any) -> None:
    done = toy_slurm.llmb("run", toy_slurm.spec(framework=secret(toy_slurm), target={"partition": "nosuch"}))
    assert done.returncode == 4
    assert TOKEN not in done.stderr
    assert secrets_left(toy_slurm) == []


def test_a_task_without_secrets_removes_those_of_another_llmb(toy_slurm: Any) -> None:
    """A process whose target has secrets may be killed between placing them and submitting the shared task."""
    length = toy_slurm.folder / "length"
    task = {"task": "data", "task_on": "scheduler", "task_end": f'echo "${{#OTHER_TOKEN}}" >{length}'}
    [planned] = toy_slurm.runs("run", toy_slurm.spec(framework=task), "--dry-run")
    [preparation] = planned["preparation"]
    placed = toy_slurm.workdir / "cache" / "jobs" / preparation["key"] / ".secrets"
    placed.parent.mkdir(parents=True)
    placed.write_text(f"export OTHER_TOKEN={TOKEN}\n")
    assert toy_slurm.run(framework=task)["state"] == "completed"
    assert length.read_text() == f"{len(TOKEN)}\n"
    assert secrets_left(toy_slurm) == []
