"""Declared frameworks: the jobs they build, the values they reject, and where their files are found."""

from __future__ import annotations

import os
import shlex
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import tomli_w

import llmb
from llmb.plan_runs import RunPlan, plan

FILE: dict[str, Any] = {
    "command": ["python3", "train.py", "--steps={steps}", "--batch={global_batch_size}"],
    "files": ["train.py"],
    "log": {"line": "iter {step}: loss {loss}, time {time_ms}ms", "end": "done", "first_step": 0},
    "recipe": {"steps": 20, "seq_len": 128, "params": 50e3, "dtypes": ["fp32"], "global_batch_size": "8 * gpus"},
}
SPEC: dict[str, Any] = {
    "workload": {"recipe": "./mylm.toml", "gpu_type": "cpu", "dtype": "fp32", "gpus": 2},
    "target": {"scheduler": "local"},
}


class Folder:
    """A folder with a spec and a declared framework, each with changed keys."""

    def __init__(self, path: Path) -> None:
        self.path = path
        (path / "train.py").write_text("print('hello')\n")

    def write(self, name: str = "mylm.toml", **keys: Any) -> Path:
        changed = {key: value for key, value in {**FILE, **keys}.items() if value is not None}
        (self.path / name).write_text(tomli_w.dumps(changed))
        return self.path / name

    def plan(self, *overrides: str, **tables: dict[str, Any]) -> RunPlan:
        spec = self.path / "spec.toml"
        spec.write_text(tomli_w.dumps({**SPEC, **tables}))
        [only] = plan(llmb.load(spec, overrides=overrides))
        return only

    def error(self, *overrides: str, **tables: dict[str, Any]) -> str:
        with pytest.raises(llmb.LlmbError) as raised:
            self.plan(*overrides, **tables)
        return "\n".join(map(str, raised.value.faults))

    def script(self, *overrides: str, **tables: dict[str, Any]) -> str:
        job = self.plan(*overrides, **tables).job
        return job.files[f"{job.directory}/command.sh"]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def test_a_file_next_to_the_spec_starts_its_command_with_its_files(folder: Folder) -> None:
    folder.write()
    planned = folder.plan()
    run, job = planned.run, planned.job
    assert (run.recipe, run.name) == ("mylm/mylm", "mylm-cpu-fp32-2")
    assert (run.architecture, run.flops_per_token, run.seq_len) == (None, 300e3, 128)
    assert run.parallelism.global_batch_size == 16
    assert job.files[f"{job.directory}/train.py"] == "print('hello')\n"
    assert job.phases[0].ranks == "all"
    script = job.files[f"{job.directory}/command.sh"].splitlines()
    assert script[1:] == [f"cd {job.directory} || exit 1", "exec python3 train.py --steps=20 --batch=16"]


def test_a_missing_file_is_an_error_of_the_key_that_names_it(folder: Folder) -> None:
    file = folder.path / "mylm.toml"
    assert folder.error() == f"{folder.path}/spec.toml: workload.recipe: {file}: no such file"
    folder.write(command=3)
    assert folder.error().startswith(f"{file}: command: ")


def test_a_file_below_the_home_of_an_unknown_user_is_missing(folder: Folder) -> None:
    error = folder.error("workload.recipe=~no-such-user/mylm.toml")
    assert error == f"overrides: workload.recipe: {folder.path}/~no-such-user/mylm.toml: no such file"


def test_a_key_of_a_recipe_at_the_top_of_the_file_names_its_table(folder: Folder) -> None:
    folder.write(baselines=[{"step_time_s": 1.0}])
    assert folder.error().endswith("diagnose (did you mean 'recipe.baselines'?)")


def test_a_recipe_for_a_plugin_is_one_error_that_names_its_folder(folder: Folder) -> None:
    (folder.path / "mylm.toml").write_text('release = "1"\nsteps = 5\n[framework]\n[[points]]\ngpus = 8\n')
    error = folder.error()
    assert f"{folder.path}/mylm.toml is a recipe for a framework plugin" in error
    assert error.endswith('/llmb/recipes/FRAMEWORK, and recipe = "FRAMEWORK/mylm" in the spec')
    assert "\n" not in error


