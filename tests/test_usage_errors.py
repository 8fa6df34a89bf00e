"""Wrong command lines: one line that lists all that is missing, or names the nearest valid word."""

from __future__ import annotations

import pytest
from parts.forked import run_llmb

POINT = "options '--gpu-type', '--dtype', '--gpus'"


@pytest.mark.parametrize(
    ("arguments", "missing"),
    [
        ("run", "argument 'SPEC'"),
        ("compare", "arguments 'A', 'B'"),
        ("compare a", "argument 'B'"),
        ("grade", "argument 'LOG...' and options '--recipe', '--gpu-type', '--dtype', '--gpus'"),
        ("grade x.log --recipe a --dtype bf16", "options '--gpu-type', '--gpus'"),
        ("metrics", f"argument 'ADDRESS' and {POINT}, and '--step-time' or '--tflops-per-gpu'"),
        ("metrics a --step-time 3", POINT),
        ("report", "argument 'RUN...', and '--output', '--junit' or '--csv'"),
        ("report --csv x.csv", "argument 'RUN...'"),
    ],
)
def test_everything_that_is_missing_is_in_one_line(arguments: str, missing: str) -> None:
    command = arguments.partition(" ")[0]
    done = run_llmb(arguments.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"llmb: missing {missing}; see `llmb {command} --help`\n"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ("validte x", "no such command 'validte'; see `llmb --help` (did you mean 'validate'?)"),
        ("status", "no such command 'status'; see `llmb --help` (did you mean 'runs'?)"),
        ("stauts", "no such command 'stauts'; see `llmb --help` (did you mean 'runs'?)"),
        ("targets", "no such command 'targets'; see `llmb --help` (did you mean 'help targets'?)"),
        ("it's", 'no such command "it\'s"; see `llmb --help`'),
        ("zzz", "no such command 'zzz'; see `llmb --help`"),
        ("version", "no such command 'version'; see `llmb --help` (did you mean '--version'?)"),
        ("run x --gpus 8", "no such option --gpus; see `llmb run --help` (did you mean '--set workload.gpus=VALUE'?)"),
        (
            "validate x --time-limit 1h",
            "no such option --time-limit; see `llmb validate --help` (did you mean '--set workload.time_limit=VALUE'?)",
        ),
        ("logs x --gpus 8", "no such option --gpus; see `llmb logs --help`"),
        ("run x --dryrun", "no such option --dryrun; see `llmb run --help` (did you mean '--dry-run'?)"),
        ("runs --jsn", "no such option --jsn; see `llmb runs --help` (did you mean '--json'?)"),
        ("runs -x", "no such option -x; see `llmb runs --help`"),
        ("--dry-run run x", "--dry-run must come after the command; see `llmb --help`"),
        ("plugins x", "unexpected argument 'x'; see `llmb plugins --help`"),
        ("runs --limit x", "--limit: invalid value 'x'; expected an integer of at least 1; see `llmb runs --help`"),
        ("runs --limit 0", "--limit: invalid value 0; expected an integer of at least 1; see `llmb runs --help`"),
        ("metrics a --gpus x", "--gpus: invalid value 'x'; expected an integer; see `llmb metrics --help`"),
        ("metrics a --step-time x", "--step-time: invalid value 'x'; expected a number; see `llmb metrics --help`"),
        (
            "new-plugin x --kind framwork",
            "--kind: invalid value 'framwork'; expected one of declared, framework, scheduler, extension, pack "
            "(did you mean 'framework'?)",
        ),
    ],
)
def test_a_word_that_is_unknown_or_invalid_is_named_with_what_would_be_valid(arguments: str, line: str) -> None:
    done = run_llmb(arguments.split())
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"llmb: {line}\n")


@pytest.mark.parametrize(
    ("name", "address"),
    [
        ("maxtext/llama2-tiny", "maxtext/llama2-tiny"),
        ("megatron_bridge/llama3.1-70b@26.06", "megatron_bridge/llama3.1-70b@26.06"),
        ("llama2-tiny", "maxtext/llama2-tiny"),
    ],
)
def test_a_recipe_instead_of_a_spec_is_reported_with_the_command_that_writes_one(name: str, address: str) -> None:
    done = run_llmb(["run", name])
    expected = f"a file, such as `llmb recipes {address} --toml >my.toml` writes"
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"llmb: {name}: a recipe, not a spec; expected {expected}\n"
