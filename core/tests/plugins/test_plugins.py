"""Plugins as pip leaves them: each that does not work is one line that names it, and hurts only runs that use it."""

from __future__ import annotations

from datetime import date, time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import tomli_w

import llmb

KINDS = {"framework": "frameworks", "scheduler": "schedulers", "extension": "extensions"}

RECIPE = """
release = "1"
description = "for tests"
source = "nothing"
flop_formula = "full"
window = "last"
steps = 5
time_limit = "1m"
[model]
layers = 2
hidden = 64
ffn = 128
heads = 4
query_groups = 4
vocab = 128
seq_len = 32
[[points]]
gpu_type = ["h100", "npu9"]
dtype = "bf16"
gpus = [1, 2]
global_batch_size = "2 * gpus"
"""

WORKING = """
import attrs
from llmb import Environment, Fault, FrameworkHooks, Job, LineParser, Phase, SpecError, hookimpl

@attrs.frozen
class Options:
    word: str = "x"

class Plugin(FrameworkHooks[Options]):
    options = Options

    @hookimpl
    def parse_log(self):
        return LineParser()

    @hookimpl
    def build_job(self, run):
        return Job(
            id=run.id, directory=run.paths.run, phases=(Phase(name="train", command=("true",)),),
            nodes=1, tasks_per_node=1, gpus_per_node=1, env={}, files={}, time_limit_s=60,
        )
"""
UNMARKED = "\n    def prepare_env(self, run):\n        return Environment(secrets=('HF_TOKEN',))\n"
BUILD_JOB = WORKING[WORKING.index("    @hookimpl\n    def build_job") :]


def framework(site: Any, code: str, *, name: str = "odd", distribution: str = "llmb-odd", **more: Any) -> None:
    """Install a framework plugin with one recipe."""
    package = distribution.replace("-", "_")
    site.install(
        distribution,
        files={f"{package}/__init__.py": "", f"{package}/plugin.py": code, f"{package}/recipes/tiny.toml": RECIPE},
        entry_points={"llmb.frameworks": {name: f"{package}.plugin:Plugin"}},
        **more,
    )


@pytest.fixture
def odd_spec(tmp_path: Path) -> Path:
    """A spec that uses the plugin of the test."""
    return write(tmp_path / "odd.toml", recipe="odd/tiny", gpu_type="h100", dtype="bf16")


def write(file: Path, scheduler: str = "local", **workload: Any) -> Path:
    file.write_text(tomli_w.dumps({"workload": {"gpus": 1, **workload}, "target": {"scheduler": scheduler}}))
    return file


def one_line(done: Any) -> str:
    """The only line on standard error, of a command that ended with 2 and printed nothing else."""
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    return str(done.stderr.strip())


def listed(run_llmb: Any, name: str) -> list[dict[str, Any]]:
    return [plugin for plugin in run_llmb.json("plugins")["plugins"] if plugin["name"] == name]


