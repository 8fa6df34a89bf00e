"""Validation in two stages: the errors of the spec together, then those of the plugins."""

from __future__ import annotations

import itertools
import tomllib
from typing import Any

import pytest

import llmb

HEAD = '[workload]\nrecipe = "maxtext/llama2-70b"\ngpu_type = "h100"\ndtype = "bf16"\ngpus = 64\n'
SLURM = '[target]\nscheduler = "slurm"\naccount = "me"\npartition = "batch"\n'


@pytest.mark.parametrize(
    ("tables", "keys"),
    [
        ("[measure]\nwindow = [0, 100]\ntolerance = 5\n", {"measure.window", "measure.tolerance"}),
        ('[measure]\nwindow = [9, 3]\n[profile]\ntool = "nsys"\nstart_step = 99\n', {"measure.window", "profile"}),
        ("[parallelism]\ntpp = 2\n[model]\nhidden = 8191\n", {"parallelism.tpp", "model.hidden"}),
        ("[model]\ntop_k = 2\nlayer = 1\n[measure]\nwindow = [9, 3]\n", {"model.layer", "measure.window"}),
        ("[parallelism]\nfsdp = 7\n[model]\nvocab = 0\n", {"parallelism.fsdp", "model.vocab"}),
        (
            '[sweep]\n"parallelism.tpp" = [1, 2]\n"measure.window" = ["last", [44, 35]]\n"workload.dtype" = ["fp8"]\n',
            {"sweep.parallelism.tpp", "sweep.measure.window[1]", "sweep.workload.dtype"},
        ),
    ],
)
def test_the_errors_of_the_spec_are_reported_together(spec: Any, tables: str, keys: set[str]) -> None:
    assert set(spec.write(HEAD + tables + SLURM).errors()) == keys


@pytest.mark.parametrize(
    ("tables", "keys"),
    [
        ("[framework.config]\nbad = [1]\nrun_name = 1\n", {"framework.config.bad"}),
        ("[framework.config]\nrun_name = 1\nsteps = 1\n", {"framework.config.run_name", "framework.config.steps"}),
        (
            '[framework.config]\nrun_name = "mine"\n[parallelism]\npp = 2\n',
            {"framework.config.run_name", "parallelism.pp"},
        ),
        ('[parallelism]\npp = 2\n[env]\nXLA_FLAGS = "x"\n', {"parallelism.pp", "env.XLA_FLAGS"}),
    ],
)
def test_the_errors_of_the_plugins_come_together_once_a_run_is_valid(spec: Any, tables: str, keys: set[str]) -> None:
    assert set(spec.write(HEAD + tables + SLURM).errors()) == keys


def test_each_hook_reports_its_errors_whatever_the_others_report(spec: Any) -> None:
    nsys = '[profile]\ntool = "nsys"\n[framework.config]\nrun_name = "mine"\n'
    found = spec.write(HEAD.replace("maxtext/llama2-70b", "nemo_launcher/llama3.1-70b") + nsys + SLURM)
    window = (
        '[measure]\nwindow = [41, 44]\n[framework.config]\n"trainer.log_every_n_steps" = 5\n"trainer.max_steps" = 3\n'
    )
    spec.write(HEAD.replace("maxtext/llama2-70b", "nemo_launcher/llama3.1-70b") + window + SLURM)
    assert set(found.errors()) == {"measure.window", "framework.config.trainer.max_steps"}


@pytest.fixture
def asked(spec: Any) -> list[int]:
    """Return a list that gets the pipeline stages of each run that a framework is called with."""
    seen: list[int] = []

    class Recording(llmb.PluginRegistry):
        def framework(self, name: str) -> Any:
            return Framework(super().framework(name))

    class Framework:
        def __init__(self, plugin: Any) -> None:
            self._plugin = plugin

        def __getattr__(self, name: str) -> Any:
            value = getattr(self._plugin, name)
            if not callable(value) or isinstance(value, type):
                return value

            def call(**arguments: Any) -> Any:
                seen.append(arguments["run"].parallelism.pp)
                return value(**arguments)

            return call

    spec.registry = Recording()
    return seen


