"""Installed plugins: found by their metadata, chosen by name, checked against the hooks, imported only if used."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import llmb
from llmb.doctor_checks.this_machine import check_this_machine
from llmb.plugins.find_plugins import choose_entry

OneLine = Callable[[Any], str]


def listed(run_llmb: Any, name: str) -> list[dict[str, Any]]:
    return [plugin for plugin in run_llmb.json("plugins")["plugins"] if plugin["name"] == name]


def hook(signature: str) -> str:
    return f"@hookimpl\ndef {signature}: pass"


@pytest.mark.parametrize(
    ("members", "problem"),
    [
        (hook("build_job(self, runn)"), "build_job() requires runn, but the hook passes run"),
        (hook("build_job(self, run, target)"), "build_job() requires target, but the hook passes run"),
        (hook("build_job(self, run=0, /)"), "build_job() takes run by position only, but hooks are called by keyword"),
        (hook("bild_job(self)"), "bild_job() is not a hook of frameworks (did you mean 'build_job'?)"),
        (hook("submit(self)"), "submit() is not a hook of frameworks"),
        ("build_job = FrameworkHooks.build_job", "build_job() is missing"),
        ("def build_job(self, run): pass", "build_job() is not marked with @hookimpl"),
        ("def prepare_env(self): return Environment()", "prepare_env() is not marked with @hookimpl"),
        (
            hook("build_job(self, ran)") + "\noptions = 3",
            "build_job() requires ran, but the hook passes run; options is 3, not an attrs class",
        ),
    ],
)
def test_a_plugin_that_does_not_match_its_hooks_is_one_line(
    plugins: Any, run_llmb: Any, one_line: OneLine, members: str, problem: str
) -> None:
    plugins.install("framework", members)
    file = plugins.spec()
    error = f"framework plugin 'odd' (llmb-odd 1.2.3): does not match the hooks of llmb {llmb.VERSION}: {problem}"
    assert one_line(run_llmb("validate", file)) == f"{file}: workload.recipe: {error}"
    assert listed(run_llmb, "odd")[0]["error"] == error


def test_a_plugin_need_not_inherit_from_the_hooks(plugins: Any, run_llmb: Any) -> None:
    plugins.install("framework", after="class Plugin(*[each for each in Plugin.__bases__ if 0]):\n    " + (
        "options, parse_log, build_job = Options, Plugin.parse_log, Plugin.build_job"
    ))  # fmt: skip
    assert run_llmb("validate", plugins.spec()).returncode == 0


def test_a_hook_may_leave_out_arguments_and_have_others_with_a_default(plugins: Any, run_llmb: Any) -> None:
    plugins.install("framework", "@hookimpl\ndef prepare_env(self, mine=3): return Environment()")
    assert run_llmb("validate", plugins.spec()).returncode == 0
    assert listed(run_llmb, "odd")[0]["hooks"] == ["build_job", "parse_log", "prepare_env"]


def test_a_hook_may_take_arguments_by_keyword_only_or_with_a_default(plugins: Any, run_llmb: Any) -> None:
    check = "    assert run.framework == 'odd'\n    return Environment()"
    for signature in ("*, run", "run=None", "*, run=None"):
        plugins.install("framework", f"@hookimpl\ndef prepare_env(self, {signature}):\n{check}")
        done = run_llmb("validate", plugins.spec())
        assert (done.returncode, done.stderr) == (0, ""), signature


def test_two_distributions_with_one_name_are_both_named(plugins: Any, run_llmb: Any, spec: Any, one_line: Any) -> None:
    plugins.install("framework")
    plugins.install("framework", distribution="odd-two", version="4.5")
    error = "framework plugin 'odd' is provided by llmb-odd 1.2.3 and odd-two 4.5; uninstall all except one"
    file = plugins.spec()
    assert one_line(run_llmb("validate", file)) == f"{file}: workload.recipe: {error}"
    assert [plugin["error"] for plugin in listed(run_llmb, "odd")] == [error, error]
    assert run_llmb("validate", spec.usual().file).returncode == 0


def test_plugins_of_two_kinds_may_have_one_name(plugins: Any, run_llmb: Any, spec: Any) -> None:
    plugins.install("framework", name="local", distribution="llmb-odd")
    assert run_llmb("validate", spec.usual().file).returncode == 0


def test_a_distribution_that_is_on_the_path_twice_is_no_duplicate(plugins: Any, run_llmb: Any, tmp_path: Path) -> None:
    plugins.install("framework", version="2.0")
    older = type(plugins)(type(plugins.site)(tmp_path / "older"), tmp_path)
    older.install("framework", after="1 / 0", version="1.0")
    run_llmb.path.append(str(older.site.folder))
    done = run_llmb("validate", plugins.spec())
    assert (done.returncode, done.stderr) == (0, "")


def test_the_error_of_a_missing_plugin_lists_the_installed_ones(run_llmb: Any, plugins: Any, one_line: OneLine) -> None:
    installed = {
        kind: ", ".join(each.name for each in llmb.list_plugins() if each.kind == kind)
        for kind in ("framework", "scheduler")
    }
    file = plugins.spec(framework="acme_trainer")
    assert one_line(run_llmb("validate", file)) == (
        f"{file}: workload.recipe: framework plugin 'acme_trainer' is not installed; "
        f"expected one of {installed['framework']}"
    )
    plugins.install("framework")
    assert one_line(run_llmb("validate", plugins.spec(scheduler="locl"))).endswith(
        f"scheduler plugin 'locl' is not installed; expected one of {installed['scheduler']} (did you mean 'local'?)"
    )


def test_a_misspelt_group_of_entry_points_is_named(run_llmb: Any, plugins: Any, one_line: OneLine) -> None:
    plugins.site.install("llmb-acme", files={}, entry_points={"llmb.framework": {"acme": "llmb_acme:Acme"}})
    assert one_line(run_llmb("parse", "a.log", "--framework", "acme")) == (
        "framework plugin 'acme' is not installed: llmb-acme has it in the entry-point group 'llmb.framework'; "
        "expected llmb.frameworks"
    )


def test_a_framework_without_recipes_shows_where_they_are_searched(
    run_llmb: Any, plugins: Any, one_line: OneLine
) -> None:
    """The recipes may be missing in the wheel."""
    points = {"llmb.frameworks": {"acme": "llmb_acme:Acme"}}
    plugins.site.install("llmb-acme", files={"llmb_acme/__init__.py": ""}, entry_points=points)
    assert one_line(run_llmb("recipes", "acme/small")) == (
        "framework plugin 'acme' (llmb-acme 1.2.3) has no recipes; expected files NAME.toml in "
        f"{plugins.site.folder / 'llmb_acme' / 'recipes'}, or in recipes/acme of a pack"
    )


def test_a_distribution_with_unreadable_metadata_and_a_misspelt_group_affects_no_command(
    run_llmb: Any, plugins: Any, one_line: OneLine
) -> None:
    plugins.site.install("llmb-acme", files={}, entry_points={"llmb.framework": {"acme": "llmb_acme:Acme"}})
    [metadata] = plugins.site.folder.glob("llmb_acme-*/METADATA")
    metadata.write_bytes(b"Name: caf\xe9\n")
    assert run_llmb("plugins").returncode == 0
    assert "framework plugin 'acme' is not installed" in one_line(run_llmb("parse", "a.log", "--framework", "acme"))
    metadata.write_text("")  # neither a name nor a version
    assert json.loads(run_llmb("plugins", "--json").stdout)["plugins"]
    assert "None" not in one_line(run_llmb("parse", "a.log", "--framework", "acme"))


@pytest.mark.parametrize("kind", ["framework", "scheduler", "extension", "pack"])
def test_plugins_and_doctor_list_an_entry_point_in_a_misspelt_group(run_llmb: Any, plugins: Any, kind: str) -> None:
    """No run uses the data of an extension or a pack by its name, so nothing else would report it."""
    plugins.site.install("llmb-acme", files={}, entry_points={f"llmb.{kind}": {"acme": "llmb_acme:Acme"}})
    error = f"llmb-acme has the entry-point group 'llmb.{kind}'; expected llmb.{kind}s"
    [found] = [each for each in json.loads(run_llmb("plugins", "--json").stdout)["plugins"] if each["name"] == "acme"]
    assert (found["kind"], found["distribution"], found["error"]) == (kind, "llmb-acme", error)
    assert error in run_llmb("doctor").stdout


@pytest.mark.parametrize(
    ("kind", "name"), [("framework", "megatron_bridge"), ("scheduler", "slurm"), ("scheduler", "maxtext")]
)
def test_the_error_of_a_missing_plugin_of_this_project_names_its_package(kind: str, name: str) -> None:
    package = f"the package llmb-{name.replace('_', '-')} contains a plugin of this name"
    with pytest.raises(llmb.PluginError) as raised:
        choose_entry(kind, name, [])
    assert str(raised.value) == f"{kind} plugin '{name}' is not installed; {package}"


def test_without_plugins_doctor_names_their_packages() -> None:
    registry: Any = SimpleNamespace(plugins=list)
    [check] = [each for each in check_this_machine(registry) if each.name == "plugins"]
    assert (check.ok, check.detail) == (False, "none is installed")
    assert ": llmb-local, llmb-maxtext, " in check.remedy


def test_a_plugin_of_the_other_kind_is_reported_as_such(run_llmb: Any, spec: Any, one_line: OneLine) -> None:
    line = one_line(run_llmb("parse", "x.log", "--framework", "slurm"))
    assert line.startswith("'slurm' is a scheduler, not a framework; expected one of ")
    line = one_line(run_llmb("validate", spec.usual().file, "--set", "target.scheduler=maxtext"))
    assert ": 'maxtext' is a framework, not a scheduler; expected one of " in line


def test_a_plugin_for_a_newer_llmb_is_one_line_and_is_not_imported(
    plugins: Any, run_llmb: Any, one_line: OneLine
) -> None:
    plugins.install("framework", after="1 / 0", requires=("attrs", "llmb>=99"))
    error = (
        f"framework plugin 'odd' (llmb-odd 1.2.3): requires llmb >=99, but this is llmb {llmb.VERSION}; "
        "upgrade with `pip install --upgrade llmb llmb-odd`"
    )
    file = plugins.spec()
    assert one_line(run_llmb("validate", file)) == f"{file}: workload.recipe: {error}"
    assert listed(run_llmb, "odd")[0]["error"] == error


@pytest.mark.parametrize(
    "requires",
    [
        (),
        ("llmb",),
        ("LLMB >= 0.1",),
        ("llmb>=0.1,<99",),
        ('llmb>=99; python_version < "3"',),
        ('llmb>=99; extra == "future"',),
        ('llmb>=99; python_version ~= "three"',),
        ("llmb-odd-helper>=99",),
        ("not a requirement",),
    ],
)
def test_a_plugin_without_an_unmet_requirement_is_accepted(
    plugins: Any, run_llmb: Any, requires: tuple[str, ...]
) -> None:
    plugins.install("framework", requires=requires)
    done = run_llmb("validate", plugins.spec())
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", ["build_job", "prepare_env"])
def test_what_a_hook_rejects_is_reported_with_file_and_key(plugins: Any, run_llmb: Any, name: str) -> None:
    body = "raise SpecError(Fault(message=f'{run.gpus} is odd', key='workload.gpus', expected='even'), 'and more')"
    plugins.install("framework", f"@hookimpl\ndef {name}(self, run):\n    {body}")
    file = plugins.spec(workload={"gpus": [1, 2]})
    done = run_llmb("validate", file)
    assert (done.returncode, done.stderr.splitlines()) == (
        2,
        [
            f"llmb: {file}: workload.gpus[0]: 1 is odd; expected even",
            f"llmb: {file}: and more",
            f"llmb: {file}: workload.gpus[1]: 2 is odd; expected even",
        ],
    )
    fault = run_llmb.json("run", file, "--dry-run", "--set", "workload.gpus=2", status=2)["errors"][0]
    assert (fault["file"], fault["key"]) == ("--set", "workload.gpus")


def test_only_the_plugins_of_a_run_are_imported(plugins: Any, run_llmb: Any, spec: Any) -> None:
    mark = "import pathlib\npathlib.Path(__file__).with_suffix('.imported').touch()"
    plugins.install("framework", before=mark)
    plugins.install("framework", before=mark, name="unused")
    plugins.install("scheduler", before=mark, name="elsewhere")
    folder = plugins.site.folder
    for command in (["--help"], ["runs"], ["validate", spec.usual().file]):
        assert run_llmb.process(*command).returncode == 0
        assert list(folder.rglob("*.imported")) == []
    assert run_llmb.process("validate", plugins.spec()).returncode == 0
    assert [path.parent.name for path in folder.rglob("*.imported")] == ["llmb_odd"]


@pytest.mark.parametrize(
    "metadata", [{"METADATA": "\n"}, {"entry_points.txt": "not = a section\n"}, {"METADATA": "Name: \n"}]
)
def test_a_distribution_whose_metadata_is_broken_breaks_no_run(
    plugins: Any, run_llmb: Any, spec: Any, metadata: dict[str, str]
) -> None:
    plugins.install("framework")
    [info] = plugins.site.folder.glob("*.dist-info")
    for name, text in metadata.items():
        (info / name).write_text(text)
    done = run_llmb("validate", spec.usual().file)
    assert (done.returncode, done.stderr) == (0, "")


def test_recipes_are_found_beside_the_module_of_each_framework_without_an_import(
    site: Any, plugins: Any, run_llmb: Any
) -> None:
    plugins.install("framework")
    recipe = (site.folder / "llmb_odd/recipes/tiny.toml").read_text()
    modules = {"one": "acme.one", "two": "acme.two.plugin"}
    files = {f"acme/{name}": "1 / 0" for name in ("__init__.py", "one/__init__.py", "two/__init__.py")}
    recipes = {f"acme/{name}/recipes/{name}-tiny.toml": recipe for name in modules}
    site.install(
        "acme",
        files={**files, **recipes, "acme/two/plugin.py": "", "acme/recipes/other.toml": recipe},
        entry_points={"llmb.frameworks": {name: f"{module}:Plugin" for name, module in modules.items()}},
    )
    addresses = [recipe["address"] for recipe in run_llmb.json("recipes")["recipes"]]
    assert [each for each in addresses if each.startswith(("one/", "two/"))] == ["one/one-tiny", "two/two-tiny"]


def test_a_broken_recipe_is_named_and_the_others_are_listed(plugins: Any, run_llmb: Any, spec: Any) -> None:
    plugins.install("framework", recipe="steps = 5\nstebs = 5\n")
    plugins.install("framework", name="twice")
    plugins.install("framework", name="twice", distribution="llmb-other")
    done = run_llmb("recipes", "--json")
    assert done.returncode == 0
    assert "maxtext/llama2-tiny" in done.stdout
    assert "odd/tiny" not in done.stdout
    lines = done.stderr.splitlines()
    assert all(line.startswith("llmb: left out: ") for line in lines)
    assert sum("llmb_odd/recipes/tiny.toml: stebs: " in line for line in lines) == 1
    assert sum("framework plugin 'twice' is provided by" in line for line in lines) == 1
    done = run_llmb("validate", plugins.spec())
    assert (done.returncode, "llmb_odd/recipes/tiny.toml: stebs: " in done.stderr) == (2, True)
    assert run_llmb("validate", spec.usual().file).stderr == ""


def test_recipes_beside_a_module_below_the_package_have_names(plugins: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    files = dict.fromkeys(("__init__.py", "trainer/__init__.py", "trainer/plugin.py", "trainer/recipes/tiny.toml"), "")
    plugins.site.install(
        "llmb-odd",
        files={f"llmb_odd/{name}": text for name, text in files.items()},
        entry_points={"llmb.frameworks": {"odd": "llmb_odd.trainer.plugin:Plugin"}},
    )
    monkeypatch.syspath_prepend(plugins.site.folder)
    assert "odd/tiny" in llmb.recipe_addresses()
    assert "odd/tiny" in llmb.recipe_names()


def test_metrics_use_the_peak_of_the_framework_if_no_table_has_one(plugins: Any, run_llmb: Any) -> None:
    plugins.install("framework", "@hookimpl\ndef peak_flops(self, gpu_type, dtype): return 1e15")
    point = ("--dtype", "bf16", "--gpus", "1", "--step-time", "1")
    assert run_llmb.json("metrics", "odd/tiny", "--gpu-type", "npu9", *point)["peak_flops"] == 1e15
    assert run_llmb.json("metrics", "odd/tiny", "--gpu-type", "h100", *point)["peak_flops"] == 989e12


@pytest.mark.parametrize(
    ("peak", "problem"),
    [
        ("600", "600 FLOP/s is out of range; write 600e12 for 600 TFLOP/s"),
        ("-1.0", "-1 FLOP/s is out of range; the range is 1e+06 to 1e+18"),
    ],
)
def test_a_peak_in_another_unit_is_an_error_of_the_plugin(plugins: Any, run_llmb: Any, peak: str, problem: str) -> None:
    plugins.install("framework", f"@hookimpl\ndef peak_flops(self, gpu_type, dtype): return {peak}")
    point = ("--dtype", "bf16", "--gpus", "1", "--step-time", "1")
    done = run_llmb("metrics", "odd/tiny", "--gpu-type", "npu9", *point)
    assert done.returncode == 2
    assert "framework plugin 'odd'" in done.stderr
    assert f"peak_flops() returned {problem}" in done.stderr


def test_a_gpu_with_less_memory_than_the_recipe_needs_is_rejected(
    plugins: Any, run_llmb: Any, one_line: OneLine
) -> None:
    plugins.install("framework")
    recipe = plugins.site.folder / "llmb_odd/recipes/tiny.toml"
    recipe.write_text(f"memory_gb = 141\n{recipe.read_text()}")
    line = one_line(run_llmb("validate", plugins.spec()))
    assert "workload.gpu_type: h100 has 80 GB" in line
    assert "odd/tiny needs 141 GB; expected a GPU with at least 141 GB" in line


def test_the_list_of_plugins_has_the_hooks_or_the_error_of_each(plugins: Any, run_llmb: Any) -> None:
    plugins.install("framework", after="1 / 0")
    document = run_llmb.json("plugins")
    assert document.keys() == {"plugins"}
    by_name = {plugin["name"]: plugin for plugin in document["plugins"]}
    assert all(
        plugin.keys() == {"name", "kind", "distribution", "version", "hooks", "error"} for plugin in by_name.values()
    )
    assert by_name["maxtext"]["error"] is None
    assert set(by_name["local"]["hooks"]) >= {"build_job", "submit", "poll", "cancel"}
    assert by_name["odd"]["hooks"] == []
    done = run_llmb("plugins")
    assert done.returncode == 0
    assert "import of llmb_odd:Plugin failed" in done.stdout
