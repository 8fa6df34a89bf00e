"""Named targets: ``targets.toml`` in the user's configuration directory."""

from __future__ import annotations

from typing import Any

import pytest

WORKLOAD = '[workload]\nrecipe = "maxtext/llama2-tiny"\ngpu_type = "cpu"\ndtype = "fp32"\ngpus = 1\n'
TARGETS = """
[box]
scheduler = "local"
workdir = "/box"
lock = "/box.lock"
[other]
scheduler = "local"
workdir = "/other"
[wrong]
scheduler = "local"
lok = "x"
workdir = "relative"
[incomplete]
workdir = "/x"
"""


def test_a_name_takes_the_target_from_the_file(spec: Any, write_targets: Any) -> None:
    write_targets(TARGETS)
    [placed] = spec.write(WORKLOAD + '[target]\nname = "box"').load().runs
    target = placed.target
    assert (target.name, target.scheduler, target.workdir, target.options.lock) == (
        "box",
        "local",
        "/box",
        "/box.lock",
    )


def test_keys_of_the_spec_override_those_of_the_file(spec: Any, write_targets: Any) -> None:
    write_targets(TARGETS)
    spec.write(WORKLOAD + '[target]\nname = "box"\nworkdir = "/mine"\nlock = "/mine.lock"')
    [placed] = spec.load().runs
    assert (placed.target.workdir, placed.target.options.lock) == ("/mine", "/mine.lock")
    [placed] = spec.load("target.workdir=/set").runs
    assert placed.target.workdir == "/set"


def test_a_table_of_the_spec_and_of_the_file_are_merged_by_key(spec: Any, write_targets: Any) -> None:
    write_targets('[eos]\nscheduler = "slurm"\nworkdir = "/w"\nsbatch = { licenses = "a", switches = 1 }')
    tables = '[target]\nname = "eos"\n[target.sbatch]\ncontiguous = true\nswitches = 2'
    [placed] = spec.write(WORKLOAD + tables).load().runs
    assert dict(placed.target.options.sbatch) == {"licenses": "a", "switches": 2, "contiguous": True}


@pytest.mark.parametrize(
    ("stated", "gpus", "known"), [({"gpus_per_node": 4}, 16, 4), ({"gpus_per_node": 4}, 2, 2), ({}, 16, 8)]
)
def test_a_scheduler_gets_the_gpus_per_node_of_its_run(
    spec: Any, stated: dict[str, int], gpus: int, known: int
) -> None:
    target = {"scheduler": "slurm", "host": "login", "workdir": "/work", **stated}
    spec.big(workload={"gpus": gpus}, parallelism={"fsdp": gpus, "global_batch_size": 4 * gpus}, target=target)
    [placed] = spec.load().runs
    assert placed.target.gpus_per_node == placed.run.gpus_per_node == known


def test_the_option_names_the_target_of_a_spec_that_names_none(spec: Any, write_targets: Any) -> None:
    write_targets(TARGETS)
    [placed] = spec.write(WORKLOAD).load(target="box").runs
    assert (placed.target.name, placed.target.workdir) == ("box", "/box")


def test_the_option_wins_over_the_name_and_the_specs_own_keys_stay(spec: Any, write_targets: Any) -> None:
    write_targets(TARGETS)
    spec.write(WORKLOAD + '[target]\nname = "box"\nlock = "/mine.lock"')
    [placed] = spec.load(target="other").runs
    assert (placed.target.workdir, placed.target.options.lock) == ("/other", "/mine.lock")


def test_the_option_replaces_a_target_that_the_spec_describes_whole(spec: Any, write_targets: Any) -> None:
    write_targets(TARGETS)
    spec.write(WORKLOAD + '[target]\nscheduler = "elsewhere"\naccount = "me"\nworkdir = "/elsewhere"')
    [placed] = spec.load("target.lock=/set.lock", target="box").runs
    assert (placed.target.scheduler, placed.target.workdir, placed.target.options.lock) == (
        "local",
        "/box",
        "/set.lock",
    )


def test_an_unknown_target_is_reported_with_the_nearest_one(spec: Any, write_targets: Any) -> None:
    file = write_targets(TARGETS)
    found = spec.write(WORKLOAD + '[target]\nname = "bix"\nlock = "/x"').errors()
    assert set(found) == {"target.name"}
    error = found["target.name"]
    assert (error.file, error.nearest) == (str(spec.file), "box")
    assert error.message == "unknown target 'bix'"
    assert error.expected == f"one of box, incomplete, other, wrong in {file}"
    assert spec.errors(target="bux")["target.name"].file == "target"