def fits_not(text: str) -> str:
    return f"llmb-odd 1.2.3 does not fit llmb {llmb.VERSION}: {text}"


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("import nothing_of_this_name", "ModuleNotFoundError: No module named 'nothing_of_this_name'"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("raise SystemExit('bye')", "SystemExit: bye"),
        ("def f(:", "SyntaxError: "),
        ("class Plugins: pass", "has no attribute 'Plugin'"),
        ("class Plugin:\n    def __init__(self): raise OSError('no\\nlicence')", "OSError: no licence"),
    ],
)
def test_a_plugin_that_breaks_at_import_is_one_line(
    site: Any, run_llmb: Any, spec: Any, odd_spec: Path, code: str, text: str
) -> None:
    framework(site, code)
    line = one_line(run_llmb("validate", odd_spec))
    assert line.startswith(
        f"llmb: {odd_spec}: workload.recipe: llmb-odd 1.2.3 is broken: llmb_odd.plugin:Plugin fails with "
    )
    assert text in line
    assert text in listed(run_llmb, "odd")[0]["error"]
    assert run_llmb("validate", spec.usual().file).returncode == 0


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (WORKING.replace("run)", "runn)"), "build_job() wants runn, and the hook gives run"),
        (WORKING.replace("run)", "run, target)"), "build_job() wants target, and the hook gives run"),
        (
            WORKING.replace("run)", "*, run)"),
            "build_job() takes run by keyword only, and hooks are called by position",
        ),
        (
            WORKING.replace("def build_job", "def bild_job"),
            "bild_job() is no hook of a framework (did you mean 'build_job'?); it does not implement build_job()",
        ),
        (
            WORKING.replace("def build_job(self, run)", "def submit(self)"),
            "submit() is no hook of a framework; it does not implement build_job()",
        ),
        (WORKING.replace(BUILD_JOB, ""), "it does not implement build_job()"),
        (WORKING.replace(BUILD_JOB, BUILD_JOB[14:]), "its build_job() is not marked with @hookimpl"),
        (WORKING + UNMARKED, "its prepare_env() is not marked with @hookimpl"),
        (WORKING.replace("(FrameworkHooks[Options])", "").replace(BUILD_JOB, ""), "it does not implement build_job()"),
        (WORKING.replace("    options = Options\n", ""), "it has no `options`, an attrs class"),
        (WORKING.replace("@attrs.frozen", ""), "it has no `options`, an attrs class"),
        (WORKING.replace("options = Options", "options = {}"), "it has no `options`, an attrs class"),
        (
            WORKING.replace("options = Options", "options = 3").replace("run)", "ran)"),
            "build_job() wants ran, and the hook gives run; it has no `options`, an attrs class",
        ),
    ],
)
def test_a_plugin_that_does_not_fit_its_hooks_is_one_line(
    site: Any, run_llmb: Any, spec: Any, odd_spec: Path, code: str, text: str
) -> None:
    framework(site, code)
    line = one_line(run_llmb("validate", odd_spec))
    assert line == f"llmb: {odd_spec}: workload.recipe: {fits_not(text)}"
    assert listed(run_llmb, "odd")[0]["error"] == fits_not(text)
    assert run_llmb("validate", spec.usual().file).returncode == 0


def test_a_hook_may_leave_out_arguments_and_have_others_with_a_default(
    site: Any, run_llmb: Any, odd_spec: Path
) -> None:
    more = "\n    @hookimpl\n    def prepare_env(self, mine=3):\n        return Environment()\n"
    framework(site, WORKING + more)
    assert run_llmb("validate", odd_spec).returncode == 0
    assert listed(run_llmb, "odd")[0]["hooks"] == ["build_job", "parse_log", "prepare_env"]


def test_two_distributions_with_one_name_are_both_told(site: Any, run_llmb: Any, spec: Any, odd_spec: Path) -> None:
    framework(site, WORKING)
    framework(site, WORKING, distribution="odd-two", version="4.5")
    told = "framework 'odd' is brought by llmb-odd 1.2.3 and odd-two 4.5; uninstall all but one"
    assert one_line(run_llmb("validate", odd_spec)) == f"llmb: {odd_spec}: workload.recipe: {told}"
    assert [plugin["error"] for plugin in listed(run_llmb, "odd")] == [told, told]
    assert run_llmb("validate", spec.usual().file).returncode == 0


def test_one_name_may_stand_for_plugins_of_two_kinds(site: Any, run_llmb: Any, spec: Any) -> None:
    framework(site, WORKING, name="local")
    assert run_llmb("validate", spec.usual().file).returncode == 0