def test_a_spec_to_start_from_has_no_other_gpu_types_or_numbers_than_any(folder: Folder) -> None:
    file = folder.write(command=["train", "{dtype}"], recipe={**FILE["recipe"], "dtypes": ["fp32", "bf16"]})
    lines = llmb.starter_workload(str(file)).splitlines()
    assert 'gpu_type = "cpu" # or any other type; a list runs each' in lines
    assert 'dtype = "fp32" # any of "bf16", "fp32"; a list runs each' in lines
    assert "gpus = 1 # or any other number; a list runs each" in lines


def test_a_spec_to_start_from_quotes_the_path_of_the_file(folder: Folder) -> None:
    file = str(folder.write('my "small" lm.toml'))
    assert tomllib.loads(llmb.starter_workload(file))["workload"]["recipe"] == file


@pytest.mark.parametrize(("launch", "ranks"), [("task", "all"), ("node", "node"), ("first", "first")])
def test_the_command_runs_on_these_ranks(folder: Folder, launch: str, ranks: str) -> None:
    folder.write(launch=launch)
    assert folder.plan().job.phases[0].ranks == ranks


def test_torchrun_runs_once_on_each_node(folder: Folder) -> None:
    folder.write(launch="torchrun", command=["train.py", "{steps}"])
    assert folder.plan().job.phases[0].ranks == "node"
    assert folder.script().splitlines()[-1] == (
        'exec torchrun --nnodes=1 --nproc-per-node=2 --node-rank="$LLMB_NODE_RANK" '
        '--master-addr="$LLMB_MASTER_ADDR" --master-port="$LLMB_MASTER_PORT" train.py 20'
    )


def test_a_shell_receives_every_word_quoted(folder: Folder, tmp_path: Path) -> None:
    words = ["--a=x y", "$HOME", "it's", "{rank} of {world_size}", "{{steps}}", "", "`id`", "{name}"]
    folder.write(
        command=["printf", "%s\\n", *words],
        env={"OWN": "{node_rank}; rm -rf /", "FIXED": "{gpus} GPUs"},
        options={"name": {"default": "; touch hacked"}},
    )
    script = folder.script(framework={"args": ["a b", "$(id)"]})
    script = script.replace(script.splitlines()[1], f"cd {shlex.quote(str(tmp_path))}")
    env = {**os.environ, "LLMB_RANK": "3", "LLMB_WORLD_SIZE": "8", "LLMB_NODE_RANK": "1"}
    done = subprocess.run(["bash", "-c", script], env=env, text=True, capture_output=True, check=True)
    expected = ["--a=x y", "$HOME", "it's", "3 of 8", "{steps}", "", "`id`", "; touch hacked", "a b", "$(id)"]
    assert done.stdout.splitlines() == expected
    assert folder.plan().job.phases[0].env == {"FIXED": "2 GPUs"}


def test_a_variable_that_differs_between_processes_is_set_unless_the_spec_sets_it(folder: Folder) -> None:
    folder.write(command=["printenv", "OWN"], env={"OWN": "rank {rank}"}, recipe=FILE["recipe"])
    script = folder.script().replace(folder.plan().job.directory, ".").splitlines()
    lines = "\n".join(line for line in script if not line.startswith("cd "))
    for env, expected in (({}, "rank 7\n"), ({"OWN": "mine"}, "mine\n")):
        given = {**os.environ, "LLMB_RANK": "7", **env}
        done = subprocess.run(["bash", "-c", lines], env=given, text=True, capture_output=True, check=True)
        assert done.stdout == expected


UNUSED = "the framework's file does not use"


@pytest.mark.parametrize(
    ("tables", "error"),
    [
        ({"parallelism": {"tp": 2}}, f"parallelism.tp: 2 has no effect: {UNUSED} {{tp}}"),
        ({"model": {"seq_len": 64}}, f"model.seq_len: the value has no effect: {UNUSED} {{seq_len}}"),
        ({"model": {"layers": 2}}, "model.layers: the recipe states no architecture"),
        ({"profile": {"tool": "nsys"}}, "profile: a declared framework starts no profiler"),
        ({"framework": {"depth": 2}}, "framework.depth: unknown key; expected one of args"),
    ],
)
def test_a_spec_can_change_only_what_the_file_uses(folder: Folder, tables: dict[str, Any], error: str) -> None:
    folder.write()
    assert error in folder.error(**tables)


