"""The batch scripts of jobs, beyond those of the contract."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import attrs
import pytest
from parts.jobs import job

from llmb import Environment, FrozenMap, Image, Job, Mount, Phase, SpecError, Target, Venv
from llmb_slurm.options import SlurmOptions
from llmb_slurm.plugin import Slurm

VENV = Environment(base=Venv(lock="one==1\n", python=">=3.12"))
IMAGE = Environment(base=Image(ref="nvcr.io/nvidia/nemo:24.09", digest="sha256:" + 64 * "0"), secrets=("HF_TOKEN",))


def target(**options: Any) -> Target[SlurmOptions]:
    return Target(scheduler="slurm", workdir="/work", options=SlurmOptions(**options))


@pytest.fixture(autouse=True)
def _no_defaults_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SBATCH_ACCOUNT", "SLURM_ACCOUNT", "SBATCH_PARTITION", "SLURM_PARTITION"):
        monkeypatch.delenv(name, raising=False)


def step_options(job: Job, **options: Any) -> set[str]:
    """Return the options of the srun that runs the phases of a job."""
    [line] = [each for each in Slurm().build_job(job, target(**options)).text.splitlines() if "srun --label" in each]
    return set(line.split())


@pytest.mark.parametrize(
    ("stated", "options", "passed"),
    [
        (None, {}, {"--wait=60", "--kill-on-bad-exit=1"}),
        ("pmix", {}, {"--mpi=pmix", "--wait=60", "--kill-on-bad-exit=1"}),
        ("pmix", {"mpi": "pmi2"}, {"--mpi=pmi2"}),
        (None, {"mpi": "pmi2"}, {"--mpi=pmi2"}),
        (None, {"sbatch": {"cpus-per-task": 12}}, {"--cpus-per-task=12"}),
        ("pmix", {"wait": 0, "kill_on_bad_exit": False}, {"--mpi=pmix", "--wait=0", "--kill-on-bad-exit=0"}),
    ],
)
def test_steps_start_through_mpi_and_end_with_a_failed_rank(stated: str | None, options: Any, passed: set[str]) -> None:
    found = step_options(job(mpi=stated), **options)

    assert passed <= found
    assert sum(option.startswith("--mpi") for option in found) == sum(option.startswith("--mpi") for option in passed)


def test_a_rank_of_a_data_job_may_end_long_before_another() -> None:
    data = Phase(name="tokenize", command=("tokenize",), measured=False)

    assert '"${all_ranks[@]}" --wait=0 ' in Slurm().build_job(job(nodes=2, phases=(data,)), target()).text
    assert "--wait=0" not in Slurm().build_job(job(nodes=2, gpus_per_node=8, phases=(data,)), target()).text


def test_logs_are_per_phase_and_attempt_with_a_log_for_slurm() -> None:
    phases = (Phase(name="convert", command=("convert",), ranks="first"), Phase(name="perf", command=("train",)))
    folder = "/work/runs/abcde-tiny"
    assert Slurm().build_job(job(phases=phases), target()).logs == {
        "slurm": (f"{folder}/slurm.log",),
        "convert": (f"{folder}/logs/convert.{{attempt}}.log",),
        "perf": (f"{folder}/logs/perf.{{attempt}}.log",),
    }


def directive(name: str, **options: Any) -> list[str]:
    lines = Slurm().build_job(job(gpus_per_node=8, domain_nodes=4), target(**options)).text.splitlines()
    return [line.removeprefix("#SBATCH --") for line in lines if line.startswith(f"#SBATCH --{name}")]


@pytest.mark.parametrize(
    ("name", "options", "lines"),
    [
        ("g", {}, ["gres=gpu:8"]),
        ("g", {"gpu_request": "gpus-per-node"}, ["gpus-per-node=8"]),
        ("g", {"gpu_request": "none"}, []),
        ("mem", {}, ["mem=0"]),
        ("mem", {"mem": "none"}, []),
        ("mem", {"mem": "none", "sbatch": {"mem-per-cpu": "2G"}}, ["mem-per-cpu=2G"]),
        ("segment", {}, ["segment=4"]),
        ("segment", {"segment": False}, []),
        ("exclusive", {}, ["exclusive"]),
        ("exclusive", {"exclusive": False}, []),
        ("dependency", {}, []),
        ("kill-on-invalid-dep", {"dependency": "afterok:1"}, ["kill-on-invalid-dep=yes"]),
        ("constraint", {"constraint": "gpu&memory"}, ["constraint=gpu&memory"]),
        ("time", {}, ["time=00:30:00"]),
    ],
)
def test_directives(name: str, options: dict[str, Any], lines: list[str]) -> None:
    assert directive(name, **options) == lines


@pytest.mark.parametrize(
    ("gpu_types", "options", "gpus"),
    [
        (("h100",), {}, ["--gres=gpu:1"]),
        (("h100",), {"gpu_request": "gpus-per-node"}, ["--gpus-per-node=1"]),
        (("h100",), {"gpu_request": "none"}, []),
        (("cpu",), {}, []),
    ],
)
def test_a_job_without_gpus_requests_one_if_the_runs_use_gpus(
    gpu_types: tuple[str, ...], options: dict[str, Any], gpus: list[str]
) -> None:
    """A task runs in the partition of the runs, which may reject jobs without GPUs."""
    gpu_target = attrs.evolve(target(**options), gpu_types=gpu_types)
    lines = Slurm().build_job(job(gpus_per_node=0), gpu_target).text.splitlines()
    assert [line.removeprefix("#SBATCH ") for line in lines if line.startswith("#SBATCH --g")] == gpus


@pytest.mark.parametrize("variable", ["SBATCH_ACCOUNT", "SLURM_ACCOUNT"])
def test_the_default_account_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv(variable, "proj7")
    assert directive("account") == ["account=proj7"]
    assert directive("account", account="proj8") == ["account=proj8"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"account": "a\nb"}, r'invalid value "a\\nb"; expected printable text of one line'),
        ({"qos": ""}, 'invalid value ""; expected printable'),
        *(
            ({"mem": mem}, f'invalid value "{mem}"; expected megabytes, or an integer with a unit such as "900G"')
            for mem in ("", "64 GB", "0.5G", "64GiB", "all")
        ),
        ({"sbatch": {"job-name": "x"}}, "job-name: llmb sets this option; expected no such key"),
        ({"sbatch": {"help": True}}, "help: llmb sets this option"),
        ({"sbatch": {"arr": "1-3"}}, "arr: sbatch could take it for array, which llmb sets; expected a complete name"),
        ({"sbatch": {"mem-per-gpu": "10G"}}, 'mem-per-gpu: conflicts with --mem; expected .* target.mem = "none"'),
        ({"sbatch": {"time": "1:00"}}, "time: llmb sets this option; expected workload.time_limit"),
        ({"sbatch": {"gres": "gpu:1"}}, 'gres: llmb sets this option; expected target.gpu_request = "gres"'),
        ({"sbatch": {"N": 2}}, "N: not a long option of sbatch; expected a name"),
        ({"sbatch": {"licenses\n": "a"}}, "not a long option of sbatch"),
        ({"sbatch": {"licenses": "a\nb"}}, "licenses: invalid value .*printable text"),
        ({"sbatch": {"contiguous": False}}, "contiguous: invalid value false; expected true for a flag"),
    ],
)
def test_invalid_options_are_rejected(options: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        SlurmOptions(**options)


@pytest.mark.parametrize(
    ("environment", "runtime", "expected"),
    [
        (IMAGE, "venv", '"pyxis", or "none"'),
        (VENV, "pyxis", '"venv", or "none"'),
    ],
)
def test_a_runtime_that_does_not_suit_the_recipe_is_rejected(
    environment: Environment, runtime: str, expected: str
) -> None:
    for call in (
        lambda: Slurm().build_job(job(environment=environment), target(runtime=runtime)),
        lambda: Slurm().prepare_env(environment, target(runtime=runtime)),
    ):
        with pytest.raises(SpecError, match=expected) as raised:
            call()
        assert raised.value.faults[0].key == "target.runtime"


@pytest.mark.parametrize(
    ("environment", "options", "kinds"),
    [
        (IMAGE, {}, ["container image"]),
        (IMAGE, {"runtime": "pyxis"}, ["container image"]),
        (IMAGE, {"runtime": "none"}, []),
        (Environment(base=Image(ref="/images/own.sqsh")), {}, ["image file /images/own.sqsh"]),
        (VENV, {}, ["virtual environment"]),
        (VENV, {"runtime": "none"}, []),
        (Environment(), {"runtime": "pyxis"}, []),
    ],
)
def test_tasks_of_the_environment(environment: Environment, options: dict[str, Any], kinds: list[str]) -> None:
    assert [task.kind for task in Slurm().prepare_env(environment, target(**options))] == kinds
    text = Slurm().build_job(job(environment=environment), target(**options)).text
    assert ("--container-image" in text) == any("image" in kind for kind in kinds)
    assert ("VIRTUAL_ENV=" in text) == (kinds == ["virtual environment"])


@pytest.mark.parametrize(
    ("mount", "path"), [(("/a,b", "/c"), "/a,b"), (("/a", "/b c"), "/b c"), (("/a:b", "/a:b"), "/a:b")]
)
def test_a_path_that_pyxis_cannot_mount_is_rejected_with_its_key(mount: tuple[str, str], path: str) -> None:
    odd = job(environment=IMAGE, mounts=(Mount(source=mount[0], target=mount[1]),))
    with pytest.raises(SpecError) as raised:
        Slurm().build_job(odd, target())
    assert [*map(str, raised.value.faults)] == [
        f'mounts."{mount[0]}": pyxis cannot mount "{path}"; '
        "expected a path without commas, colons, spaces and backslashes"
    ]


@pytest.mark.parametrize(
    ("workdir", "environment", "message"),
    [
        (
            "/a b/x",
            IMAGE,
            'pyxis cannot mount "/a b/x"; expected a path without commas, colons, spaces and backslashes',
        ),
        (r"/a\b", Environment(), r'"/a\\b" contains a backslash, which Slurm removes from'),
    ],
)
def test_an_invalid_work_directory_is_reported_as_the_user_wrote_it(
    workdir: str, environment: Environment, message: str
) -> None:
    inside = Mount(source=f"{workdir}/cache/r", target=f"{workdir}/cache/r")
    odd = job(directory=f"{workdir}/runs/abcde-tiny", environment=environment, mounts=(inside,))
    with pytest.raises(SpecError) as raised:
        Slurm().build_job(odd, attrs.evolve(target(), workdir=workdir))
    [fault] = raised.value.faults
    assert str(fault).startswith(f"target.workdir: {message}")


@pytest.mark.parametrize(("help_text", "warned"), [("--container-image=", False), ("--label", True), (None, False)])
def test_a_host_without_pyxis_gives_a_warning_before_submission(
    tmp_path: Path, help_text: str | None, warned: bool
) -> None:
    if help_text:
        (tmp_path / "srun").write_text(f"#!/bin/sh\necho {help_text}\n")
        (tmp_path / "srun").chmod(0o755)
    (tmp_path / "grep").symlink_to("/usr/bin/grep")
    gpu_target = attrs.evolve(target(), gpu_types=("h100",), host="eos")
    probe = subprocess.run(
        ["/bin/bash", "-c", Slurm().probe(gpu_target)], env={"PATH": str(tmp_path)}, capture_output=True, text=True
    )
    facts = dict(line.split("=") for line in probe.stdout.splitlines())
    script = Slurm().build_job(job(environment=IMAGE), attrs.evolve(gpu_target, facts=FrozenMap(facts)))

    assert (probe.returncode, probe.stderr) == (0, "")
    assert bool(script.notes) is warned
    assert not warned or "srun on eos does not support container images" in script.notes[0]
    assert Slurm().build_job(job(), attrs.evolve(gpu_target, facts=FrozenMap(facts))).notes == ()


def test_there_is_no_probe_for_runs_without_an_image() -> None:
    assert Slurm().probe(attrs.evolve(target(), gpu_types=("h100",), uses_images=False)) == ""


OF_SLURM = ("SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_TASKS_PER_NODE")


def run_rank(of: Job, place: str, command: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a command of sh as a rank of a job, as srun does."""
    script = Slurm().build_job(of, target()).text
    variables = dict.fromkeys((*OF_SLURM, "LLMB_MASTER_ADDR", "LLMB_MASTER_PORT"), "3")
    words = ["bash", "-c", script, "job.sh", "rank", place, "sh", "-c", command]
    return subprocess.run(words, env={"PATH": "/usr/bin:/bin", **env, **variables}, capture_output=True, text=True)