def test_a_distribution_that_is_on_the_path_twice_is_no_duplicate(
    site: Any, run_llmb: Any, odd_spec: Path, tmp_path: Path
) -> None:
    framework(site, WORKING, version="2.0")
    older = type(site)(tmp_path / "older")
    framework(older, "1 / 0", version="1.0")
    run_llmb.path.append(str(older.folder))
    done = run_llmb("validate", odd_spec)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_missing_plugin_is_told_with_those_installed_and_no_stranger_s_package(run_llmb: Any, tmp_path: Path) -> None:
    installed = {kind: ", ".join(each.name for each in llmb.list_plugins() if each.kind == kind)
                 for kind in ("framework", "scheduler")}  # fmt: skip
    file = write(tmp_path / "a.toml", recipe="acme_trainer/x", gpu_type="h100", dtype="bf16")
    assert one_line(run_llmb("validate", file)) == (
        f"llmb: {file}: workload.recipe: framework plugin 'acme_trainer' is not installed; "
        f"expected one of those installed: {installed['framework']}"
    )
    file = write(tmp_path / "b.toml", recipe="maxtext/llama2-tiny", gpu_type="cpu", dtype="fp32", scheduler="locl")
    assert one_line(run_llmb("validate", file)).endswith(
        "scheduler plugin 'locl' is not installed; "
        f"expected one of those installed: {installed['scheduler']} (did you mean 'local'?)"
    )


def test_a_plugin_of_the_other_kind_is_told_as_what_it_is(run_llmb: Any, spec: Any) -> None:
    told = one_line(run_llmb("parse", "x.log", "--framework", "slurm"))
    assert told.startswith("llmb: slurm is a scheduler, and no framework; expected one of those installed: ")
    told = one_line(run_llmb("validate", spec.usual().file, "--set", "target.scheduler=maxtext"))
    assert ": maxtext is a framework, and no scheduler; expected one of those installed: " in told


def test_a_plugin_for_a_newer_llmb_is_one_line_and_is_not_imported(
    site: Any, run_llmb: Any, spec: Any, odd_spec: Path
) -> None:
    framework(site, "1 / 0", requires=("attrs", "llmb>=99"))
    told = (
        f"llmb-odd 1.2.3 is for llmb >=99, and this is llmb {llmb.VERSION}; "
        "`pip install --upgrade llmb llmb-odd` brings two that fit"
    )
    assert one_line(run_llmb("validate", odd_spec)) == f"llmb: {odd_spec}: workload.recipe: {told}"
    assert listed(run_llmb, "odd")[0]["error"] == told
    assert run_llmb("validate", spec.usual().file).returncode == 0


@pytest.mark.parametrize(
    "requires",
    [
        (),
        ("llmb",),
        ("LLMB >= 0.1",),
        ("llmb>=0.1,<99",),
        ('llmb>=99; python_version < "3"',),
        ('llmb>=99; extra == "future"',),
        ("llmb-odd-helper>=99",),
        ("not a requirement",),
    ],
)
def test_a_plugin_that_asks_for_nothing_newer_is_taken(
    site: Any, run_llmb: Any, odd_spec: Path, requires: tuple[str, ...]
) -> None:
    framework(site, WORKING, requires=requires)
    done = run_llmb("validate", odd_spec)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("hook", "body", "told"),
    [
        ("build_job(self, run)", "pass", "build_job() returned nothing"),
        ("build_job(self, run)", "return 'x'", "build_job() returned str, where Job is due"),
        ("prepare_env(self)", "return {}", "prepare_env() returned dict, where Environment is due"),
        ("prepare_dataset(self)", "return ()", "prepare_dataset() returned tuple, where Dataset | None is due"),
    ],
)
def test_an_answer_of_another_type_is_one_line(
    site: Any, run_llmb: Any, odd_spec: Path, hook: str, body: str, told: str
) -> None:
    code = WORKING.replace(BUILD_JOB, "") if hook.startswith("build_job") else WORKING
    framework(site, f"{code}\n    @hookimpl\n    def {hook}:\n        {body}\n")
    assert one_line(run_llmb("validate", odd_spec)) == f"llmb: llmb-odd 1.2.3: {told}"


