"""Compare the recipes of the newest release with what NVIDIA's launcher and Megatron-Bridge resolve, on a CPU.

``uv run --with pyyaml python resolve_release.py COLLECTION --bridge CLONE --megatron CLONE --python PYTHON [-o FILE]``
reads a checkout of NVIDIA/dgxc-benchmarking and clones of Megatron-Bridge and Megatron-LM. PYTHON has the CPU build of
PyTorch and the other requirements of Megatron-Bridge. docs/megatron-bridge-releases.md describes the preparation.
FILE contains the resolved arguments, variables and configurations, and none of NVIDIA's code.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from launcher import Published, published_points

import llmb
from llmb import load_recipe

HERE = Path(__file__).parent
OF_LAUNCHER = (
    "--container_image", "--custom_mounts", "--account", "--partition", "--log_dir", "--time_limit", "--hf_token",
)  # fmt: skip
"""Arguments for the launcher alone: paths, accounts, limits and the token of a site."""

OF_LLMB = ("NEMORUN_HOME", "HF_HOME", "PYTHONUNBUFFERED")
"""Variables of a job that are paths, or that NeMo-Run sets in another way."""

PATHS = ("checkpoint.load", "logger.save_config_filepath")
FOLDERS = {"--pretrained_checkpoint": "checkpoint.pretrained_checkpoint", "--dataset_root": "dataset.dataset_root"}
"""Arguments that are folders of a site, and their keys of the configuration."""

MANUAL_GC = ("train.manual_gc=true", "train.manual_gc_interval=100")
"""The overrides that the plugin of the launcher adds."""

Plan = tuple[tuple[str, ...], dict[str, str], int]
"""The arguments of the script, the variables of the job and its time limit in seconds."""


def named(words: Iterable[str]) -> dict[str, str]:
    """Return arguments and overrides with their values. A flag has the value ""."""
    result: dict[str, str] = {}
    name = ""
    for word in words:
        if word.startswith("-") or "=" in word:
            name, _, value = word.partition("=")
            result[name] = value
        else:
            result[name] = word
    return result


def own_points() -> dict[tuple[Any, ...], tuple[str, str | None]]:
    """Return the address and the variant of each point of the newest recipes, by what the launcher calls it."""
    found: dict[tuple[Any, ...], tuple[str, str | None]] = {}
    for address in llmb.recipe_addresses():
        if address.startswith("megatron_bridge/"):
            for point in load_recipe(address).points:
                names = named(point.settings["arguments"])
                key = (*_model(names), point.gpu_type, point.dtype, point.gpus, point.settings.get("compute_dtype"))
                found.setdefault(key, (address, point.variant))
    return found


def _model(names: Mapping[str, str]) -> tuple[str | None, str, str]:
    """Return the name of the model, the variant of its configuration (by default v2) and the kind of training."""
    return names.get("--model_recipe_name"), names.get("--config_variant", "v2"), names.get("--task", "pretrain")


def planned(point: Published, own: Mapping[tuple[Any, ...], tuple[str, str | None]]) -> Plan | None:
    """Return what llmb plans for a point, or None without such a recipe or point."""
    names = named(point.arguments)
    key = (*_model(names), point.gpu_type, point.dtype, point.gpus, names["--compute_dtype"])
    return _plan(*own[key], point) if key in own else None


def _plan(address: str, variant: str | None, point: Published) -> Plan:
    workload = {"recipe": address, "gpu_type": point.gpu_type, "dtype": point.dtype, "gpus": point.gpus}
    workload |= {"variant": variant} if variant else {}
    [plan] = llmb.plan(llmb.load({"workload": workload, "target": {"scheduler": "slurm", "workdir": "/w"}}))
    words = plan.job.phases[-1].command
    start = next(index for index, word in enumerate(words) if word.endswith("run_script.py"))
    env = {name: value for name, value in plan.job.env.items() if name not in OF_LLMB}
    return words[start + 1 :], env, plan.job.time_limit_s


def resolved(points: Mapping[str, list[tuple[str, ...]]], options: argparse.Namespace) -> dict[Any, Any]:
    """Return the configuration and variables by commit and arguments. Megatron-Bridge's own code resolves them."""
    results: dict[Any, Any] = {}
    for commit, lists in points.items():
        with tempfile.TemporaryDirectory() as folder:
            bridge, megatron = Path(folder, "bridge"), Path(folder, "megatron")
            _extract(options.bridge, commit, bridge, "src", "scripts/performance")
            entry = _git(options.bridge, "ls-tree", commit, "3rdparty/Megatron-LM").decode().split()
            _extract(options.megatron, entry[2], megatron, "megatron")
            command = [options.python, str(HERE / "resolve_config.py"), str(bridge), str(megatron)]
            done = subprocess.run(command, input=json.dumps(lists).encode(), stdout=subprocess.PIPE, check=True)
        results |= {(commit, words): each for words, each in zip(lists, json.loads(done.stdout), strict=True)}
    return results


