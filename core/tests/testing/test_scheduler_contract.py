"""Planted errors in the template of a scheduler: each fails its test of `SchedulerContract`, and no other test."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import pytest
from parts.contract_failures import find_failures, names_of

import llmb
from llmb.testing import LocalHost, SchedulerContract, live_jobs, scheduler_runs
from llmb.testing.scheduler_runs import RunContract

LIVE = {name for name in vars(RunContract) if name.startswith("test_")}
"""The tests that run jobs."""


@attrs.frozen
class Planted:
    """An error: the test that fails, the replaced text and its replacement in a file, and a part of the message."""

    test: str
    title: str
    file: str
    old: str
    new: str
    message: str


def in_script(test: str, title: str, old: str, new: str, message: str) -> Planted:
    return Planted(test, title, "script.sh", old, new, message)


def in_commands(test: str, title: str, old: str, new: str, message: str) -> Planted:
    return Planted(test, title, "commands.sh", old, new, message)


EXEC = 'exec "$@"'
RETURN = "        return Script("
SCRIPTS = [
    Planted("implements_its_hooks", "a renamed argument", "plugin.py", "def build_job(self, job: Job, target",
            "def build_job(self, task: Job, target", "requires task"),
    Planted("import_is_light", "a large import", "plugin.py", "from llmb import (", "import numpy\nfrom llmb import (",
            "imports numpy, which delays every llmb command"),
    Planted("building_is_pure", "a process", "plugin.py", RETURN,
            f'        import subprocess\n        subprocess.run(["true"])\n{RETURN}', "Popen 'true'"),
    Planted("scripts_match_golden_files", "a missing option", "job_script.py", "time_limit_s={job.time_limit_s} ", "",
            "-time_limit_s=600 grace_s=10\n+grace_s=10"),
    Planted("environments_are_used_or_rejected", "an ignored image", "plugin.py", "isinstance(base, Image)", "False",
            "outside the container"),
    Planted("virtual_environments_are_used_or_rejected", "no task", "plugin.py",
            "(venv_task(base, target.cache),) if isinstance(base, Venv) else ()", "()",
            "no task creates a virtual environment; return venv_task()"),
    Planted("virtual_environments_are_used_or_rejected", "not activated", "job_script.py",
            'venv=venv_folder(base, target.cache) if isinstance(base, Venv) else ""', 'venv=""',
            "a virtual environment does not change the script; pass venv_folder()"),
    Planted("mpi_is_used_or_rejected", "an ignored interface", "plugin.py", "if job.mpi and not job.mpi_optional",
            "if False", "mpi = pmix does not change the script"),
    Planted("phases_have_separate_logs", "one log for two phases", "job_script.py", "{phase.name}.{{attempt}}.{rank}",
            "job.{{attempt}}.{rank}", "several logs are named job.{attempt}.0.log"),
    Planted("phases_have_separate_logs", "no attempt", "job_script.py", "{phase.name}.{{attempt}}.", "{phase.name}.",
            "is the same for each attempt of the job"),
    Planted("states_are_mapped", "an unknown state", "commands.py", '    "TIMEOUT": ("ended", "timeout"),\n', "",
            "poll() fails for a job in state TIMEOUT"),
    Planted("states_are_mapped", "a wrong meaning", "commands.py", '"CANCELLED": ("ended", "cancelled")',
            '"CANCELLED": ("ended", "failed")', "returns ended (failed) for a job in state CANCELLED"),
    Planted("absent_is_not_unreachable", "an unreachable host is empty", "commands.py",
            '    lines = _run(host, [["poll", handle.id, handle.directory] for handle in handles]).splitlines()\n',
            '    calls = [["poll", handle.id, handle.directory] for handle in handles]\n'
            "    try:\n        lines = _run(host, calls).splitlines()\n"
            '    except TargetError:\n        return {each.id: JobStatus(state="absent") for each in handles}\n',
            "if the host cannot be reached, poll() returns absent; raise TargetError"),
]  # fmt: skip
"""Errors that need no job."""

TEXTS = [
    Planted("building_is_pure", "the time", "job_script.py", 'yield "#!/usr/bin/env bash"',
            "import time\n    yield f'# {int(time.time()) // 3600}'", "the script differs"),
    Planted("scripts_are_valid_bash", "an unclosed quote", "script.sh", "sidecars=()", "sidecars=('",
            "invalid bash in the script of example"),
    Planted("is_framework_neutral", "a launcher", "script.sh", EXEC, 'exec torchrun "$@"', "contains torchrun"),
    Planted("secrets_stay_secret", "a token in the text", "script.sh", "sidecars=()",
            "export HF_TOKEN=abc\nsidecars=()", "the script sets HF_TOKEN"),
]  # fmt: skip
"""Errors in the text of the script, which differs from the golden file too."""

AWAIT_TWO = (
    "mktemp submitting.XXXXXX >submitted\n    for ((n = 0; n < 300; n++)); do "
    "[[ $1 = *once && $(ls submitting.* | wc -l) = 1 ]] || break; sleep 0.1; done"
)
"""Wait until two processes submit the job of `test_submitting_twice_starts_one_job`."""

HISTORY = """
    @hookimpl
    def history(self, handles, host):
        from llmb import Attempt, JobHistory
        return {each.id: JobHistory(attempts=(Attempt(attempt=0, start=1.8e12),)) for each in handles}

    @hookimpl
    def cancel"""

RUNS = [
    in_script("ranks_get_their_environment", "no LOCAL_RANK", EXEC, f"unset LOCAL_RANK\n{EXEC}",
              "LOCAL_RANK is not set for rank 0"),
    in_script("ranks_get_their_environment", "a wrong rank", EXEC, f"RANK=0\n{EXEC}",
              "RANK are 0, 0; expected each of 0 to 1 once"),
    in_script("ranks_get_their_environment", "several masters", "export_master 127.0.0.1",
              'export_master "127.0.0.$((1 + rank))"', "MASTER_ADDR differs between ranks: 127.0.0.1, 127.0.0.2"),
    Planted("phases_run_on_their_ranks", "all ranks", "job_script.py", ' if phase.ranks == "all" else 1', "",
            "a phase with ranks = 'node' ran 2 times on 1 nodes, not 1"),
    Planted("incomplete_tasks_start_again", "an ignored check", "commands.py", '"again" if script.check else ""', '""',
            "a script with a check was started 1 times by 2 submissions"),
    in_commands("unknown_jobs_are_absent", "a lost job", "state=ABSENT", "state=LOST",
                "poll() reports a job that was never submitted as ended, not as absent"),
    Planted("history_is_plausible", "milliseconds", "plugin.py", "    @hookimpl\n    def cancel", HISTORY,
            "history() returns start = 1.8e+12; expected seconds since 1970"),
    in_script("phases_wait_and_stop", "one rank is awaited", 'await_processes "${ranks[@]}" || status=$?',
              'wait "${ranks[0]}"', "started when 1 of 2 ranks of the first had ended"),
    in_script("phases_wait_and_stop", "an ignored exit code", '[ "$status" = 0 ] && return', "return",
              "the job continued after a rank exited with code 3"),
    Planted("phases_wait_and_stop", "ignored outputs", "job_script.py", "for path in phase.outputs", "for path in ()",
            "the job continued although an output is missing"),
    in_script("hostile_strings_survive", "words without quotes", EXEC, "exec $@", "quote values with shlex.quote"),
    in_script("hostile_strings_survive", "a path without quotes", 'cd "$run_dir"', 'eval cd "$run_dir"',
              "contract-words"),
    Planted("hostile_strings_survive", "lines are joined", "job_script.py", "yield shlex.join([\"phase\"",
            'yield shlex.join(" ".join(each.split("\\n")) for each in ["phase"', "first line second 'line'"),
    in_commands("submitting_twice_starts_one_job", "no lock", "    setsid bash job.sh",
                f"    flock -u 9; flock -u 8; {AWAIT_TWO}; flock -n 8\n    setsid bash job.sh",
                "the job was started 2 times"),
    in_script("secrets_stay_secret", "a token among the arguments", EXEC,
              "bash -c '\"$@\" && exit' \"${HF_TOKEN-}\" \"$@\"", "the value of HF_TOKEN is in the process list"),
    in_script("secrets_stay_secret", "a token in the log", EXEC, f'echo "${{HF_TOKEN-}}"\n{EXEC}',
              "the value of HF_TOKEN is in logs/train.0.0.log"),
    in_script("secrets_stay_secret", "the file is left", "  rm -f .secrets\n", "", ".secrets is still in the job's"),
    in_script("secrets_stay_secret", "no secrets", "      read_secrets\n", "", "HF_TOKEN is not set for a rank"),
    in_commands("cancel_affects_only_this_job", "a child runs on", 'pkill "-$signal" -s "$pid" || [ $? = 1 ]',
                'kill -KILL "$pid"; rm -f "$1/alive"; : >"$1/alive"', "a process of the cancelled job still runs"),
    in_commands("cancel_affects_only_this_job", "a neighbour ends", "pkill \"-$signal\" -s \"$pid\"",
                'for pid in $(cat "$1"/../*/pid); do pkill "-$signal" -s "$pid"; done',
                "poll() reports the end of contract-other as failed"),
]  # fmt: skip
"""Errors that only a job shows."""


def install(site: Any, folder: Path, planted: Planted | None = None) -> type[SchedulerContract]:
    """Write the template as an installed plugin with an error. Return its contract, without jobs."""
    llmb.resource_text.cache_clear()
    llmb.new_plugin("odd", "scheduler", folder)
    project = folder / "llmb-odd"
    package = project / "src/llmb_odd"
    if planted:
        file = package / planted.file
        assert planted.old in file.read_text()
        file.write_text(file.read_text().replace(planted.old, planted.new))
    site.install(
        "llmb-odd",
        files={f"llmb_odd/{file.name}": file.read_text() for file in package.iterdir()},
        entry_points={"llmb.schedulers": {"odd": "llmb_odd.plugin:Odd"}},
    )

    class TestOdd(SchedulerContract):
        scheduler = "odd"
        folder = project / "tests"  # type: ignore[assignment]  # a property of the contract

    return TestOdd


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.mark.slow
def test_the_template_passes(active_site: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LLMB_UPDATE", raising=False)
    tests = install(active_site, tmp_path)
    tests.run_on = LocalHost()
    assert find_failures(tests()) == {}


@pytest.mark.parametrize("planted", [*SCRIPTS, *TEXTS], ids=lambda each: f"{each.test}-{each.title.replace(' ', '-')}")
def test_an_error_in_a_script_fails_its_test_and_no_other(
    active_site: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, planted: Planted
) -> None:
    monkeypatch.delenv("LLMB_UPDATE", raising=False)
    tests = install(active_site, tmp_path, planted)()
    others = {"test_scripts_match_golden_files"} if planted in TEXTS else set[str]()
    light = {"test_import_is_light"} - {f"test_{planted.test}"}  # starts a process, which takes long
    found = find_failures(tests, names_of(tests) - light - others)
    assert set(found) == {planted.test}, found
    assert planted.message in found[planted.test]


@pytest.mark.slow
@pytest.mark.parametrize("planted", RUNS, ids=lambda each: f"{each.test}-{each.title.replace(' ', '-')}")
def test_an_error_in_a_job_fails_its_test(
    active_site: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, planted: Planted
) -> None:
    if planted.title == "one rank is awaited":  # the other rank waits for the next phase, however late that starts
        patient = scheduler_runs.LAST_RANK_ENDS_LATE.replace("tenth < 10;", "tenth < 3000;")
        monkeypatch.setattr(scheduler_runs, "LAST_RANK_ENDS_LATE", patient)
    if planted.title == "a child runs on":  # it holds its lock however long the test waits
        monkeypatch.setattr(live_jobs, "KILLED_S", 0)
    tests = install(active_site, tmp_path, planted)
    tests.run_on = LocalHost()
    found = find_failures(tests(), {f"test_{planted.test}"})
    assert planted.message in found[planted.test]


@pytest.mark.slow
@pytest.mark.parametrize("planted", RUNS, ids=lambda each: f"{each.test}-{each.title.replace(' ', '-')}")
def test_an_error_in_a_job_fails_no_other_test(active_site: Any, tmp_path: Path, planted: Planted) -> None:
    tests = install(active_site, tmp_path, planted)
    tests.run_on = LocalHost()
    assert find_failures(tests(), LIVE - {f"test_{planted.test}"}) == {}


def test_tests_of_jobs_are_skipped_without_a_host(active_site: Any, tmp_path: Path) -> None:
    tests = install(active_site, tmp_path)()
    for name in LIVE - {"test_secrets_stay_secret"}:
        with pytest.raises(pytest.skip.Exception, match=r"run_on is None; set it to a host"):
            getattr(tests, name)()
    tests.test_secrets_stay_secret()  # that of the script


def test_a_missing_golden_file_or_list_of_states_is_named(
    active_site: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LLMB_UPDATE", raising=False)
    tests = install(active_site, tmp_path)()
    for name in ("golden/example.sh", "states.toml"):
        (tmp_path / "llmb-odd/tests" / name).unlink()
    with pytest.raises(pytest.fail.Exception, match=r"golden/example.sh is missing; run the test with LLMB_UPDATE=1"):
        tests.test_scripts_match_golden_files()
    with pytest.raises(pytest.fail.Exception, match=r"states.toml is missing; list the scheduler's own states"):
        tests.test_states_are_mapped()
