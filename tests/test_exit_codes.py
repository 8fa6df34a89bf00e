"""Every row of docs/exit-codes.md: the command has the exit code of the page in this situation."""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from parts.deadline import DEADLINE_S, wait_until
from parts.toy import ToyRuns, gated

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/exit-codes.md").read_text()
ROWS = [
    ((command, situation), int(code))
    for command, situation, code in re.findall(r"^\| (`.*?|any) \| (.+?) \| (\d+) \|$", PAGE, re.MULTILINE)
]
POINT = ("--recipe", "maxtext/llama2-70b", "--gpu-type", "h100", "--dtype", "bf16", "--gpus", "64")
LOGS = ROOT / "examples/logs"
CASES: dict[tuple[str, str], Callable[[ToyRuns], list[int]]] = {}
"""The exit codes of the commands of each row, which must all be that of the page."""


def case(command: str, situation: str) -> Callable[[Any], Any]:
    """Return a decorator that adds the case of a row."""

    def add(function: Callable[[ToyRuns], list[int]]) -> Callable[[ToyRuns], list[int]]:
        CASES[command, situation] = function
        return function

    return add


def codes(toy: ToyRuns, *commands: tuple[str, ...]) -> list[int]:
    return [toy.llmb(*command).returncode for command in commands]


def judged(toy: ToyRuns, dtype: str) -> str:
    """Return a spec whose verdict is pass in BF16 and fail in FP8."""
    return toy.spec(dtype, workload={"recipe": "toy/judged", "dtype": dtype}, framework={"journal": "/dev/null"})


def failing(toy: ToyRuns) -> str:
    return toy.spec(framework={"end": "exit 3", "end_step": 2})


def failed_run(toy: ToyRuns) -> str:
    """Record a run that failed. Return its id."""
    return str(toy.runs("run", failing(toy))[0]["run_id"])


def failed_task(toy: ToyRuns) -> str:
    return toy.spec(framework={"task": "data", "task_end": "exit 4"})


def rejected(toy: ToyRuns) -> str:
    return toy.spec(workload={"dtype": "fp8"}, target={"scheduler": "choosy"})


def unreachable(toy: ToyRuns) -> str:
    target = {"scheduler": "detached", "host": "127.0.0.1:1", "workdir": "/tmp/work"}
    return toy.spec("unreachable", target=target)


def without_steps(toy: ToyRuns) -> str:
    log = toy.folder / "empty.log"
    log.write_text("nothing\n")
    return str(log)


def log_of(toy: ToyRuns, step_time_s: float) -> str:
    log = toy.folder / f"{step_time_s}.log"
    lines = [f"completed step: {step}, seconds: {step_time_s}, TFLOP/s/device: 500, loss: 8.0\n" for step in range(50)]
    log.write_text("".join(lines))
    return str(log)


def interrupted(toy: ToyRuns) -> int:
    """Press Ctrl-C while a job runs."""
    process = toy.start("run", toy.spec("waiting", framework=gated(toy)))
    toy.wait_for_state("running")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=DEADLINE_S)
    toy.gate.touch()
    return int(process.returncode)


@case("`run`, `attach`", "every run completed, whatever the verdicts")
def _(toy: ToyRuns) -> list[int]:
    return codes(toy, ("run", judged(toy, "bf16")), ("run", judged(toy, "fp8")))


@case("`run --check`", "every run completed, and the verdict on a run and its repeats is fail")
def _(toy: ToyRuns) -> list[int]:
    toy.llmb("run", judged(toy, "fp8"))
    [run] = toy.records
    return codes(toy, ("run", judged(toy, "fp8"), "--check"), ("attach", run.name, "--check"))


@case("`run --check`", "every run completed, and the verdicts are pass, undecided or missing")
def _(toy: ToyRuns) -> list[int]:
    return codes(toy, ("run", judged(toy, "bf16"), "--check"), ("run", toy.spec(), "--check"))