def test_the_plugins_check_the_valid_runs_of_a_sweep_and_no_others(spec: Any, asked: list[int]) -> None:
    spec.write(HEAD + '[sweep]\n"parallelism.pp" = [1, 2, 32]\n' + SLURM)
    with pytest.raises(llmb.SpecError) as raised:
        spec.load()
    assert [error.key for error in raised.value.faults] == ["model.layers", "sweep.parallelism.pp[1]"]
    assert set(asked) == {1, 2}


@pytest.mark.parametrize(
    ("spec_text", "overrides"),
    [
        (HEAD + "[measure]\ntolerance = 5\n", []),
        (HEAD.replace("64", "[64, 64]"), []),
        (HEAD + '[sweep]\n"parallelism.micro_batch_size" = 3\n', []),
        (HEAD.replace("64", '"64"'), []),
        (HEAD, ["bogus"]),
    ],
)
def test_no_hook_of_a_framework_sees_a_run_with_an_error(
    spec: Any, asked: list[int], spec_text: str, overrides: list[str]
) -> None:
    with pytest.raises(llmb.SpecError):
        spec.write(spec_text + SLURM).load(*overrides)
    assert asked == []


@pytest.mark.parametrize(
    ("workload", "keys"),
    [
        ('dtype = "fp4"', {"workload.dtype"}),
        ('gpu_type = "h10"', {"workload.gpu_type"}),
        ('gpus = "64"', {"workload.gpus"}),
        ("gpus = 100", {"workload.gpus"}),
        ("steps = 0", {"workload.steps"}),
    ],
)
def test_a_wrong_value_hides_no_error_of_keys_that_do_not_depend_on_it(
    spec: Any, workload: str, keys: set[str]
) -> None:
    key = workload.partition(" ")[0]
    head = "".join(line for line in HEAD.splitlines(keepends=True) if not line.startswith(f"{key} "))
    rest = '[measure]\nwindow = [44, 35]\n[env]\n1A = "x"\n' + SLURM
    hidden = {"measure.window"} if keys == {"workload.steps"} else set()
    expected = keys | {"measure.window", "env.1A"} - hidden
    assert set(spec.write(f"{head}{workload}\n{rest}").errors()) == expected


@pytest.mark.parametrize(
    ("tables", "key"),
    [
        ('[parallelism]\ntp = "8"\nfsdp = 64\n', "parallelism.tp"),  # tp x fsdp would not divide the GPUs
        ("[parallelism]\ntpp = 8\nfsdp = 64\nmicro_batch_size = 16\n", "parallelism.tpp"),
        ("[paralelism]\nglobal_batch_size = 192\n", "paralelism"),
        ("[parallelism]\npp = 32\nvp = 3\n", "model.layers"),
        ('[parallelism]\ntp = 16\nfsdp = 4\n[target]\ngpus_per_node = "16"\n', "target.gpus_per_node"),
    ],
)
def test_one_typo_causes_no_second_error(spec: Any, tables: str, key: str) -> None:
    head = HEAD.replace("64", "96") if tables.startswith("[paralelism") else HEAD
    target = SLURM.removeprefix("[target]\n") if "[target]" in tables else SLURM
    assert set(spec.write(head + tables + target).errors()) == {key}


def test_a_key_of_another_program_causes_no_second_error(spec: Any) -> None:
    bridge = '[workload]\nrecipe = "megatron_bridge/deepseek-v3"\ngpu_type = "b200"\ndtype = "fp8"\ngpus = 256\n'
    tables = "[model]\nlayers = 64\n[parallelism]\npp = 16\nep_size = 8\n"  # the recipe's ep = 32 would not fit pp = 16
    assert set(spec.write(bridge + tables + SLURM).errors()) == {"parallelism.ep_size"}


def test_a_typo_in_a_variants_option_causes_no_second_error(spec: Any) -> None:
    bridge = '[workload]\nrecipe = "megatron_bridge/llama3.1-8b@25.12"\ngpu_type = "gb200"\ndtype = "fp8"\ngpus = 192\n'
    tables = '[framework]\nfp8_recip = "mx"\n[parallelism]\nvp = 8\n'
    assert "framework.fp8_recip" in spec.write(bridge + tables + SLURM).errors()