@pytest.mark.parametrize("place", ["inside", "outside"])
def test_ranks_see_the_variables_of_the_job_not_those_of_the_node(tmp_path: Path, place: str) -> None:
    env = FrozenMap({"PYTHONPATH": "/of/the job", "RANK": "7", "MASTER_PORT": "7"})
    node = {"PYTHONHOME": "/left", "PYTHONPATH": "/left"}
    command = 'echo "$PYTHONPATH ${PYTHONHOME-} $RANK $MASTER_PORT"'
    done = run_rank(job(directory=str(tmp_path), environment=VENV, env=env), place, command, **node)
    assert (done.returncode, done.stdout) == (0, f"/of/the job {'/left' if place == 'outside' else ''} 3 3\n")


@pytest.mark.parametrize(
    ("command", "end"),
    [("exit 0", 0), ("exit 3", 3), ("exit 255", 255), ("kill -9 $$", -9), ("kill -15 $$", -15), ("kill -6 $$", -6)],
)
def test_a_rank_ends_as_its_command_does(tmp_path: Path, command: str, end: int) -> None:
    """Slurm reports the exit code or the signal of a rank."""
    done = run_rank(job(directory=str(tmp_path)), "outside", f"echo output; echo words >&2; {command}")
    assert (done.returncode, done.stdout, done.stderr) == (end, "output\n", "words\n")