def test_a_value_that_the_command_contains_can_change(folder: Folder) -> None:
    folder.write(command=["run", "{steps}", "{tp}", "{seq_len}"], degrees=["cp"])
    changed = {"parallelism": {"tp": 2, "global_batch_size": 16}, "model": {"seq_len": 64}}
    assert folder.script("workload.steps=7", **changed).endswith("exec run 7 2 64\n")
    assert folder.plan(parallelism={"cp": 2}).run.parallelism.cp == 2
    folder.write(command=["run"])
    assert "workload.steps: the value has no effect" in folder.error("workload.steps=7")
    assert folder.plan("workload.steps=20").run.steps == 20


def test_options_have_the_type_of_their_default(folder: Folder) -> None:
    options = {"depth": {"default": 4}, "mode": {"default": "a", "choices": ["a", "b"]}, "fast": {"default": False}}
    folder.write(command=["run", "{depth}", "{mode}", "{fast}"], options=options)
    assert folder.script(framework={"depth": 8, "mode": "b", "fast": True}).endswith("exec run 8 b true\n")
    assert 'framework.depth: invalid value "8"; expected an integer' in folder.error(framework={"depth": "8"})
    assert 'framework.mode: invalid value "c"; expected "a" or "b"' in folder.error(framework={"mode": "c"})


@pytest.mark.parametrize(
    ("keys", "error"),
    [
        ({"command": ["run", "{stps}"]}, "command[1]: unknown placeholder {stps}"),
        ({"command": []}, "command: "),
        ({"files": ["no.py"]}, "no.py cannot be read: No such file"),
        ({"files": ["../train.py"]}, "files[0]: invalid value"),
        ({"files": ["train.py", "job.sh"]}, 'files[1]: llmb writes "job.sh"'),
        ({"files": ["train.py", "out.log"]}, 'files[1]: llmb writes "out.log"'),
        ({"files": ["train.py", "alive"]}, 'files[1]: llmb writes "alive"'),
        ({"options": {"depth": {"default": 4}}}, "options.depth: the option has no effect"),
        (
            {"command": ["run", "{mode}"], "options": {"mode": {"default": "c", "choices": ["a", "b"]}}},
            'options.mode.default: invalid value "c"; expected one of choices: "a", "b"',
        ),
        ({"options": {"tp": {"default": 4}}}, "options.tp: the name of a value of every run"),
        (
            {"command": ["run", "{depth}"], "options": {"depth": {"default": {"a": 1}}}},
            "options.depth.default: invalid value {...}; expected a string, a number, true or false, or a list",
        ),
        ({"command": ["run", "{mla}"]}, "command[1]: unknown placeholder {mla}"),
        ({"command": ["run", "{class}"], "options": {"class": {"default": 4}}}, "options.class: a word with a meaning"),
        ({"command": ["run", "{self}"], "options": {"self": {"default": 4}}}, "options.self: a word with a meaning"),
        ({"image": "a/b:1", "venv": {"lock": "train.py", "python": "3.12"}}, "venv: image and venv cannot be combined"),
        ({"command": ["{repository}/a.py"]}, "repository: {repository} is used, but there is no such table"),
        ({"command": ["a.py", "{rank}"], "launch": "torchrun"}, "command: {rank} differs between the processes"),
        ({"command": ["python3", "a.py"], "launch": "torchrun"}, "command[0]: torchrun starts Python itself"),
        ({"command": ["train.py"]}, 'command[0]: llmb copies "train.py" without the permission to execute it'),
        ({"command": ["./train.py"]}, 'command[0]: llmb copies "./train.py" without the permission to execute it'),
        ({"command": ["{run}/train.py"]}, 'command[0]: llmb copies "{run}/train.py" without the permission'),
        ({"env": {"HF_TOKEN": "abc"}}, "env.HF_TOKEN: secrets are not allowed in the file, because llmb records it"),
        ({"env": {"MASTER_PORT": "1"}}, "env.MASTER_PORT: llmb sets this variable for each task; remove it"),
        (
            {"recipe": {**FILE["recipe"], "dtypes": ["fp32", "bf16"]}},
            "recipe.dtypes: fp32, bf16 would start the same job",
        ),
        ({"recipe": {**FILE["recipe"], "stesp": 3}}, "recipe.stesp: unknown key"),
        ({"recipe": {**FILE["recipe"], "shared": ["no"]}}, "recipe.shared[0]: invalid value"),
        ({"recipe": {**FILE["recipe"], "shared": "no"}}, "recipe.shared: invalid value"),
        (
            {"recipe": None, "recipes": {"a": {**FILE["recipe"], "shared": ["no"]}}},
            "recipes.a.shared[0]: invalid value",
        ),
        ({"recipe": {"steps": 20}}, "recipe.seq_len: required key is missing"),
        ({"log": {"line": "a {step}"}}, "log.line: no text of 2 characters"),
        ({"recipe": None}, "recipe: required table is missing; expected a table [recipe], without which llmb can only"),
    ],
)
def test_an_error_of_the_file_names_the_file_and_the_key(folder: Folder, keys: dict[str, Any], error: str) -> None:
    file = folder.write(**keys)
    message = folder.error()
    assert error in message
    assert str(file) in message