@pytest.mark.parametrize("error", ["ValueError('deep inside')", "NotImplementedError('deep inside')"])
def test_a_hook_that_raises_keeps_its_traceback_and_names_the_distribution(
    site: Any, run_llmb: Any, spec: Any, odd_spec: Path, error: str
) -> None:
    framework(site, WORKING.replace("return Job(", f"raise {error}\n        Job("))
    done = run_llmb.process("validate", odd_spec)
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert "llmb_odd/plugin.py" in done.stderr
    assert done.stderr.endswith("deep inside\nin build_job() of llmb-odd 1.2.3\n")
    assert run_llmb("validate", spec.usual().file).returncode == 0


@pytest.mark.parametrize("hook", ["build_job", "prepare_env"])
def test_what_a_hook_refuses_is_told_with_file_and_key_as_written(
    site: Any, run_llmb: Any, tmp_path: Path, hook: str
) -> None:
    refuse = f"""
    @hookimpl
    def {hook}(self, run):
        raise SpecError(Fault(message="is odd", key="workload.gpus", expected="even"), "and besides")
"""
    framework(site, WORKING.replace(BUILD_JOB, BUILD_JOB if hook != "build_job" else "") + refuse)
    file = write(tmp_path / "sweep.toml", recipe="odd/tiny", gpu_type="h100", dtype="bf16", gpus=[1, 2])
    done = run_llmb("validate", file)
    assert (done.returncode, done.stderr.splitlines()) == (
        2,
        [
            f"llmb: {file}: workload.gpus[0]: is odd; expected even",
            f"llmb: {file}: and besides",
            f"llmb: {file}: workload.gpus[1]: is odd; expected even",
        ],
    )
    fault = run_llmb.json("run", file, "--dry-run", "--set", "workload.gpus=2", status=2)["errors"][0]
    assert (fault["file"], fault["key"]) == ("--set", "workload.gpus")


def test_only_what_a_run_names_is_imported(site: Any, run_llmb: Any, spec: Any, odd_spec: Path) -> None:
    mark = "import pathlib\npathlib.Path(__file__).with_suffix('.imported').touch()\n"
    framework(site, mark + WORKING)
    framework(site, mark + WORKING, name="unused", distribution="llmb-unused")
    site.install(
        "llmb-elsewhere",
        files={"llmb_elsewhere.py": mark},
        entry_points={"llmb.schedulers": {"elsewhere": "llmb_elsewhere:Plugin"}},
    )
    for command in (["--help"], ["runs"], ["validate", spec.usual().file]):
        assert run_llmb.process(*command).returncode == 0
        assert list(site.folder.rglob("*.imported")) == []
    assert run_llmb.process("validate", odd_spec).returncode == 0
    assert [path.parent.name for path in site.folder.rglob("*.imported")] == ["llmb_odd"]


def refusals(run_llmb: Any, folder: Path, **framework: Any) -> list[str]:
    """What ``llmb validate`` says of a spec with this [framework] table."""
    workload = {"recipe": "odd/tiny", "gpu_type": "h100", "dtype": "bf16", "gpus": 1}
    file = folder / "options.toml"
    file.write_text(tomli_w.dumps({"workload": workload, "framework": framework, "target": {"scheduler": "local"}}))
    return [line.removeprefix(f"llmb: {file}: ") for line in run_llmb("validate", file).stderr.splitlines()]


def test_options_with_validators_and_without_defaults_are_checked(site: Any, run_llmb: Any, tmp_path: Path) -> None:
    options = "word: str = attrs.field(validator=attrs.validators.in_(['a', 'b']))\n    sizes: list[int] = [1]"
    framework(site, WORKING.replace('word: str = "x"', options))
    told = partial(refusals, run_llmb, tmp_path)
    assert told(word="a", sizes=[1, 2]) == []
    assert told(wrod="a") == [
        "framework.word: is missing; expected a string",
        "framework.wrod: is not a key here; expected one of word, sizes (did you mean 'word'?)",
    ]
    assert told(word="a", sizes=[1, "2"]) == ['framework.sizes[1]: is "2"; expected a whole number']
    assert told(word="a", sizes="12") == ['framework.sizes: is "12"; expected a list, each a whole number']
    assert told(word="c") == ["framework.word: 'word' must be in ['a', 'b'] (got 'c')"]