def _git(clone: Path, *arguments: str) -> bytes:
    return subprocess.run(["git", "-C", str(clone), *arguments], check=True, capture_output=True).stdout


def _extract(clone: Path, commit: str, folder: Path, *parts: str) -> None:
    folder.mkdir()
    archive = _git(clone, "archive", commit, *parts)
    subprocess.run(["tar", "--extract", "--directory", str(folder)], input=archive, check=True)


def differences(part: str, theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> list[str]:
    """Return a line for each key whose values differ."""
    keys = sorted({**theirs, **ours})
    return [f"{part} {key}: published {theirs.get(key)!r}, llmb {ours.get(key)!r}"
            for key in keys if theirs.get(key) != ours.get(key)]  # fmt: skip


def compare(point: Published, plan: Plan, found: Mapping[Any, Any]) -> list[str]:
    """Return the differences of one point. Its arguments are those of the launcher without paths and accounts."""
    words, env, time_limit_s = plan
    theirs, ours = found[point.commit, point.arguments], found[point.commit, words]
    if errors := [each["error"] for each in (theirs, ours) if "error" in each]:
        return errors
    of_site = (*OF_LAUNCHER, *FOLDERS)
    published = {name: value for name, value in named(point.arguments).items() if name not in of_site}
    hours, minutes, seconds = map(int, named(point.arguments)["--time_limit"].split(":"))
    kept = {name: value for name, value in named(words).items() if name not in (*PATHS, *FOLDERS)}
    paths = {*PATHS, *FOLDERS.values()}
    configs = [{key: value for key, value in each["config"].items() if key not in paths} for each in (theirs, ours)]
    return [
        *differences("argument", {**published, **named(MANUAL_GC)}, kept),
        *differences("variable", {**theirs["env"], **point.env}, env),
        *differences("limit", {"time": hours * 3600 + minutes * 60 + seconds}, {"time": time_limit_s}),
        *differences("config", *configs),
    ]


def main() -> None:
    """Print the differences of every point, and the number of equal points of each workload."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("collection", type=Path)
    for name in ("--bridge", "--megatron"):
        parser.add_argument(name, type=Path, required=True)
    parser.add_argument("--python", required=True)
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        own = own_points()
        plans = {point: planned(point, own) for point in published_points(options.collection, Path(scratch))}
    lists: defaultdict[str, list[tuple[str, ...]]] = defaultdict(list)
    for point, plan in plans.items():
        lists[point.commit] += [(*point.arguments, *MANUAL_GC)] + ([plan[0]] if plan else [])
    found = resolved({commit: list(dict.fromkeys(each)) for commit, each in lists.items()}, options)
    found |= {(commit, words[: -len(MANUAL_GC)]): each for (commit, words), each in found.items()}
    if options.output:
        points = [_published_facts(point, found[point.commit, point.arguments]) for point in plans]
        options.output.write_text(json.dumps(points, indent=1) + "\n")
    _report(plans, found)


def _published_facts(point: Published, result: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the output contains for a point: its arguments, variables and configuration, or the error."""
    facts = {name: getattr(point, name) for name in ("workload", "gpu_type", "dtype", "gpus", "arguments")}
    return {**facts, **result, "env": {**result.get("env", {}), **point.env}}


def _report(plans: Mapping[Published, Plan | None], found: Mapping[Any, Any]) -> None:
    equal: defaultdict[str, list[bool]] = defaultdict(list)
    for point, plan in plans.items():
        lines = compare(point, plan, found) if plan else ["no recipe has this point"]
        equal[point.workload].append(not lines)
        for line in lines:
            print(f"{point.workload} {point.gpu_type} {point.dtype} {point.gpus}: {line}")
    for workload, results in equal.items():
        print(f"{workload}: {len(results)} points, {sum(results)} equal")
    sys.exit(0 if all(map(all, equal.values())) else 1)


if __name__ == "__main__":
    main()
