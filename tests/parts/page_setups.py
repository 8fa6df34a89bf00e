"""Logs and recorded runs that the commands of pages read, and that the pages do not create."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from parts.examples import SOURCES, write_metadata, write_project_metadata
from parts.forked import run_llmb
from parts.pages import Session, blocks
from parts.recorded_runs import PUBLISHED_S, record_runs
from parts.repository import ROOT

LAUNCHER_EXIT = "srun: error: {host}: task {task}: Exited with exit code {code}\n"


def own_script(session: Session) -> None:
    """Write the last version of each file of the tutorial on a training script, except its spec."""
    for block in blocks("docs/tutorials/training-script.md"):
        if block.title in ("train.py", "mylm.toml"):
            session.perform(block)


STEADY_CLOCK = """\
class time:
    now = 0.0

    def perf_counter():
        return time.now

    def sleep(seconds):
        time.now += seconds * random.gauss(1.03, 0.004)


random.seed(1)
"""


def steady_clock(session: Session) -> None:
    """Give the training script a clock that other work on this machine cannot slow, so that its verdict is certain."""
    script = session.folder / "train.py"
    script.write_text(script.read_text().replace("import time\n", STEADY_CLOCK))


def example_plugins(session: Session) -> None:
    """Install the example plugins for the commands of the page."""
    site = write_metadata(session.folder / ".site")
    session.env = {**session.env, "PYTHONPATH": os.pathsep.join(map(str, [site, *SOURCES]))}


TORCH = {
    "torch/__init__.py": "def histc(values, *args, **kwargs): ...\n",
    "torch/_utils.py": "",
    "torch/distributed/__init__.py": "",
    "torch/distributed/fsdp.py": "class FSDPModule:\n    def set_gradient_divide_factor(self, factor): ...\n",
}
"""Modules with the names of PyTorch that the tiny recipe of torchtitan replaces."""


def titan_python(session: Session) -> None:
    """Create a Python with stand-ins for PyTorch and torchtitan, which print the lines of a training."""
    standin, folder = ROOT / "tests/torchtitan_standin", session.folder / "venv"
    for name, text in TORCH.items():
        file = folder / "lib" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    python = folder / "bin/python"
    python.parent.mkdir()
    python.write_text(f'#!/bin/bash\nPYTHONPATH=$PYTHONPATH:{folder}/lib exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    key = 'python = "{}"'.format
    session.replaced = {key("/path/to/venv/bin/python"): f'{key(python)}\ncheckout = "{standin}"'}


def titan_log(session: Session) -> None:
    """Write the log of a complete run with torchtitan on 256 GPUs, in the format of NVIDIA's fork."""
    [source] = ROOT.glob("examples/plugins/llmb-torchtitan/tests/logs/dgx-cloud-26.06-format.log")
    (session.folder / "log-torchtitan_256gpus_1_0.out").write_bytes(source.read_bytes())


def nemo_log(session: Session) -> None:
    """Write the log of a run with NeMo, of which the last progress line remains."""
    _write_log(
        session,
        "Epoch 0: : 100%|##########| 100/100 [19:31<00:00, reduced_train_loss=6.130, global_step=99.00, "
        "consumed_samples=12800.0, train_step_timing in s=11.20]\n",
    )


def memory_error(session: Session) -> None:
    """Write a log in which rank 7 was out of memory, and the watchdogs of the others report that."""
    error = (
        "7: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.16 GiB. GPU 7 has a total capacity of "
        "139.80 GiB of which 1.28 GiB is free.\n"
    )
    watchdog = "{0}: [rank{0}]:[E ProcessGroupNCCL.cpp:632] [Rank {0}] Watchdog caught collective operation timeout\n"
    others = "".join(watchdog.format(rank) for rank in range(7))
    _write_log(session, "0: starting\n" * 6 + error + others + LAUNCHER_EXIT.format(host="tnasnt5", task=7, code=1))


def unknown_error(session: Session) -> None:
    """Write a log in which rank 3 ended with messages that no signature knows."""
    first = LAUNCHER_EXIT.format(host="node07", task=3, code=2)
    _write_log(session, "0: rank 0 waits\n3: no data\n3: giving up\n" + first + first.replace("task 3", "task 0"))


