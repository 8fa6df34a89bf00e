"""Differences between the configurations of two groups of recorded runs, ranked by kind."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from llmb.judging.host_ranges import fold_hosts
from llmb.spec.spec_tables import flat

NOT_SET = "not set"

KINDS = {
    "image": r"image|image_(?:digest|sha256|modified)|release|workload\.image",
    "parallelism": r"parallelism\..*|workload\.gpus|target\.gpus_per_node",
    "model": r"model\..*|workload\.(dtype|gpu_type|recipe|variant|steps)|measure\.window",
    "arguments": r"framework\..*|profile\..*",
    "environment": r"env\..*|mounts\..*",
    "system": r"(?!hosts|llmb|plugins\.).*",
    "hosts": r"hosts",
    "llmb": r"llmb|plugins\..*",
}
"""Kinds of differences, the most likely cause of a change first, with the keys of each kind.

Versions of drivers, libraries and schedulers are "system", like all keys that no other kind has.
"""

GENERATED = re.compile(
    r"""env\.(?:LLMB_|PMI|PRTE|OMPI_|CONTAINER_ID|MASTER_|(?:LOCAL_|NODE_)?RANK$|(?:LOCAL_)?WORLD_SIZE$|HOSTNAME$
        |PATH$|HOME$|PWD$|OLDPWD$|TMPDIR$|SHLVL$|_$|SSH_|LD_LIBRARY_PATH$|XDG_|JOURNAL_STREAM$|INVOCATION_ID$|DBUS_
        |TERM|COLORTERM$|COLUMNS$|LINES$|LS_COLORS$|TMUX|STY$|WINDOW$|WINDOWID$|DISPLAY$|WAYLAND_|VSCODE_|GPG_TTY$|PS1$)
    |provenance\.|target\.(?:workdir|lock|name|host|shared|max_jobs|account)|workload\.(?:time_limit|repeats)|telemetry\.""",
    re.VERBOSE,
)
"""Keys that llmb, a scheduler, the shell or the terminal generates, and that cannot explain a change."""

NOT_COMPARED = (
    *("run_id", "repeat", "repeats", "first_repeat", "created", "sweep", "job_id", "proxy", "host", "imported", "logs"),
    "steps_asked",
)
"""Keys of [provenance] that identify a run."""


@attrs.frozen(kw_only=True)
class Difference:
    """One key whose values differ between A and B, and the number of points at which it does."""

    kind: str
    key: str
    a: str
    b: str
    points: int


def find_differences(
    points: Iterable[tuple[Sequence[Mapping[str, Any]], Sequence[Mapping[str, Any]]]],
) -> list[Difference]:
    """Return the differences between the specs of both sides at each point, ranked by kind and number of points."""
    counts: Counter[tuple[str, str, str]] = Counter()
    for a, b in points:
        provenances = [spec.get("provenance", {}) for spec in (*a, *b)]
        with_env = all(provenance.get("env") for provenance in provenances)
        with_job = not any("imported" in provenance for provenance in provenances)
        in_a, in_b = (_values(specs, with_env=with_env, with_job=with_job) for specs in (a, b))
        for key in in_a | in_b:
            before, after = in_a.get(key, NOT_SET), in_b.get(key, NOT_SET)
            if before != after:
                counts[key, before, after] += 1
    found = [
        Difference(kind=kind_of_key(key), key=key, a=a, b=b, points=count) for (key, a, b), count in counts.items()
    ]
    order = list(KINDS)
    return sorted(found, key=lambda each: (order.index(each.kind), -each.points, each.key))


def describe_settings(spec: Mapping[str, Any], *, with_env: bool = True, with_job: bool = True) -> dict[str, str]:
    """Return the settings of a run that may explain its speed, by dotted keys.

    ``with_env`` adds the environment that the job reported, which is useless if other runs did not report one.
    ``with_job`` adds the target and everything else that only a run has that llmb started.
    """
    provenance = dict(spec.get("provenance", {})) if with_job else {}
    hosts = provenance.get("host", ())
    left_out = ("provenance",) if with_job else ("provenance", "target")
    settings = {key: value for key, value in spec.items() if key not in left_out}
    settings |= {key: value for key, value in provenance.items() if key not in (*NOT_COMPARED, "env", "image")}
    settings["env"] = (dict(provenance.get("env", {})) if with_env else {}) | dict(spec.get("env", {}))
    found = {key: _text(value) for key, value in flat(settings) if not GENERATED.match(key)}
    if hosts:
        found["hosts"] = fold_hosts([hosts] if isinstance(hosts, str) else hosts)
    return found


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _values(specs: Sequence[Mapping[str, Any]], *, with_env: bool, with_job: bool) -> dict[str, str]:
    """Return the value of each key on one side; different values of its runs are joined."""
    runs = [describe_settings(spec, with_env=with_env, with_job=with_job) for spec in specs]
    keys = dict.fromkeys(key for run in runs for key in run)
    return {key: ", ".join(sorted({run.get(key, NOT_SET) for run in runs})) for key in keys}


def kind_of_key(key: str) -> str:
    """Return the kind of a setting, one of KINDS."""
    return next(kind for kind, pattern in KINDS.items() if re.fullmatch(pattern, key))