@case("`run`", "a run failed, timed out, was lost or was cancelled")
def _(toy: ToyRuns) -> list[int]:
    hanging = toy.spec("hanging", workload={"time_limit": "1s"}, framework={"hang": True, "end": "stop", "end_step": 2})
    return codes(toy, ("run", failing(toy)), ("run", hanging))


@case("`run`", "the job crashed after the last step, so the run completed with a note")
def _(toy: ToyRuns) -> list[int]:
    return codes(toy, ("run", toy.spec(framework={"end": "exit 3"})))


@case("`run`", "a shared task failed")
def _(toy: ToyRuns) -> list[int]:
    return codes(toy, ("run", failed_task(toy)))


@case("`run`", "the parser of a plugin failed, and steps are missing")
def _(toy: ToyRuns) -> list[int]:
    return codes(toy, ("run", toy.spec(framework={"garbled_step": 3})))


@case("`run`", "the scheduler rejected a job")
def _(toy: ToyRuns) -> list[int]:
    return codes(toy, ("run", rejected(toy)))


@case("`run`", "the host cannot be reached, or the work directory is not safe")
def _(toy: ToyRuns) -> list[int]:
    unsafe = toy.folder / "unsafe"
    unsafe.mkdir()
    unsafe.chmod(0o777)
    return codes(toy, ("run", unreachable(toy)), ("run", toy.spec(target={"workdir": str(unsafe)})))


@case("`run`", "the spec is invalid, or a secret is missing")
def _(toy: ToyRuns) -> list[int]:
    secret = toy.spec("secret", framework={"secrets": ["TOY_TOKEN"]})
    return codes(toy, ("run", toy.spec(workload={"gpus": 3})), ("run", secret))


@case("`run --detach`", "all jobs are submitted, whatever becomes of them")
def _(toy: ToyRuns) -> list[int]:
    spec = toy.spec(framework=gated(toy, end="exit 3", end_step=3))
    found = codes(toy, ("run", spec, "--detach"))
    toy.gate.touch()
    return found


@case("`run --detach`", "a shared task failed")
def _(toy: ToyRuns) -> list[int]:
    return codes(toy, ("run", failed_task(toy), "--detach"))


@case("`run --detach`", "the scheduler rejected a job")
def _(toy: ToyRuns) -> list[int]:
    return codes(toy, ("run", rejected(toy), "--detach"))


@case("`run --dry-run`", "the spec is valid, and the host cannot be reached")
def _(toy: ToyRuns) -> list[int]:
    return codes(toy, ("run", unreachable(toy), "--dry-run"))


@case("`attach`", "no run is unfinished, even if an ended run failed")
def _(toy: ToyRuns) -> list[int]:
    failed_run(toy)
    return codes(toy, ("attach",))


@case("`attach RUN`", "the run failed before `attach`")
def _(toy: ToyRuns) -> list[int]:
    return codes(toy, ("attach", failed_run(toy)))


@case("`attach RUN --check`", "the run ended before `attach`, and the verdict is fail")
def _(toy: ToyRuns) -> list[int]:
    run_id = str(toy.runs("run", judged(toy, "fp8"))[0]["run_id"])
    return codes(toy, ("attach", run_id, "--check"))


@case("`attach RUN`", "the run is not submitted yet, and a secret that its job needs is not exported")
def _(toy: ToyRuns) -> list[int]:
    spec = toy.spec(framework={"secrets": ["TOY_TOKEN"], "task": "data", "task_gate": str(toy.task_gate)})
    process = toy.start("run", spec, env={"TOY_TOKEN": "0123456789"})
    run_id = toy.wait_for_state("preparing")
    process.kill()
    process.communicate(timeout=DEADLINE_S)
    toy.task_gate.touch()
    return codes(toy, ("attach", run_id))


@case("`cancel RUN`", "the run is cancelled, or it ended before")
def _(toy: ToyRuns) -> list[int]:
    toy.llmb("run", toy.spec(framework=gated(toy)), "--detach")
    [run] = toy.records
    return codes(toy, ("cancel", run.name), ("cancel", run.name))


