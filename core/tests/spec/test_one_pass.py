"""Every fault of a spec in one answer, and none that only follows from another."""

from __future__ import annotations

import itertools
import tomllib
from typing import Any

import pytest

import llmb
from llmb.planning import refusals
from llmb.spec.load import resolve_document
from llmb.spec.read import Document

HEAD = '[workload]\nrecipe = "maxtext/llama2-70b"\ngpu_type = "h100"\ndtype = "bf16"\ngpus = 64\n'
SLURM = '[target]\nscheduler = "slurm"\naccount = "me"\npartition = "batch"\n'


@pytest.mark.parametrize(
    ("tables", "keys"),
    [
        ("[parallelism]\npp = 2\ntp = 16\nfsdp = 7\n", {"parallelism.pp", "parallelism.tp", "parallelism.fsdp"}),
        ("[measure]\nwindow = [0, 100]\ntolerance = 5\n", {"measure.window", "measure.tolerance"}),
        (
            '[framework]\nconfg = {}\nconfig."steps" = 1\n',
            {"framework.confg", "framework.config.steps"},
        ),
        (
            '[sweep]\n"parallelism.tpp" = [1, 2]\n"measure.window" = ["last", [44, 35]]\n"workload.dtype" = ["fp8"]\n',
            {"sweep.parallelism.tpp", "sweep.measure.window[1]", "sweep.workload.dtype"},
        ),
        ('[measure]\nwindow = [9, 3]\n[profile]\ntool = "nsys"\n', {"measure.window", "profile"}),
        ('[env]\nXLA_FLAGS = "x"\n1A = "x"\n', {"env.XLA_FLAGS", "env.1A"}),
        ("[framework.config]\nbad = [1]\nrun_name = 1\n", {"framework.config.bad", "framework.config.run_name"}),
        ("[parallelism]\nglobal_batch_size = 100\ncp = 2\n", {"parallelism.global_batch_size", "parallelism.cp"}),
        ("[parallelism]\ntpp = 2\n[model]\nhidden = 8191\n", {"parallelism.tpp", "model.hidden"}),
        ("[model]\ntop_k = 2\nlayer = 1\n[measure]\nwindow = [9, 3]\n", {"model.layer", "measure.window"}),
        ('[parallelism]\ntp = "8"\ncp = 2\n', {"parallelism.tp", "parallelism.cp"}),
        (
            '[framework.config]\nrun_name = "mine"\n[mounts]\n"/a,b" = "/x"\n',
            {"framework.config.run_name", 'mounts."/a,b"'},
        ),
    ],
)
def test_what_the_core_and_the_plugins_refuse_is_told_together(spec: Any, tables: str, keys: set[str]) -> None:
    assert set(spec.write(HEAD + tables + SLURM).faults()) == keys


@pytest.mark.parametrize(
    ("workload", "keys"),
    [
        ('dtype = "fp4"', {"workload.dtype"}),
        ('gpu_type = "h10"', {"workload.gpu_type"}),
        ('gpus = "64"', {"workload.gpus"}),
        ("gpus = 96", {"workload.gpus"}),
        ("steps = 0", {"workload.steps"}),
    ],
)
def test_a_wrong_name_or_number_hides_nothing_that_does_not_hang_on_it(
    spec: Any, workload: str, keys: set[str]
) -> None:
    key = workload.partition(" ")[0]
    head = "".join(line for line in HEAD.splitlines(keepends=True) if not line.startswith(f"{key} "))
    rest = '[measure]\nwindow = [44, 35]\n[framework]\nconfig.run_name = "mine"\n' + SLURM
    hidden = {"workload.steps": {"measure.window"}}.get(*keys, set())
    expected = keys | {"measure.window", "framework.config.run_name"} - hidden
    assert set(spec.write(f"{head}{workload}\n{rest}").faults()) == expected


@pytest.mark.parametrize(
    ("tables", "key"),
    [
        ('[parallelism]\ntp = "8"\nfsdp = 64\n', "parallelism.tp"),  # tp x fsdp would not divide the GPUs
        ("[parallelism]\ntpp = 8\nfsdp = 64\nmicro_batch_size = 16\n", "parallelism.tpp"),
        ("[paralelism]\nglobal_batch_size = 192\n", "paralelism"),
        ("[parallelism]\npp = 32\nvp = 3\n", "model.layers"),
    ],
)
def test_what_only_follows_from_another_fault_is_not_told(spec: Any, tables: str, key: str) -> None:
    gpus = HEAD.replace("64", "96") if tables.startswith("[paralelism") else HEAD
    assert set(spec.write(gpus + tables + SLURM).faults()) == {key}


def test_an_option_that_cannot_be_read_is_told_beside_what_the_others_say(spec: Any) -> None:
    found = spec.write(HEAD + SLURM).faults("bogus", "workload.dtype=fp4")
    assert set(found) == {"'bogus' has no value", "workload.dtype"}