@pytest.mark.parametrize("text", ["", TARGETS])
def test_the_name_of_a_scheduler_is_no_target_unless_the_file_has_one(spec: Any, write_targets: Any, text: str) -> None:
    file = write_targets(text)
    error = spec.write(WORKLOAD).errors(target="local")["target.name"]
    assert error.message == "'local' is a scheduler, not a target"
    assert error.expected == f'scheduler = "local" in [target] of a spec, or a table [local] in {file}'
    write_targets('[local]\nscheduler = "local"\n')
    [found] = spec.load(target="local").runs
    assert found.target.name == "local"


@pytest.mark.parametrize("text", ["", None])
def test_without_targets_the_error_of_a_name_has_the_table_to_add(
    spec: Any, write_targets: Any, text: str | None
) -> None:
    if text is not None:
        write_targets(text)
    error = spec.write(WORKLOAD).errors(target="box")["target.name"]
    assert error.message.startswith("unknown target 'box'; add a table [box] with a scheduler to /")
    assert error.message.endswith("targets.toml")


def test_a_name_is_not_ignored_where_the_spec_states_all_keys(spec: Any, write_targets: Any) -> None:
    write_targets(TARGETS)
    assert "target.name" in spec.usual(target={"name": "bix"}).errors()


def test_errors_in_the_targets_file_name_the_file_and_their_key(spec: Any, write_targets: Any) -> None:
    file = write_targets(TARGETS)
    found = spec.write(WORKLOAD).errors(target="wrong")
    assert {key: error.file for key, error in found.items()} == {"wrong.lok": str(file), "wrong.workdir": str(file)}
    assert found["wrong.lok"].nearest == "lock"
    error = spec.errors(target="incomplete")["incomplete"]
    assert (error.file, error.message) == (str(file), "no scheduler")


def test_a_misspelt_scheduler_of_a_named_target_is_named(spec: Any, write_targets: Any) -> None:
    write_targets('[eos]\nschedular = "slurm"\nhost = "eos"')
    assert spec.write(WORKLOAD).errors(target="eos")["eos"].message == "no scheduler, but a key 'schedular'"


def test_a_key_that_a_named_target_lacks_is_missing_in_its_table(spec: Any, write_targets: Any) -> None:
    file = write_targets('[eos]\nscheduler = "slurm"\nhost = "eos"')
    error = spec.write(WORKLOAD).errors(target="eos")["eos.workdir"]
    assert (error.file, error.message) == (str(file), "required key is missing")


def test_an_invalid_targets_file_is_an_error_only_of_specs_that_name_a_target(spec: Any, write_targets: Any) -> None:
    file = write_targets("[box")
    [error] = spec.write(WORKLOAD).errors(target="box").values()
    assert error.file == str(file)
    assert error.message.startswith("invalid TOML")
    assert len(spec.usual().runs()) == 1


@pytest.mark.parametrize(
    "host", ["eos", "eos-login.example", "me@eos", "me@eos:2222", "10.0.0.1:22", "me@fe80::1%eth0", "a:65535", "::1"]
)
def test_a_host_is_what_ssh_takes(spec: Any, host: str) -> None:
    [placed] = spec.usual(target={"scheduler": "slurm", "host": host, "workdir": "/work"}).load().runs
    assert placed.target.host == host


@pytest.mark.parametrize(
    "host",
    [
        "",
        "eos login",
        "$(touch x)",
        "-oProxyCommand=x",
        "eos:port",
        "me@",
        "a;b",
        "`x`@eos",
        "a:65536",
        "a:99999999",
        "a:0",
        "-oProxyCommand=x@eos",
        "eos\n",
        "me\x1b[2J@eos",
    ],
)
def test_an_invalid_host_is_an_error(spec: Any, host: str) -> None:
    error = spec.usual(target={"scheduler": "slurm", "host": host, "workdir": "/work"}).errors()["target.host"]
    assert error.expected == '"host", "user@host" or "user@host:port" (a port from 1 to 65535), as ssh takes it'


@pytest.mark.parametrize("workdir", ["~/llmb", "llmb", "$HOME/llmb"])
def test_a_work_directory_on_another_host_is_absolute(spec: Any, workdir: str) -> None:
    error = spec.usual(target={"scheduler": "slurm", "host": "eos", "workdir": workdir}).errors()["target.workdir"]
    assert error.expected == "an absolute path on eos (`ssh eos pwd` prints the home directory)"


def test_a_scheduler_of_this_machine_takes_no_host(spec: Any) -> None:
    [error] = spec.usual(target={"host": "eos"}).errors().values()
    assert str(error).endswith(
        'target.host: the local scheduler runs jobs on this machine only, not on "eos"; '
        "expected no such key, or another scheduler"
    )


def test_a_work_directory_on_another_host_has_no_default(spec: Any) -> None:
    error = spec.usual(target={"scheduler": "slurm", "host": "eos"}).errors()["target.workdir"]
    assert (error.message, error.expected) == ("required key is missing", "a directory on eos that all nodes share")