def test_a_placeholder_without_a_value_is_an_error(folder: Folder) -> None:
    folder.write(command=["run", "{pipeline_layout}", "{pp}"])
    assert "parallelism.pipeline_layout: the recipe has no such value, but the framework's file uses" in folder.error()
    assert "run Et 1" in folder.script('parallelism.pipeline_layout="Et"')


def test_several_recipes_are_chosen_by_name(folder: Folder) -> None:
    small, large = FILE["recipe"], {**FILE["recipe"], "steps": 40}
    folder.write(recipe=None, recipes={"small": small, "large": large})
    assert folder.plan('workload.recipe="./mylm.toml#large"').run.steps == 40
    assert "the file has several recipes (small, large)" in folder.error()
    assert "no recipe 'lage'; expected one of small, large (did you mean 'large'?)" in folder.error(
        'workload.recipe="./mylm.toml#lage"'
    )


def test_an_architecture_gives_its_sizes_to_the_command_and_its_rules_to_the_spec(folder: Folder) -> None:
    model = {"layers": 2, "hidden": 64, "ffn": 128, "heads": 4, "query_groups": 4, "vocab": 100}
    recipe = {**FILE["recipe"], "params": None, "model": model, "flop_formula": "full"}
    folder.write(
        command=["run", "{layers}", "{tp}"], recipe={key: value for key, value in recipe.items() if value is not None}
    )
    assert folder.script("model.layers=4").endswith("exec run 4 1\n")
    assert "4 heads are not divisible by tp = 3" in folder.error("parallelism.tp=3", "workload.gpus=3")
    folder.write(command=["run", "{layers}"])
    reason = "mylm/mylm has no [model], but the framework's file uses {layers}; expected a table [model] in the recipe"
    assert f"model: {reason}" in folder.error()


def test_a_log_without_its_end_is_incomplete(folder: Folder, run_llmb: Any) -> None:
    file, log = folder.write(), folder.path / "a.log"
    log.write_text("iter 0: loss 3, time 5ms\niter 1: loss 2, time 4.5ms\n")
    parsed = llmb.parse(log, framework=str(file))
    assert (parsed.status, parsed.reason) == ("incomplete", 'incomplete: the log lacks the end of the training, "done"')
    shown = run_llmb("parse", log, "--framework", file).stdout
    assert 'incomplete (the log lacks "done"), 2 steps' in shown
    log.write_text(log.read_text() + "done\n")
    parsed = llmb.parse(log, framework=str(file))
    assert (parsed.status, parsed.summary.step_time_s) == ("complete", 0.0045)