VALIDATED = """
def _host(instance, field, value):
    if " " in value:
        raise SpecError(Fault(message=f"is {shown(value)}", expected="a host"))

def _sizes(instance, field, value):
    raise SpecError(*(Fault(message="is odd", key=name) for name, size in value.items() if size % 2))

@attrs.frozen
class Inner:
    host: str = attrs.field(default="", validator=_host)

@attrs.frozen
class Options:
    host: str = attrs.field(default="", validator=_host)
    sizes: dict[str, int] = attrs.field(factory=dict, validator=_sizes)
    inner: Inner = Inner()
    deep: list[Inner] = []
"""


def test_what_validators_refuse_is_told_all_at_once_each_with_its_key(site: Any, run_llmb: Any, tmp_path: Path) -> None:
    code = WORKING.replace("Phase, ", "Phase, shown, ").partition("@attrs.frozen")
    framework(site, code[0] + VALIDATED + code[2].partition('word: str = "x"')[2])
    options = {"inner": {"host": "c d"}, "deep": [{}, {"host": "e\nf "}]}
    assert refusals(run_llmb, tmp_path, **options) == [
        'framework.inner.host: is "c d"; expected a host',
        'framework.deep[1].host: is "e\\nf "; expected a host',
    ]
    assert refusals(run_llmb, tmp_path, host="a b", sizes={"p": 1, "q": 2, "r": 3}) == [
        'framework.host: is "a b"; expected a host',
        "framework.sizes.p: is odd",
        "framework.sizes.r: is odd",
    ]
    assert refusals(run_llmb, tmp_path, host="a b", sizes="p", inner={"host": "c d"}, more=1) == [
        'framework.sizes: is "p"; expected a table, each value a whole number',
        'framework.inner.host: is "c d"; expected a host',
        "framework.more: is not a key here; expected one of host, sizes, inner, deep",
        'framework.host: is "a b"; expected a host',
    ]


@pytest.mark.parametrize(
    "metadata", [{"METADATA": "\n"}, {"entry_points.txt": "not = a section\n"}, {"METADATA": "Name: \n"}]
)
def test_a_distribution_whose_metadata_is_broken_hurts_no_run(
    site: Any, run_llmb: Any, spec: Any, metadata: dict[str, str]
) -> None:
    framework(site, WORKING)
    [info] = site.folder.glob("*.dist-info")
    for name, text in metadata.items():
        (info / name).write_text(text)
    done = run_llmb("validate", spec.usual().file)
    assert (done.returncode, done.stderr) == (0, "")


def test_an_extension_adds_an_accelerator_that_a_spec_can_use(site: Any, run_llmb: Any, tmp_path: Path) -> None:
    framework(site, WORKING)
    file = write(tmp_path / "npu.toml", recipe="odd/tiny", gpu_type="npu9", dtype="bf16")
    assert 'workload.gpu_type: is "npu9"; expected one of a100' in one_line(run_llmb("validate", file))
    site.extension(
        "from llmb import Accelerator, hookimpl\nclass Plugin:\n    @hookimpl\n    def accelerators(self):\n"
        "        return [Accelerator(name='npu9', gpus_per_node=4, dtypes=('bf16',), peak_flops={'bf16': 1e15})]\n",
    )
    [run] = run_llmb.json("run", file, "--dry-run")["runs"]
    assert run["gpu_type"] == "npu9"
    assert listed(run_llmb, "extra") == [
        {
            "name": "extra",
            "kind": "extension",
            "distribution": "llmb-extra",
            "version": "1.2.3",
            "hooks": ["accelerators"],
            "error": None,
        }
    ]