def test_a_key_that_is_set_and_swept_hides_no_other_fault(spec: Any) -> None:
    sweep = '[parallelism]\nmicro_batch_size = 2\n[sweep]\n"parallelism.micro_batch_size" = [1, 2]\n'
    found = spec.write(HEAD + sweep + "[measure]\nwindow = [44, 35]\n" + SLURM).faults()
    assert set(found) == {"sweep.parallelism.micro_batch_size", "measure.window"}


def test_the_runs_of_a_sweep_that_have_no_fault_of_the_spec_are_asked_about_too(spec: Any) -> None:
    found = spec.write(HEAD + '[sweep]\n"parallelism.pp" = [1, 2, 32]\n' + SLURM).faults()
    assert set(found) == {"model.layers", "sweep.parallelism.pp[1]"}


@pytest.mark.parametrize("wrong", ["fsdp = 7", "cp = 2"])
def test_a_scheduler_that_is_not_there_hides_nothing_of_the_division(spec: Any, wrong: str) -> None:
    tables = f'[parallelism]\n{wrong}\n[target]\nscheduler = "slrum"\n'
    key = f"parallelism.{wrong.partition(' ')[0]}"
    assert set(spec.write(HEAD + tables).faults()) == {"target.scheduler", key}


@pytest.mark.parametrize(
    ("target", "keys"),
    [
        ('gpus_per_node = 0\nhost = "a b"\nworkdir = "rel"\n', {"gpus_per_node", "host", "workdir"}),
        ('gpus_per_node = 0\nhost = "login"\n', {"gpus_per_node", "workdir"}),
        ('host = "login"\nworkdir = 5\n', {"workdir"}),
    ],
)
def test_a_wrong_key_of_the_target_hides_nothing_of_the_place(spec: Any, target: str, keys: set[str]) -> None:
    assert set(spec.write(HEAD + SLURM + target).faults()) == {f"target.{key}" for key in keys}


def test_each_hook_tells_what_it_refuses_whatever_the_others_do(spec: Any) -> None:
    tables = '[framework.config]\nrun_name = "mine"\n' + SLURM + 'runtime = "venv"\n'
    assert set(spec.write(HEAD + tables).faults()) == {"framework.config.run_name", "target.runtime"}


def test_a_window_that_cannot_be_hides_no_fault_of_the_steps(spec: Any) -> None:
    wrong = HEAD + "steps = 3\n[measure]\nwindow = [5, 2]\n" + SLURM
    assert set(spec.write(wrong).faults()) == {"measure.window", "workload.steps"}


def test_a_number_of_gpus_that_is_not_published_hides_nothing_of_the_model(spec: Any) -> None:
    wrong = HEAD.replace("maxtext/llama2-70b", "nemo_launcher/llama3.1-70b").replace("gpus = 64", "gpus = 72")
    assert set(spec.write(wrong + "[model]\nvocab = 5\n" + SLURM).faults()) == {"workload.gpus", "model.vocab"}


@pytest.mark.parametrize("wrong", ["[parallelism]\ntp = 7\n", "[model]\nlayers = 0\n"])
def test_a_division_that_cannot_be_hides_nothing_that_the_scheduler_refuses(spec: Any, wrong: str) -> None:
    found = spec.write(HEAD + wrong + '[mounts]\n"/a,b" = "/x"\n' + SLURM).faults()
    assert 'mounts."/a,b"' in found


def test_nothing_is_told_of_the_published_degree_in_place_of_a_wrong_one(spec: Any) -> None:
    """With tp = 2, which is meant, 8190 tokens can be divided; with the published tp = 4 they cannot."""
    nemo = HEAD.replace("maxtext/llama2-70b", "nemo_launcher/llama3.1-70b")
    tables = '[parallelism]\ntp = "2"\ncp = 1\nvp = 1\nglobal_batch_size = 128\n[model]\nseq_len = 8190\n'
    assert set(spec.write(nemo + tables + SLURM).faults()) == {"parallelism.tp"}


def test_nothing_is_told_of_the_usual_node_in_place_of_a_wrong_one(spec: Any) -> None:
    """In nodes of 16 GPUs, which are meant, tp = 16 has room; in those of 8 that an H100 usually has, it has none."""
    tables = "[parallelism]\ntp = 16\nfsdp = 4\n" + SLURM + 'gpus_per_node = "16"\n'
    assert set(spec.write(HEAD + tables).faults()) == {"target.gpus_per_node"}


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


def test_two_faults_together_make_no_third() -> None:
    pool = llmb.PluginRegistry()

    def keys_of(*wrong: tuple[str, str, Any]) -> set[str | None]:
        tables: dict[str, Any] = tomllib.loads(HEAD + SLURM)
        for table, key, value in wrong:
            tables.setdefault(table, {})[key] = value
        try:
            llmb.plan(resolve_document(Document("spec.toml", tables), pool, refusals), pool=pool)
        except llmb.SpecError as error:
            return {fault.key for fault in error.faults}
        return set()

    alone = {each[:2]: keys_of(each) for each in WRONG}
    assert all(alone.values())
    for one, other in itertools.combinations(WRONG, 2):
        assert keys_of(one, other) <= alone[one[:2]] | alone[other[:2]], (one, other)