def slightly_slow(session: Session) -> None:
    """Write a log whose step time is close to the limit of the verdict."""
    draw = random.Random(3)
    _write_log(session, _maxtext([40.0, *(draw.gauss(7.27, 0.007) for _ in range(48)), 7.27]))


def checkpoints(session: Session) -> None:
    """Write a log whose last step wrote a checkpoint, as did each hundredth step before it."""
    draw = random.Random(5)
    times_s = [40.0, 9.0, *(draw.gauss(7.03, 0.02) for _ in range(499))]
    times_s[100::100] = [15.1, 15.3, 14.9, 15.2, 15.69]
    _write_log(session, _maxtext(times_s))


def slow_node(session: Session) -> None:
    """Write the log of one rank of each of eight nodes, of which one is slow."""
    draw = random.Random(7)
    folder = session.folder / "logs"
    folder.mkdir()
    for node in range(8):
        factor = 1.062 if node == 5 else 1.0
        (folder / f"gpu{node:02}.out").write_text(_maxtext([7.0 * factor * draw.gauss(1, 0.003) for _ in range(50)]))


def two_images(session: Session) -> None:
    """Record six runs with each of two images, on 64 and 128 GPUs. The second one is slower on 64."""
    with _environment_of(session):
        for gpus, image, step_s, nodes in (
            (64, "24.09", 14.78, "n[001-008]"),
            (128, "24.09", 14.81, "n[001-008]"),
            (64, "24.12", 15.90, "n[101-108]"),
            (128, "24.12", 14.84, "n[101-108]"),
        ):
            draw = random.Random(f"{gpus} {image}")
            times_s = [[step_s * draw.gauss(1, 0.002) for _ in range(50)] for _ in range(3)]
            env = {"env": {"NCCL_IB_SL": "1"}} if (gpus, image) == (64, "24.09") else {}
            workload = {"recipe": "nemo_launcher/llama3.1-70b", "gpus": gpus, "image": f"nemo:{image}"}
            record_runs(times_s, workload=workload, provenance={"host": [nodes], **_created_now()}, **env)


def judged_runs(session: Session) -> None:
    """Record the logs of two repeats of a published configuration."""
    draw = random.Random(1)
    for name in ("run1.out", "run2.out"):
        times_s = [40.0, *(PUBLISHED_S * draw.gauss(1.003, 0.002) for _ in range(49))]
        (session.folder / name).write_text(_maxtext(times_s))
    point = ["--recipe", "maxtext/llama2-70b", "--gpu-type", "h100", "--dtype", "bf16", "--gpus", "64"]
    done = run_llmb(
        ["grade", "run1.out", "run2.out", "--repeats", "--save", *point], env=session.env, cwd=session.folder
    )
    assert done.returncode == 0, done.stderr


def signing_key(session: Session) -> None:
    """Create an SSH key and the file that lists its signer."""
    folder = session.folder / ".ssh"
    folder.mkdir(mode=0o700)
    key = folder / "id_ed25519"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "me", "-f", key], check=True)
    public = " ".join(key.with_suffix(".pub").read_text().split()[:2])
    (session.folder / "signers").write_text(f"me@example.com {public}\n")


def _created_now() -> dict[str, str]:
    return {"created": datetime.now(UTC).isoformat()}


def _write_log(session: Session, text: str) -> None:
    (session.folder / "log.out").write_text(text)


def _maxtext(times_s: list[float]) -> str:
    line = "completed step: {}, seconds: {:.4f}, TFLOP/s/device: {:.3f}, loss: 8.0\n"
    return "".join(line.format(step, time_s, 3641.5 / time_s) for step, time_s in enumerate(times_s))


@contextmanager
def _environment_of(session: Session) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update({name: session.env[name] for name in ("LLMB_HOME", "XDG_CONFIG_HOME", "HOME")})
    Path(session.env["LLMB_HOME"]).mkdir(parents=True, exist_ok=True)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def installed_plugin(session: Session) -> None:
    """Install the project in the session's folder, as ``uv pip install -e`` does, but without an index."""
    [file] = session.folder.glob("*/pyproject.toml")
    write_project_metadata(file.parent, file.parent / "src")
    session.env = {**session.env, "PYTHONPATH": str(file.parent / "src")}