def test_recipes_lie_beside_the_module_of_each_framework_and_nothing_is_imported_to_find_them(
    site: Any, run_llmb: Any
) -> None:
    modules = {"one": "acme.one", "two": "acme.two.plugin"}
    files = {f"acme/{name}": "1 / 0" for name in ("__init__.py", "one/__init__.py", "two/__init__.py")}
    recipes = {f"acme/{name}/recipes/{name}-tiny.toml": RECIPE for name in modules}
    site.install(
        "acme",
        files={**files, **recipes, "acme/two/plugin.py": "", "acme/recipes/other.toml": RECIPE},
        entry_points={"llmb.frameworks": {name: f"{module}:Plugin" for name, module in modules.items()}},
    )
    listed = [recipe["address"] for recipe in run_llmb.json("recipes")["recipes"]]
    assert [each for each in listed if each.startswith(("one/", "two/"))] == ["one/one-tiny", "two/two-tiny"]


def test_metrics_ask_the_framework_for_a_peak_that_nobody_else_knows(site: Any, run_llmb: Any) -> None:
    framework(site, f"{WORKING}\n    @hookimpl\n    def peak_flops(self, gpu_type, dtype): return 1e15\n")
    asked = ("--dtype", "bf16", "--gpus", "1", "--step-time", "1")
    assert run_llmb.json("metrics", "odd/tiny", "--gpu-type", "npu9", *asked)["peak_flops"] == 1e15
    assert run_llmb.json("metrics", "odd/tiny", "--gpu-type", "h100", *asked)["peak_flops"] == 989e12


def test_a_date_is_no_option_of_a_framework(site: Any, run_llmb: Any, tmp_path: Path) -> None:
    framework(site, "import typing\n" + WORKING.replace('word: str = "x"', "more: dict[str, typing.Any] = {}"))
    told = partial(refusals, run_llmb, tmp_path)
    assert told(more={"a": [1, "x", {"b": 2.5}], "c": {"d": True}}) == []
    expected = "expected a string, a number, true or false, a list or a table"
    assert told(more={"a": [1, {"b": date(2024, 5, 1)}], "c": {"d": time(12, 30)}}) == [
        f"framework.more.a[1].b: is 2024-05-01; {expected}",
        f"framework.more.c.d: is 12:30:00; {expected}",
    ]


def test_a_gpu_with_less_memory_than_the_recipe_needs_is_refused(site: Any, run_llmb: Any, odd_spec: Path) -> None:
    framework(site, WORKING)
    recipe = site.folder / "llmb_odd" / "recipes" / "tiny.toml"
    recipe.write_text(f"memory_gb = 141\n{RECIPE}")
    assert one_line(run_llmb("validate", odd_spec)) == (
        f"llmb: {odd_spec}: workload.gpu_type: h100 has 80 GB of memory; expected at least 141 GB for odd/tiny"
    )


def test_a_recipe_with_a_fault_names_its_own_file_and_hurts_no_other_run(
    site: Any, run_llmb: Any, spec: Any, odd_spec: Path
) -> None:
    framework(site, WORKING)
    recipe = site.folder / "llmb_odd" / "recipes" / "tiny.toml"
    recipe.write_text(RECIPE.replace("steps = 5", "stebs = 5"))
    told = run_llmb("validate", odd_spec).stderr.splitlines()
    assert [line.partition("; ")[0] for line in told] == [
        f"llmb: {recipe}: stebs: is not a key here",
        f"llmb: {recipe}: steps: is missing",
    ]
    assert run_llmb("validate", spec.usual().file).returncode == 0


def test_plugins_lists_those_that_work_and_those_that_do_not(site: Any, run_llmb: Any) -> None:
    framework(site, "1 / 0")
    document = run_llmb.json("plugins")
    assert document.keys() == {"plugins"}
    plugins = {plugin["name"]: plugin for plugin in document["plugins"]}
    assert all(
        plugin.keys() == {"name", "kind", "distribution", "version", "hooks", "error"} for plugin in plugins.values()
    )
    assert plugins["maxtext"]["error"] is None
    assert set(plugins["local"]["hooks"]) >= {"build_job", "submit", "poll", "cancel"}
    assert plugins["odd"]["hooks"] == []
    done = run_llmb("plugins")
    assert done.returncode == 0
    assert "llmb-odd 1.2.3 is broken" in done.stdout