@case("`run`", "`llmb cancel` of another process cancels the run")
def _(toy: ToyRuns) -> list[int]:
    process = toy.start("run", toy.spec(framework=gated(toy)))
    toy.llmb("cancel", toy.wait_for_state("running"))
    process.communicate(timeout=DEADLINE_S)
    return [int(process.returncode)]


@case("`logs -f RUN`", "the run ended, whatever its state")
def _(toy: ToyRuns) -> list[int]:
    toy.llmb("run", toy.spec(framework={"end": "exit 3", "end_step": 2}), "--detach")
    [run] = toy.records
    return codes(toy, ("logs", "-f", run.name), ("logs", "-f", run.name))


@case("`show`, `logs`, `runs`", "the run failed, or no run matches the filter")
def _(toy: ToyRuns) -> list[int]:
    run_id = failed_run(toy)
    return codes(toy, ("show", run_id), ("logs", run_id), ("runs",), ("runs", "state=lost"))


@case("`show`, `logs`, `attach`, `cancel`", "the run does not exist, or its `run.toml` or `events.jsonl` is damaged")
def _(toy: ToyRuns) -> list[int]:
    names = ["absent"]
    for file in ("run.toml", "events.jsonl"):
        names.append(failed_run(toy))
        (toy.home / "runs" / names[-1] / file).write_text("damaged\n")
    commands = [(command, name) for command in ("show", "logs", "attach", "cancel") for name in names]
    return codes(toy, *commands)


@case("`attach`, `cancel`, `compare`, `report`, `bundle`", "no run matches the filters in braces")
def _(toy: ToyRuns) -> list[int]:
    none = "{state=lost}"
    writing = [("report", none, "--csv", "-"), ("bundle", none, "-o", str(toy.folder / "bundle.tar.gz"))]
    return codes(toy, ("attach", none), ("cancel", none), ("compare", none, none), *writing)


@case("`doctor`", "something is missing")
def _(toy: ToyRuns) -> list[int]:
    toy.home.write_text("a file instead of a folder")
    return codes(toy, ("doctor",))


@case("`doctor`", "the host cannot be reached")
def _(toy: ToyRuns) -> list[int]:
    return codes(toy, ("doctor", unreachable(toy)))


@case("`parse --framework`", "a log, or every log of a directory, has no step")
def _(toy: ToyRuns) -> list[int]:
    maxtext = ("--framework", "maxtext")
    log = without_steps(toy)
    return codes(toy, ("parse", log, *maxtext), ("parse", log, str(LOGS / "run1.log"), *maxtext))


@case("`parse`", "no installed framework finds a step")
def _(toy: ToyRuns) -> list[int]:
    return codes(toy, ("parse", without_steps(toy)))


@case("`parse`", "no installed framework finds a step, and the log contains the cause of a failure")
def _(toy: ToyRuns) -> list[int]:
    log = toy.folder / "failed.log"
    log.write_text("ModuleNotFoundError: No module named 'torch'\n")
    return codes(toy, ("parse", str(log)))


@case("`parse`, `grade`", "a log is missing or unreadable")
def _(toy: ToyRuns) -> list[int]:
    absent = str(toy.folder / "absent.log")
    return codes(toy, ("parse", absent), ("grade", absent, *POINT))


@case("`grade`", "a log has no step, its loss was NaN, or it contains the cause of a failure")
def _(toy: ToyRuns) -> list[int]:
    return codes(toy, ("grade", without_steps(toy), *POINT), ("grade", str(LOGS / "failed.log"), *POINT))


@case("`grade --check`", "the verdict is fail")
def _(toy: ToyRuns) -> list[int]:
    return codes(toy, ("grade", log_of(toy, 7.9), *POINT, "--check"))


@case("`compare`", "the two sides have no configuration in common")
def _(toy: ToyRuns) -> list[int]:
    _, slow = saved_runs(toy)
    toy.llmb("run", toy.spec())
    return codes(toy, ("compare", slow, "{recipe=toy/tiny}"))


