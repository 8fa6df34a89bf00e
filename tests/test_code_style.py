"""Rules that no linter checks: the length of files and functions, and words that core must not contain."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from parts.repository import ROOT, is_test, statements, tracked_files

CORE = ROOT / "core/src/llmb"

LONGEST_FILE = 300
LONGEST_TEST_FILE = 500  # tests are independent, and each is read alone
LONGEST_FUNCTION = 50  # fits a screen
LONGEST_LINE = 120  # ruff checks it in Python

# Names of frameworks, schedulers, container engines, launchers, and of libraries that only some frameworks use.
WORDS = re.compile(
    r"maxtext|nemo|megatron|torchtitan|deepspeed|hydra|\bjax\b|pytorch|\btorch\b|transformer.?engine"
    r"|slurm|sbatch|squeue|\bsrun\b|scontrol|kubernetes|\bpbs\b|\blsf\b"
    r"|docker|podman|enroot|pyxis|apptainer|singularity|torchrun|mpirun|pdsh|\bcuda\b",
    re.IGNORECASE,
)
ALLOWED = {
    # publishers of FLOP formulas, and models that are the source of one (Nemotron-4); the notation of a layout
    "analysis/flops.py": {"megatron", "nemo"},
    "values/model.py": {"megatron"},
    # examples in the help and in the descriptions of keys
    "spec/workload_tables.py": {"nemo", "slurm"},
    "testing/bash_text.py": {"slurm", "pbs", "lsf", "srun", "sbatch"},  # variables that jobs must not read
    "testing/__init__.py": {"torchtitan"},  # an example
    "plugin_templates/declared/__name__.toml": {"torchrun"},  # a value of launch
    "testing/scheduler_scripts.py": {"torchrun", "deepspeed", "torch"},  # launchers that no scheduler starts
    "cli/help_screens.py": {"maxtext"},
    "cli/command_examples.py": {"maxtext"},
    "cli/commands/topics/spec.txt": {"maxtext", "slurm"},
    "cli/commands/topics/targets.txt": {"slurm"},
    "scripts/provenance_functions.sh": {"cuda"},  # its version is part of the provenance
    # their labels begin lines of logs
    "logs/rank_labels.py": {"srun", "torchrun", "mpirun", "pdsh", "nemo", "cuda", "docker"},
    "parsing/json_records_and_utf16.py": {"docker", "kubernetes"},  # their records contain lines of logs
    # the launchers whose reports do not show that a process continued
    "logs/failures/exceptions.py": {"mpirun", "torch"},
    # the origin of the texts that identify a cause
    "logs/failures/signatures/amd.toml": {"cuda", "pytorch"},
    "logs/failures/signatures/builds.toml": {"cuda", "deepspeed", "jax", "pytorch", "torch"},
    "logs/failures/signatures/datasets_and_models.toml": {"cuda", "pytorch"},
    "logs/failures/signatures/files.toml": {"pytorch", "torch"},
    "logs/failures/signatures/gpu.toml": {"cuda", "pytorch", "torch", "transformer engine"},
    "logs/failures/signatures/memory.toml": {"cuda", "pytorch", "torch", "transformer engine"},
    "plugins/declared/framework_tables.py": {"torchrun"},  # a launcher of any PyTorch script
    "plugins/declared/command.py": {"torchrun", "pytorch"},
    "plugins/declared/check_tables.py": {"torchrun"},
    "logs/failures/signatures/processes.toml": {"torchrun", "deepspeed", "pytorch", "pbs", "lsf", "hydra"},
    "logs/failures/signatures/communication.toml": {"pytorch"},
    "logs/failures/signatures/launchers.toml": {"hydra", "pytorch"},  # also the name of MPICH's launcher
}


def test_every_file_has_a_readable_length() -> None:
    lengths = {
        str(path.relative_to(ROOT)): (
            len(path.read_text().splitlines()),
            LONGEST_TEST_FILE if is_test(path) else LONGEST_FILE,
        )
        for path in tracked_files("*.py", "*.sh")
        if "golden" not in path.parts  # written by the tested code
    }
    assert {name: length for name, (length, most) in lengths.items() if length > most} == {}


def test_no_exit_trap_reads_a_local_variable() -> None:
    """Bash 4, as on RHEL 8, has no local variables in the trap if the script is read with ``.``, as on this machine."""
    found = []
    for path in tracked_files("*.sh", "*.j2"):
        text = path.read_text()
        words = " ".join(re.findall(r"^\s*local (.*)", text, re.MULTILINE))
        read = re.findall(r"\$\{?(\w+)", " ".join(re.findall(r"\btrap '(.*)' EXIT", text)))
        found += [f"{path.name}: {name}" for name in read if re.search(rf"\b{name}\b", words)]
    assert found == []


def functions(path: Path) -> Iterator[tuple[str, int]]:
    for node in statements(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{path.relative_to(ROOT)}: {node.name}", (node.end_lineno or 0) - node.lineno + 1


def test_every_function_fits_a_screen() -> None:
    lengths = dict(each for path in tracked_files("*.py") for each in functions(path))
    assert {name: length for name, length in lengths.items() if length > LONGEST_FUNCTION} == {}


def prose(page: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a page outside blocks and tables, which cannot be wrapped."""
    in_block = False
    for number, line in enumerate(page.read_text().splitlines(), 1):
        in_block ^= line.lstrip().startswith("```")
        if not in_block and not line.startswith("|"):
            yield number, line


def test_defaults_of_fields_are_visible_to_every_type_checker() -> None:
    """Pyright does not read ``@field.default`` of attrs, and would require the field in each call."""
    found = [
        f"{path.relative_to(ROOT)}: {node.name}"
        for path in tracked_files("*.py")
        for node in statements(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef)
        and any(isinstance(each, ast.Attribute) and each.attr == "default" for each in node.decorator_list)
    ]
    assert found == []


def test_no_pattern_has_a_possessive_group() -> None:
    """Before Python 3.11.5, ``(?:a(?=b))?+`` matches "a" of "ac". An atomic group such as ``(?>a(?=b)|)`` does not."""
    possessive = re.compile(r"(?<!\\)\)(?:[?*+]|\{[\d,]+\})\+")
    files = [path for path in tracked_files("*.py", "*.toml") if not is_test(path)]
    assert [str(path) for path in files if possessive.search(path.read_text())] == []


def test_pages_are_wrapped() -> None:
    pages = {str(page.relative_to(ROOT)): page for page in tracked_files("*.md")}
    assert [f"{name}:{n}" for name, page in pages.items() for n, line in prose(page) if len(line) > LONGEST_LINE] == []


def test_the_core_names_no_framework_and_no_scheduler() -> None:
    found = {
        f"{name}: {word}"
        for file in tracked_files("core/src")
        for word in {each.lower() for each in WORDS.findall(file.read_text())}
        if word not in ALLOWED.get(name := str(file.relative_to(CORE)), ())
    }
    assert found == set()


@pytest.mark.parametrize("name", ALLOWED)
def test_every_permitted_word_is_still_used(name: str) -> None:
    assert {each.lower() for each in WORDS.findall((CORE / name).read_text())} == ALLOWED[name]
