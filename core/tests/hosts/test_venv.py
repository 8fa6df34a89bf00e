"""Virtual environments: created once, with a suitable interpreter, and again if incomplete."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import uv
from parts.deadline import wait_until

from llmb import JobHandle, Script, Task, Venv, poll_detached, submit_detached, venv_task
from llmb.hosts import venv as venvs
from llmb.hosts.local_host import LocalHost

HOST = LocalHost()
TINY = Venv(
    lock="""iniconfig==2.1.0 \\
    --hash=sha256:3abbd2e30b36733fee78f9c7f7308f2d0050e88f0087fd25c2645f63c773e1c7 \\
    --hash=sha256:9deba5723312380e77435581c6bf4935c94cbfab9b1ed33ef8d238ea168eb760
""",
    python=">=3.11",
)


class Creation:
    """The task that creates an environment, run as a detached job as core runs it."""

    def __init__(self, workdir: Path, venv: Venv) -> None:
        self.task = venv_task(venv, f"{workdir}/cache", uv=uv.find_uv_bin(), python=sys.executable)
        self.folder = workdir / "tasks" / self.task.key
        self.venv = workdir / "cache/venv" / self.task.key

    @property
    def complete(self) -> bool:
        return HOST.run(self.task.check).exit_code == 0

    def start(self) -> None:
        assert isinstance(self.task.work, str)
        text = f"if ({self.task.check}) >/dev/null 2>&1; then exit 0; fi\n{self.task.work}"
        script = Script(id="venv", directory=str(self.folder), text=text, check=self.task.check)
        submit_detached([script], HOST)

    def end(self) -> str:
        handle = JobHandle(id="venv", directory=str(self.folder))
        wait_until(lambda: poll_detached([handle], HOST)["venv"].state == "ended")
        return (self.folder / "out.log").read_text()


@pytest.fixture
def index() -> None:
    lock = "iniconfig==2.1.0"
    command = [uv.find_uv_bin(), "pip", "compile", "--quiet", "--no-config", "-"]
    if subprocess.run(command, input=lock, text=True, capture_output=True).returncode:
        pytest.skip("no package index can be reached")


@pytest.mark.real
@pytest.mark.usefixtures("index")
def test_an_environment_is_created_once_and_again_if_incomplete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    patient, gate = tmp_path / "uv", tmp_path / "gate"
    patient.write_text(f'#!/bin/bash\nuntil [ -e {gate} ]; do sleep 0.01; done\nexec {uv.find_uv_bin()} "$@"\n')
    patient.chmod(0o755)
    monkeypatch.setattr(uv, "find_uv_bin", lambda: str(patient))
    one, two = Creation(tmp_path, TINY), Creation(tmp_path, TINY)
    assert not one.complete
    one.start()
    two.start()  # another llmb at the same time
    gate.touch()
    assert one.end() == two.end()
    assert one.complete
    assert one.end().count("creating") == 1
    result = HOST.run(f"{one.venv}/bin/python -c 'import iniconfig; print(iniconfig.__file__)'")
    assert result.stdout.startswith(str(one.venv))
    one.start()
    assert one.end() == ""  # nothing to do
    (one.venv / "complete").unlink()
    assert not one.complete
    one.start()
    assert one.end().count("creating") == 1
    assert one.complete
    (one.venv / "bin/python").unlink()
    assert not one.complete


@pytest.mark.real
@pytest.mark.usefixtures("index")
def test_a_wrong_hash_is_rejected(tmp_path: Path) -> None:
    wrong = Creation(tmp_path, Venv(lock=f"iniconfig==2.1.0 --hash=sha256:{'0' * 64}\n", python=">=3.11"))
    wrong.start()
    assert "hash" in wrong.end().lower()
    assert not wrong.complete


FAKE_UV = """#!/bin/bash
echo "$@" >>{folder}/calls
case $1 in
  venv) mkdir -p "${{!#}}/bin" && ln -s {python} "${{!#}}/bin/python" ;;
  pip) until [ -e {folder}/gate ]; do sleep 0.01; done ;;
  python) exit 1 ;;
esac
"""


FAKE_PYTHON = """#!/bin/bash
[ "$1 $2" = "-m venv" ] || exit 1
mkdir -p "$3/bin"
cat >"$3/bin/uv" <<'END'
{uv}END
cat >"$3/bin/pip" <<'END'
#!/bin/bash
echo "$@" >>{folder}/pip-calls
END
chmod +x "$3/bin/uv" "$3/bin/pip"
"""


@pytest.fixture
def fake_uv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a uv that records its calls, and waits for a file ``gate`` before it installs."""
    folder = tmp_path / "uv"
    folder.mkdir()
    program = folder / "uv"
    program.write_text(FAKE_UV.format(folder=folder, python=sys.executable))
    program.chmod(0o755)
    monkeypatch.setattr(uv, "find_uv_bin", lambda: str(program))
    return folder


