"""The check of a work directory before anything is recorded."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from parts import disks

from llmb.drive.shared_tasks.runs_waiting_for_task import add_references
from llmb.hosts.local_host import LocalHost
from llmb.hosts.work_directory import check_work_directory
from llmb.values.errors import BusyError, TargetError
from llmb.values.host import CommandResult
from llmb.values.job import Script


def test_a_missing_directory_is_created_and_left_empty(tmp_path: Path) -> None:
    check_work_directory(f"{tmp_path}/it's new", LocalHost(), "this machine")
    assert sorted(path.name for path in (tmp_path / "it's new").rglob("*")) == ["cache", "runs", "tasks"]


@pytest.mark.real
@pytest.mark.parametrize("reason", disks.LIMITS)
def test_a_full_disk_is_an_error_that_names_the_directory(reason: str, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    with disks.LIMITS[reason](work):
        disks.fill(work)
        with pytest.raises(TargetError, match=f"work directory {work} on eos: .*{reason}; fix this"):
            check_work_directory(str(work), LocalHost(), "eos")
        assert not list(work.rglob("*.check*"))


def test_a_link_to_a_directory_that_does_not_exist_is_named(tmp_path: Path) -> None:
    (tmp_path / "work").symlink_to(tmp_path / "scratch")
    reason = f"it is a symbolic link to {tmp_path}/scratch, which does not exist; fix this"
    with pytest.raises(TargetError, match=f"cannot write in the work directory {tmp_path}/work on eos: {reason}"):
        check_work_directory(f"{tmp_path}/work", LocalHost(), "eos")


# Directories that other users can change. The checks run as a user without rights, who is also in the group TEAM.

NOBODY, OTHER, TEAM = 65534, 4321, 4242
OWNER = (NOBODY, NOBODY)
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can create files of other users")


class NobodyHost(LocalHost):
    """The local host as another user sees it."""

    def run(self, script: str, *, timeout_s: float = 60.0) -> CommandResult:
        user = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", f"--groups={TEAM}"]
        done = subprocess.run([*user, "bash", "-c", script], capture_output=True, text=True, timeout=timeout_s)
        return CommandResult(exit_code=done.returncode, stdout=done.stdout, stderr=done.stderr)


@pytest.fixture
def workdir() -> Iterator[Path]:
    """Return a directory that every user can reach."""
    folder = Path(tempfile.mkdtemp(prefix="llmb-workdir-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def check(workdir: Path, *, shared: bool) -> str:
    """Return why the directory is rejected, or an empty string."""
    try:
        check_work_directory(str(workdir), NobodyHost(), "eos", shared=shared)
    except TargetError as error:
        return str(error)
    return ""


@as_root
@pytest.mark.parametrize(
    ("owner", "mode", "alone", "shared"),
    [
        (OWNER, 0o755, "", ""),
        (OWNER, 0o775, "", ""),  # the user's own group, to which the user may have given a umask of 002
        (OWNER, 0o777, "all users can write to {}; run `chmod o-w {}`", "all users can write to {}"),
        (
            OWNER,
            0o1777,
            'all users can write to {}; set `workdir = "{}/llmb-nobody"` in [target]',
            'all users can write to {}; set `workdir = "{}/llmb-nobody"` in [target]',
        ),
        (
            (NOBODY, TEAM),
            0o2775,
            "the group 4242 can write to {}; run `chmod g-w {}`, or set `shared = true` in [target]",
            "",
        ),
        (
            (NOBODY, OTHER),
            0o775,
            "can write to {}; run `chmod g-w {}`",
            "to which you do not belong, can write to {}",
        ),
        (
            (OTHER, TEAM),
            0o2775,
            '{} belongs to UNKNOWN; set `workdir = "/path/to/folder"` in [target] to a folder of your own',
            "",
        ),
        ((OTHER, TEAM), 0o2777, "{} belongs to UNKNOWN", "all users can write to {}; run `chmod o-w {}`"),
        ((0, 0), 0o755, "{} belongs to root", "Permission denied"),
    ],
)
def test_a_directory_that_others_can_change_is_rejected_with_a_remedy(
    owner: tuple[int, int], mode: int, alone: str, shared: str, workdir: Path
) -> None:
    os.chown(workdir, *owner)
    workdir.chmod(mode)
    for message, is_shared in ((alone, False), (shared, True)):
        reason = check(workdir, shared=is_shared)
        assert message.replace("{}", str(workdir)) in reason.replace("group UNKNOWN", "group 4242")
        assert bool(reason) == bool(message)


@as_root
@pytest.mark.parametrize(
    ("owner", "shared", "mode"),
    [
        (OWNER, False, 0o775),
        ((NOBODY, TEAM), False, 0o755),
        ((NOBODY, TEAM), True, 0o775),
        ((NOBODY, OTHER), False, 0o755),
        ((NOBODY, OTHER), True, 0o755),
    ],
)
def test_the_remedy_is_one_command_that_corrects_the_directory(
    owner: tuple[int, int], shared: bool, mode: int, workdir: Path
) -> None:
    folder = workdir / "it's $(touch x)"
    folder.mkdir()
    os.chown(folder, *owner)
    folder.chmod(0o777)
    reason = check(folder, shared=shared)
    subprocess.run(["bash", "-c", reason.split("`")[1]], check=True)
    assert check(folder, shared=shared) == ""
    assert folder.stat().st_mode & 0o777 == mode
    assert not Path("x").exists()


def test_no_command_changes_the_mode_of_a_device() -> None:
    with pytest.raises(TargetError) as caught:
        check_work_directory("/dev/null", LocalHost(), "eos")
    assert str(caught.value).startswith("cannot write in the work directory /dev/null on eos: mkdir: ")


@as_root
@pytest.mark.parametrize("name", ["runs", "tasks", "cache"])
def test_the_directories_within_are_checked_too(workdir: Path, name: str) -> None:
    os.chown(workdir, *OWNER)
    (workdir / name).mkdir()
    os.chown(workdir / name, OTHER, OTHER)
    assert f"{workdir}/{name} belongs to" in check(workdir, shared=False)


@as_root
@pytest.mark.parametrize("name", ["runs", "tasks", "cache"])
@pytest.mark.parametrize(("owner", "rejected"), [(1234, True), (OTHER, False), (NOBODY, False), (0, False)])
def test_a_link_of_a_member_of_the_group_is_rejected(name: str, owner: int, rejected: bool, workdir: Path) -> None:
    folder, victim = workdir / "shared", workdir / "victim"
    for each, user in ((folder, OTHER), (victim, NOBODY)):
        each.mkdir()
        os.chown(each, user, TEAM)
    folder.chmod(0o2775)
    (folder / name).symlink_to(victim)
    os.chown(folder / name, owner, TEAM, follow_symlinks=False)
    reason = check(folder, shared=True)
    assert bool(reason) == rejected
    if rejected:
        assert list(victim.iterdir()) == []
        subprocess.run(["bash", "-c", reason.split("`")[1]], check=True)
        assert check(folder, shared=True) == ""


@as_root
def test_a_directory_that_a_umask_closes_to_the_group_is_opened_by_the_command_in_the_message(workdir: Path) -> None:
    os.chown(workdir, OTHER, TEAM)
    workdir.chmod(0o2775)
    closed = [workdir / "runs", workdir / "tasks", workdir / "cache"]
    for each in closed:
        each.mkdir()
        os.chown(each, 0, TEAM)
        each.chmod(0o2755)
    reason = check(workdir, shared=True)
    names = " ".join(map(str, closed))
    assert f"only root can write to {names}, and has to run `chmod g+w {names}`" in reason
    subprocess.run(["bash", "-c", reason.split("`")[1]], check=True)
    assert check(workdir, shared=True) == ""
    assert [each.stat().st_mode & 0o7777 for each in closed] == [0o2775] * 3


@as_root
def test_a_run_waits_if_a_umask_closes_the_directory_of_tasks_to_the_group(workdir: Path) -> None:
    for name in ("tasks", "cache"):
        (workdir / name).mkdir()
        os.chown(workdir / name, 0, TEAM)
        (workdir / name).chmod(0o2755)
    task = Script(id="key", directory=f"{workdir}/tasks/key", text="")
    with pytest.raises(BusyError) as caught:
        add_references([(task, "run")], NobodyHost())
    names = f"{workdir}/tasks {workdir}/cache"
    assert f"only root can write to {names}, and has to run `chmod g+w {names}`" in str(caught.value)
    subprocess.run(["bash", "-c", str(caught.value).split("`")[1]], check=True)
    add_references([(task, "run")], NobodyHost())
    assert (workdir / "tasks/key/waiting/run").exists()


def test_nothing_is_created_in_a_directory_that_is_rejected(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    with pytest.raises(TargetError, match="not safe"):
        check_work_directory(str(tmp_path), LocalHost(), "this machine")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("shared", "mode"), [(False, 0o755), (True, 0o775)])
def test_a_directory_is_created_in_a_mode_that_is_accepted(tmp_path: Path, *, shared: bool, mode: int) -> None:
    """In a directory of a project, new directories belong to the group of the project."""
    if os.geteuid() == 0 and not shared:
        os.chown(tmp_path, 0, OTHER)
        tmp_path.chmod(0o2755)
    before = os.umask(0)
    try:
        check_work_directory(f"{tmp_path}/new", LocalHost(), "this machine", shared=shared)
    finally:
        os.umask(before)
    for name in (".", "runs", "tasks", "cache"):
        assert (tmp_path / "new" / name).stat().st_mode & 0o777 == mode