def test_a_key_that_is_set_and_swept_hides_no_other_error(spec: Any) -> None:
    sweep = '[parallelism]\nmicro_batch_size = 2\n[sweep]\n"parallelism.micro_batch_size" = [1, 2]\n'
    found = spec.write(HEAD + sweep + "[measure]\nwindow = [44, 35]\n" + SLURM).errors()
    assert set(found) == {"sweep.parallelism.micro_batch_size", "measure.window"}


def test_an_unreadable_override_hides_no_error_of_the_spec(spec: Any) -> None:
    found = spec.write(HEAD + SLURM).errors("bogus", "workload.dtype=fp4")
    assert set(found) == {"'bogus' has no value", "workload.dtype"}


def test_an_unknown_scheduler_hides_no_error_of_the_division(spec: Any) -> None:
    tables = '[parallelism]\nfsdp = 7\n[target]\nscheduler = "slrum"\n'
    assert set(spec.write(HEAD + tables).errors()) == {"target.scheduler", "parallelism.fsdp"}


@pytest.mark.parametrize(
    ("target", "keys"),
    [
        ('gpus_per_node = 0\nhost = "a b"\nworkdir = "rel"\n', {"gpus_per_node", "host", "workdir"}),
        ('gpus_per_node = 0\nhost = "login"\n', {"gpus_per_node", "workdir"}),
        ('host = "login"\nworkdir = 5\n', {"workdir"}),
    ],
)
def test_a_wrong_key_of_the_target_hides_no_error_of_its_place(spec: Any, target: str, keys: set[str]) -> None:
    assert set(spec.write(HEAD + SLURM + target).errors()) == {f"target.{key}" for key in keys}


WRONG: tuple[tuple[str, str, Any], ...] = (
    ("parallelism", "pp", 3),
    ("parallelism", "tp", 16),
    ("parallelism", "fsdp", 7),
    ("parallelism", "etp", 2),
    ("parallelism", "tpp", 2),
    ("model", "hidden", 8191),
    ("model", "vocab", "7"),
    ("workload", "gpus", "64"),
    ("workload", "dtype", "fp4"),
    ("workload", "steps", 5),
    ("measure", "window", [9, 3]),
    ("framework", "confg", 1),
    ("env", "XLA_FLAGS", "x"),
    ("target", "scheduler", "slrum"),
)


def test_two_errors_together_make_no_third(registry: llmb.PluginRegistry) -> None:
    def keys_of(*wrong: tuple[str, str, Any]) -> set[str | None]:
        tables: dict[str, Any] = tomllib.loads(HEAD + SLURM)
        for table, key, value in wrong:
            tables.setdefault(table, {})[key] = value
        try:
            llmb.plan(llmb.load(tables, registry=registry), registry=registry)
        except llmb.SpecError as error:
            return {error.key for error in error.faults}
        return set()

    alone = {each[:2]: keys_of(each) for each in WRONG}
    assert all(alone.values())
    for one, other in itertools.combinations(WRONG, 2):
        assert keys_of(one, other) <= alone[one[:2]] | alone[other[:2]], (one, other)


@pytest.mark.parametrize(
    ("table", "key", "nearest"),
    [
        ("workload", "tp", "parallelism.tp"),
        ("workload", "seq_len", "model.seq_len"),
        ("parallelism", "seq_len", "model.seq_len"),
        ("framework", "micro_batch_size", "parallelism.micro_batch_size"),
        ("target", "time_limit", "workload.time_limit"),
        ("measure", "stepz", None),
        ("workload", "stepz", "steps"),
        ("workload", "name", None),
        ("workload", "env", None),
    ],
)
def test_an_unknown_key_that_another_table_has_is_reported_with_that_table(
    spec: Any, table: str, key: str, nearest: str | None
) -> None:
    error = spec.big(**{table: {key: 2}}).errors()[f"{table}.{key}"]
    assert (error.message, error.nearest) == ("unknown key", nearest)