def test_a_killed_creation_is_detected_and_repeated(tmp_path: Path, fake_uv: Path) -> None:
    creation = Creation(tmp_path, TINY)
    creation.start()
    wait_until(lambda: (fake_uv / "calls").exists() and "pip" in (fake_uv / "calls").read_text())
    os.kill(int((creation.folder / "started").read_text().split()[0]), signal.SIGKILL)
    creation.end()
    assert (creation.venv / "bin/python").exists()  # it looks complete
    assert not creation.complete
    (fake_uv / "gate").touch()
    creation.start()
    creation.end()
    assert creation.complete
    assert (fake_uv / "calls").read_text().count("venv --quiet") == 2


def pythons(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, running: str, **installed: str) -> None:
    """Install fake interpreters: the one that runs llmb, those on PATH (path_*), and those of pyenv (pyenv_*)."""

    def fake(file: Path, version: str) -> str:
        file.parent.mkdir(parents=True, exist_ok=True)
        # -c CODE VERSION...: exits with 0 if its own version is among them
        file.write_text(f'#!/bin/bash\nshift 2\nfor each; do [ "$each" = {version} ] && exit 0; done\nexit 1\n')
        file.chmod(0o755)
        return str(file)

    monkeypatch.setattr(sys, "executable", fake(tmp_path / "running/python", running))
    for name, version in installed.items():
        where = "bin" if name.startswith("path") else f"pyenv/versions/{version}.7/bin"
        fake(tmp_path / where / (f"python{version}" if where == "bin" else "python"), version)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))


@pytest.mark.parametrize(
    ("running", "installed", "chosen"),
    [
        ("3.98", {}, "running/python"),
        ("3.98", {"path_a": "3.97"}, "running/python"),
        ("3.11", {"path_a": "3.97"}, "bin/python3.97"),
        ("3.11", {"pyenv_a": "3.97"}, "pyenv/versions/3.97.7/bin/python"),
        (
            "3.11",
            {"path_a": "3.98", "pyenv_a": "3.97"},
            "pyenv/versions/3.97.7/bin/python",
        ),  # the lowest suitable version
        ("3.11", {"path_a": "3.11"}, None),  # uv downloads one
    ],
)
def test_the_interpreter_is_a_suitable_one(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fake_uv: Path,
    running: str,
    installed: dict[str, str],
    chosen: str | None,
) -> None:
    monkeypatch.setattr(venvs, "MINOR_VERSIONS", range(8, 100))
    pythons(tmp_path, monkeypatch, running, **installed)
    (fake_uv / "gate").touch()
    creation = Creation(tmp_path, Venv(lock=TINY.lock, python=">=3.97"))
    creation.start()
    output = creation.end()
    assert output.strip().endswith(f"with {tmp_path / chosen}" if chosen else "with >=3.97")


def test_a_python_that_uv_cannot_download_is_the_last_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failing = tmp_path / "uv"
    failing.write_text("#!/bin/bash\necho 'error: HTTP status client error (404 Not Found)' >&2\nexit 2\n")
    failing.chmod(0o755)
    monkeypatch.setattr(uv, "find_uv_bin", lambda: str(failing))
    pythons(tmp_path, monkeypatch, "3.11")
    creation = Creation(tmp_path, Venv(lock=TINY.lock, python=">=3.97"))
    creation.start()
    *_, error, last = creation.end().splitlines()
    assert error == "error: HTTP status client error (404 Not Found)"
    assert re.fullmatch(r"no Python >=3\.97 on \S+, and uv cannot download one", last)


def test_a_missing_uv_is_installed_into_the_cache_once(tmp_path: Path) -> None:
    """A fake Python installs a uv, and the second environment finds it."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("bash", "mkdir", "rm", "mv", "dirname", "cat", "ln", "chmod"):
        (tools / name).symlink_to(f"/usr/bin/{name}")
    fake = tools / "python3"
    fake.write_text(FAKE_PYTHON.format(folder=tmp_path, uv=FAKE_UV.format(folder=tmp_path, python=sys.executable)))
    fake.chmod(0o755)
    (tmp_path / "gate").touch()
    env = {"PATH": str(tools), "HOME": str(tmp_path), "PYENV_ROOT": str(tmp_path)}
    for venv in (TINY, Venv(lock=TINY.lock, python=">=3.12")):
        task = venv_task(venv, f"{tmp_path}/cache")
        assert isinstance(task.work, str)
        subprocess.run(["/bin/bash", "-c", task.work], env=env, check=True)
        assert HOST.run(task.check).exit_code == 0
    assert (tmp_path / "pip-calls").read_text().splitlines() == ["install --quiet uv"]


def test_lock_file_and_python_identify_an_environment(tmp_path: Path) -> None:
    def key(venv: Venv) -> str:
        return Creation(tmp_path, venv).task.key

    assert key(TINY) == key(Venv(lock=TINY.lock, python=TINY.python))
    assert len({key(TINY), key(Venv(lock="", python=">=3.11")), key(Venv(lock=TINY.lock, python=">=3.12"))}) == 3


def test_a_path_with_odd_characters_is_quoted(tmp_path: Path, fake_uv: Path) -> None:
    (fake_uv / "gate").touch()
    creation = Creation(tmp_path / "it's $(touch x)", TINY)
    creation.start()
    creation.end()
    assert creation.complete


def test_the_task_has_a_kind_and_a_key(tmp_path: Path) -> None:
    task: Task = Creation(tmp_path, TINY).task
    assert task.kind == "virtual environment"
    assert task.key.startswith("venv-")