@case("`compare --check`", "a configuration is slower by more than `--tolerance`")
def _(toy: ToyRuns) -> list[int]:
    fast, slow = saved_runs(toy)
    return codes(toy, ("compare", fast, slow, "--check"))


@case("`bundle`", "a run has not ended, or its record is incomplete")
def _(toy: ToyRuns) -> list[int]:
    bundle = str(toy.folder / "bundle.tar.gz")
    toy.llmb("run", toy.spec("waiting", framework=gated(toy)), "--detach")
    [record] = toy.records
    running = codes(toy, ("bundle", record.name, "-o", bundle))
    toy.gate.touch()
    toy.llmb("attach", record.name)
    (record / "steps.csv").unlink()
    return [*running, *codes(toy, ("bundle", record.name, "-o", bundle))]


@case("`bundle --redact`", "a name cannot be replaced safely")
def _(toy: ToyRuns) -> list[int]:
    toy.llmb("run", judged(toy, "bf16"))
    [record] = toy.records
    [log] = (record / "logs").iterdir()
    log.write_text("/home/toy/train.py\n" + log.read_text().replace("toy step", "user: toy step"))
    return codes(toy, ("bundle", record.name, "-o", str(toy.folder / "bundle.tar.gz"), "--redact"))


@case("`bundle --verify`", "a file or a value differs from the manifest")
def _(toy: ToyRuns) -> list[int]:
    import tarfile

    saved_runs(toy)
    bundle, other = str(toy.folder / "bundle.tar.gz"), str(toy.folder / "other.tar.gz")
    toy.llmb("bundle", *(record.name for record in toy.records), "-o", bundle)
    (toy.folder / "unpacked").mkdir()
    subprocess.run(["tar", "--extract", "--file", bundle, "--directory", str(toy.folder / "unpacked")], check=True)
    changed = next((toy.folder / "unpacked").rglob("result.json"))
    changed.write_text(changed.read_text().replace("completed", "failed"))
    with tarfile.open(other, "w:gz") as new:
        for file in (toy.folder / "unpacked").iterdir():
            new.add(file, file.name)
    return codes(toy, ("bundle", "--verify", other))


@case("any", "Ctrl-C")
def _(toy: ToyRuns) -> list[int]:
    return [interrupted(toy)]


def saved_runs(toy: ToyRuns) -> tuple[str, str]:
    """Record a fast and a slow run from logs. Return their ids."""
    for step_time_s in (7.0, 7.9):
        known = set(toy.records)
        toy.llmb("grade", log_of(toy, step_time_s), *POINT, "--save")
        wait_until(lambda known=known: set(toy.records) - known)
    fast, slow = sorted(toy.records, key=lambda record: (record / "result.json").stat().st_mtime_ns)
    return fast.name, slow.name


def test_every_row_has_a_case() -> None:
    assert [row for row, _ in ROWS] == list(CASES)


@pytest.mark.slow
@pytest.mark.parametrize(("row", "code"), ROWS, ids=[" ".join(row) for row, _ in ROWS])
def test_a_command_has_the_exit_code_of_the_page(toy: ToyRuns, row: tuple[str, str], code: int) -> None:
    assert set(CASES[row](toy)) == {code}


@pytest.mark.slow
def test_the_order_of_several_codes(toy: ToyRuns) -> None:
    rejects_fp8 = toy.spec(
        workload={"dtype": ["bf16", "fp8"]}, framework={"end": "exit 3", "end_step": 2}, target={"scheduler": "choosy"}
    )
    assert codes(toy, ("run", rejects_fp8)) == [4]
    failed = failed_run(toy)
    toy.llmb("run", judged(toy, "fp8"))
    slow = max(toy.records, key=lambda record: record.stat().st_mtime_ns).name
    assert codes(toy, ("attach", slow, "--check"), ("attach", slow, failed, "--check")) == [3, 1]
