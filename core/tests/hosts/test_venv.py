"""Virtual environments: made once, by whoever comes first, with an interpreter that fits, and redone when cut off."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import uv

from llmb import JobHandle, Script, Task, Venv, poll_detached, submit_detached, venv_task
from llmb.hosts import venv as venvs
from llmb.hosts.local import LocalHost

HOST = LocalHost()
TINY = Venv(
    lock="""iniconfig==2.1.0 \\
    --hash=sha256:3abbd2e30b36733fee78f9c7f7308f2d0050e88f0087fd25c2645f63c773e1c7 \\
    --hash=sha256:9deba5723312380e77435581c6bf4935c94cbfab9b1ed33ef8d238ea168eb760
""",
    python=">=3.11",
)


def wait_for(condition: Callable[[], Any]) -> Any:
    end = time.monotonic() + 60
    while not (found := condition()):
        assert time.monotonic() < end
        time.sleep(0.02)
    return found


class Making:
    """The task of an environment, as the engine runs it."""

    def __init__(self, workdir: Path, venv: Venv) -> None:
        self.task = venv_task(venv, f"{workdir}/cache", uv=uv.find_uv_bin(), python=sys.executable)
        self.folder = workdir / "tasks" / self.task.key
        self.venv = workdir / "cache/venv" / self.task.key

    @property
    def whole(self) -> bool:
        return HOST.run(self.task.check).exit_code == 0

    def start(self) -> None:
        assert isinstance(self.task.work, str)
        text = f"if ({self.task.check}) >/dev/null 2>&1; then exit 0; fi\n{self.task.work}"
        script = Script(id="venv", directory=str(self.folder), text=text, check=self.task.check)
        submit_detached([script], HOST)

    def end(self) -> str:
        ticket = JobHandle(id="venv", directory=str(self.folder))
        wait_for(lambda: poll_detached([ticket], HOST)["venv"].state == "ended")
        return (self.folder / "out.log").read_text()


@pytest.fixture
def index() -> None:
    lock = "iniconfig==2.1.0"
    command = [uv.find_uv_bin(), "pip", "compile", "--quiet", "--no-config", "-"]
    if subprocess.run(command, input=lock, text=True, capture_output=True).returncode:
        pytest.skip("no package index can be reached")


@pytest.mark.real
@pytest.mark.usefixtures("index")
def test_an_environment_is_made_once_kept_and_made_again_when_it_is_not_whole(tmp_path: Path) -> None:
    one, two = Making(tmp_path, TINY), Making(tmp_path, TINY)
    assert not one.whole
    one.start()
    two.start()  # another llmb, at once
    assert one.end() == two.end()
    assert one.whole
    assert one.end().count("making") == 1
    answer = HOST.run(f"{one.venv}/bin/python -c 'import iniconfig; print(iniconfig.__file__)'")
    assert answer.stdout.startswith(str(one.venv))
    one.start()
    assert one.end() == ""  # nothing to do
    (one.venv / "complete").unlink()
    assert not one.whole
    one.start()
    assert one.end().count("making") == 1
    assert one.whole
    (one.venv / "bin/python").unlink()
    assert not one.whole


@pytest.mark.real
@pytest.mark.usefixtures("index")
def test_a_wrong_hash_is_refused(tmp_path: Path) -> None:
    wrong = Making(tmp_path, Venv(lock=f"iniconfig==2.1.0 --hash=sha256:{'0' * 64}\n", python=">=3.11"))
    wrong.start()
    assert "hash" in wrong.end().lower()
    assert not wrong.whole


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
    """A uv that notes how it is called, and waits for a gate before it installs."""
    folder = tmp_path / "uv"
    folder.mkdir()
    program = folder / "uv"
    program.write_text(FAKE_UV.format(folder=folder, python=sys.executable))
    program.chmod(0o755)
    monkeypatch.setattr(uv, "find_uv_bin", lambda: str(program))
    return folder


def test_a_killed_creation_is_noticed_and_redone(tmp_path: Path, fake_uv: Path) -> None:
    making = Making(tmp_path, TINY)
    making.start()
    wait_for(lambda: (fake_uv / "calls").exists() and "pip" in (fake_uv / "calls").read_text())
    os.kill(int((making.folder / "started").read_text().split()[0]), signal.SIGKILL)
    making.end()
    assert (making.venv / "bin/python").exists()  # it looks whole
    assert not making.whole
    (fake_uv / "gate").touch()
    making.start()
    making.end()
    assert making.whole
    assert (fake_uv / "calls").read_text().count("venv --quiet") == 2


def pythons(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, running: str, **installed: str) -> None:
    """Fake interpreters: the one that runs llmb, those on PATH (path_3_12), and those of pyenv (pyenv_3_12)."""

    def fake(file: Path, version: str) -> str:
        file.parent.mkdir(parents=True, exist_ok=True)
        # -c CODE VERSION...: fits where its own version is among them
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
        ("3.11", {"path_a": "3.98", "pyenv_a": "3.97"}, "pyenv/versions/3.97.7/bin/python"),  # the lowest that fits
        ("3.11", {"path_a": "3.11"}, None),  # uv brings one
    ],
)
def test_the_interpreter_is_one_that_fits(
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
    making = Making(tmp_path, Venv(lock=TINY.lock, python=">=3.97"))
    making.start()
    said = making.end()
    assert said.strip().endswith(f"with {tmp_path / chosen}" if chosen else "with >=3.97")


def test_without_a_uv_one_is_installed_into_the_cache_once(tmp_path: Path) -> None:
    """A fake Python brings a uv; a second environment finds it."""
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


def test_two_locks_are_two_environments_and_one_lock_is_one(tmp_path: Path) -> None:
    def key(venv: Venv) -> str:
        return Making(tmp_path, venv).task.key

    assert key(TINY) == key(Venv(lock=TINY.lock, python=TINY.python))
    assert len({key(TINY), key(Venv(lock="", python=">=3.11")), key(Venv(lock=TINY.lock, python=">=3.12"))}) == 3


def test_a_path_with_odd_characters_is_quoted(tmp_path: Path, fake_uv: Path) -> None:
    (fake_uv / "gate").touch()
    making = Making(tmp_path / "it's $(touch x)", TINY)
    making.start()
    making.end()
    assert making.whole


def test_the_task_is_named_by_what_it_makes(tmp_path: Path) -> None:
    task: Task = Making(tmp_path, TINY).task
    assert task.kind == "virtual environment"
    assert task.key.startswith("venv-")