@pytest.mark.parametrize(("command", "waits"), [("exit 0", []), ("exit 3", ["0.3"]), ("kill -11 $$", ["0.3"])])
def test_only_a_failed_rank_waits_until_srun_has_its_output(tmp_path: Path, command: str, waits: list[str]) -> None:
    """With the exit code, srun kills the other ranks, and drops output that it has not received yet."""
    (tmp_path / "sleep").write_text(f'#!/bin/sh\necho "$1" >>{tmp_path}/waits\n')
    (tmp_path / "sleep").chmod(0o755)
    (tmp_path / "waits").touch()
    run_rank(job(directory=str(tmp_path)), "outside", command, PATH=f"{tmp_path}:/usr/bin:/bin")
    assert (tmp_path / "waits").read_text().split() == waits


NVIDIA_HOOK = """#!/bin/bash
case "$*" in *--container-image=*) ;; *) exit 0 ;; esac
[ "${NVIDIA_VISIBLE_DEVICES:-all}" = void ] || { echo "Command not found: nvidia-container-cli" >&2; exit 1; }
"""
"""A stand-in for srun on a node without a driver: pyxis passes the environment of the job to enroot, whose hook
98-nvidia.sh prefers it to that of the image, which requests all GPUs."""


@pytest.mark.skipif(Path("/proc/driver/nvidia").exists(), reason="needs a machine without NVIDIA's driver")
@pytest.mark.parametrize(("gpus", "exit_code"), [(0, 0), (8, 1)])
def test_an_image_that_requests_gpus_starts_on_a_node_without_driver_only_if_the_job_needs_none(
    tmp_path: Path, gpus: int, exit_code: int
) -> None:
    programs, directory = tmp_path / "bin", tmp_path / "job"
    programs.mkdir()
    directory.mkdir()
    for name, text in {"srun": NVIDIA_HOOK, "scontrol": "#!/bin/sh\necho node1\n", "squeue": "#!/bin/sh\n"}.items():
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    script = Slurm().build_job(job(directory=str(directory), environment=IMAGE, gpus_per_node=gpus), target()).text
    env = {"PATH": f"{programs}:/usr/bin:/bin", "SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "node1"}
    (directory / "slurm.log").touch()
    (directory / "job.sh").write_text(script)
    done = subprocess.run(["bash", "job.sh"], env=env, cwd=directory, capture_output=True, text=True)
    assert done.returncode == exit_code, done.stderr
    assert ("nvidia-container-cli" in done.stderr) == bool(exit_code)


def test_a_job_describes_its_node_and_the_software_of_its_first_rank(tmp_path: Path) -> None:
    files = Slurm().build_job(job(directory=str(tmp_path)), target()).files
    script = tmp_path / "provenance.sh"
    script.write_text(files[str(script)])
    commands = ". ./provenance.sh node; . ./provenance.sh rank 'OWN_*'"
    env = {"PATH": "/usr/bin:/bin", "RANK": "0", "SEEN": "a b", "OWN_NAME": "x", "HF_TOKEN": "hf_x"}
    done = subprocess.run(["bash", "-c", commands], env=env, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert f"kernel={os.uname().release}" in done.stdout
    software = (tmp_path / "provenance").read_text()
    assert "env.SEEN=a b" in software
    assert [text for text in ("OWN_NAME", "HF_TOKEN", "hf_x") if text in software] == []


@pytest.mark.parametrize(
    ("attempt", "secrets", "exit_code"),
    [("0", "", 0), ("1", "export HF_TOKEN=hf_x\n", 0), ("1", "", 1)],
)
def test_a_requeued_job_that_lost_its_secrets_fails_with_the_reason(
    tmp_path: Path, attempt: str, secrets: str, exit_code: int
) -> None:
    """An attempt removes them if squeue does not answer when it ends."""
    programs, directory = tmp_path / "bin", tmp_path / "job"
    programs.mkdir()
    directory.mkdir()
    for name, text in {"srun": "exit 0", "scontrol": "echo node1", "squeue": "exit 1"}.items():
        (programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (programs / name).chmod(0o755)
    environment = Environment(secrets=("HF_TOKEN",))
    text = Slurm().build_job(job(directory=str(directory), environment=environment), target()).text
    for name, content in {"slurm.log": "", "job.sh": text, ".secrets": secrets}.items():
        if content or name != ".secrets":
            (directory / name).write_text(content)
    env = {"PATH": f"{programs}:/usr/bin:/bin", "SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "node1"}
    env["SLURM_RESTART_COUNT"] = attempt
    done = subprocess.run(["bash", "job.sh"], env=env, cwd=directory, capture_output=True, text=True)
    assert done.returncode == exit_code, done.stderr
    reason = (directory / "ended").read_text()
    assert ("removed the secrets, because squeue did not report" in reason) == bool(exit_code)


def test_only_a_job_with_secrets_keeps_them_for_another_attempt() -> None:
    with_secrets = Slurm().build_job(job(environment=IMAGE), target()).text
    without = Slurm().build_job(job(), target()).text
    assert "  will_be_requeued || rm -f .secrets\n" in with_secrets
    assert "  rm -f .secrets\n" in without  # another llmb may have placed them for the same task
    assert [line for line in without.splitlines() if "squeue" in line or "will_be_requeued" in line] == []