@pytest.mark.parametrize(
    ("gpus", "published_s", "verdict"), [(8, 0.01, "pass"), (8, 0.001, "fail"), (16, 0.01, None), (1, 0.01, None)]
)
def test_a_log_is_judged_by_the_baselines_in_the_file(
    folder: Folder, gpus: int, published_s: float, verdict: str | None
) -> None:
    point = {"gpu_type": "h100", "dtype": "bf16", "gpus": 8, "step_time_s": published_s}
    file = folder.write(recipe={**FILE["recipe"], "dtypes": ["bf16"], "baselines": [point], "window": [10, 19]})
    log = folder.path / "a.log"
    log.write_text("".join(f"iter {step}: loss 3, time 10ms\n" for step in range(20)) + "done\n")
    grade = llmb.grade([log], recipe=str(file), gpu_type="h100", dtype="bf16", gpus=gpus)
    assert grade.verdict == verdict
    assert grade.metrics is not None
    assert grade.metrics.tokens_per_s == pytest.approx(8 * gpus * 128 / 0.01)


def test_a_log_of_an_unknown_gpu_type_is_judged_only_with_a_baseline_for_it(folder: Folder) -> None:
    file, log = folder.write(), folder.path / "a.log"
    log.write_text("".join(f"iter {step}: loss 3, time 10ms\n" for step in range(20)) + "done\n")
    point = {"gpu_type": "h10", "dtype": "fp32", "gpus": 8}
    for call in (lambda: llmb.grade(log, recipe=str(file), **point), lambda: llmb.metrics(str(file), **point)):
        with pytest.raises(llmb.LlmbError, match=r"unknown GPU type h10; .* \(did you mean 'h100'\?\)"):
            call()
    file = folder.write(recipe={**FILE["recipe"], "baselines": [{**point, "step_time_s": 0.01}], "window": [10, 19]})
    assert llmb.grade(log, recipe=str(file), **point).verdict == "pass"


def test_parse_shows_the_closest_line_and_the_position_of_the_difference(folder: Folder, run_llmb: Any) -> None:
    log = folder.path / "a.log"
    log.write_text("starting\n[rank0] iter 10: loss 2.5, time 4.5 ms\nend\n")
    result = run_llmb("parse", log, "--framework", folder.write())
    assert result.returncode == 1
    assert result.stderr.splitlines()[1:] == [
        '  "iter {step}: loss {loss}, time {time_ms}ms" matches no line',
        '  the closest is line 2, which differs at column 36: expected "ms"',
        "    [rank0] iter 10: loss 2.5, time 4.5 ms",
        "    " + " " * 35 + "^",
    ]


@pytest.mark.parametrize(
    ("line", "text", "difference"),
    [
        (
            "loss {loss} ... step {step} end",
            "loss 2.5x, step 3 end",
            "column 9: expected no more characters after {loss}",
        ),
        ("loss {loss}", "loss 2.5x", "column 9: expected no more characters after {loss}"),
        ("{clock} loss {loss} !", "at10:00:00 loss 2.5 !", "column 1: expected a time of day for {clock}"),
        ("loss={loss}", "train_loss=2.5", 'column 7: expected "loss=" at the beginning of a word'),
    ],
)
def test_a_number_or_a_text_inside_a_word_is_the_position_of_the_difference(
    folder: Folder, line: str, text: str, difference: str
) -> None:
    file = folder.write(log={"line": line})
    framework = llmb.PluginRegistry().framework(str(file))
    assert difference in framework.explain_missing_steps(lines=[text])


def test_causes_of_failure_are_found_in_the_logs_of_this_framework(folder: Folder) -> None:
    file = folder.write(diagnose=[{"text": "bad shard 7", "cause": "a shard is damaged", "remedy": "copy it again"}])
    log = folder.path / "a.log"
    log.write_text("iter 0: loss 3, time 5ms\nRuntimeError: bad shard 7\n")
    failure = llmb.parse(log, framework=str(file)).failure
    assert failure
    assert (failure.cause, failure.remedy) == ("a shard is damaged", "copy it again")
