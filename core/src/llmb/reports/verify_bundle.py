"""Verification of a bundle without network: its files, its signature, and its metrics, computed again from its logs."""

from __future__ import annotations

import hashlib
import json
import math
import re
import subprocess
import tarfile
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import attrs

from llmb.analysis.metrics import Metrics
from llmb.analysis.verdict import Judgement
from llmb.drive.measure_and_judge import measure_and_judge
from llmb.judging.grade import Grader
from llmb.judging.save_grade import imported_logs
from llmb.logs.steps_csv import steps_csv
from llmb.planning import plan_run
from llmb.plugins.addresses import address_in
from llmb.plugins.find_peak_flops import known_peak_flops
from llmb.plugins.registry import PluginRegistry
from llmb.records.provenance import find_other_gpus
from llmb.records.record import RunRecord
from llmb.records.run_logs import RunLogs
from llmb.reports.bundle import MANIFEST, NAMESPACE, SIGNATURE, report_tables, write_files
from llmb.spec.choose_point import published_point
from llmb.spec.export import import_run
from llmb.values.errors import Fault, LlmbError, LogError, RecordError
from llmb.values.steps import Step
from llmb.version import VERSION

NEEDED = ("run.toml", "events.jsonl", "result.json", "steps.csv")
"""Files that each record of a run that ended has."""

MOST_BYTES = 4 << 30
"""The size of all files up to which a bundle is unpacked."""

PUBLIC_KEY = re.compile(r"(ssh|ecdsa|sk)-\S+ ")
"""The beginning of a public key. A line of an allowed signer begins with the principal."""


@attrs.frozen(kw_only=True)
class BundleCheck:
    """The result of a verification. ``mismatches`` is empty if everything agrees.

    ``signer`` is the principal of the allowed signers file who signed the bundle, "" if that was not checked.
    """

    run_ids: tuple[str, ...]
    files: int
    redacted: bool
    signed: bool
    signer: str
    mismatches: tuple[str, ...]


def verify_bundle(file: Path, *, allowed_signers: Path | None = None) -> BundleCheck:
    """Check the files of a bundle against its manifest and signature, and compute its metrics again from its logs.

    Raise LlmbError if the file is no bundle, and PluginError if a plugin that the runs need is not installed.
    """
    files = _unpack(file)
    try:
        manifest = json.loads(files[MANIFEST])
        expected, run_ids = dict(manifest["files"]), tuple(map(str, manifest["runs"]))
    except (KeyError, ValueError, TypeError) as error:
        raise LlmbError(f"{file} is not a bundle of llmb: it has no valid {MANIFEST}") from error
    needed = [f"runs/{run_id}/{name}" for run_id in run_ids for name in NEEDED]
    missing = [f"{name} is missing" for name in needed if name not in files and name not in expected]
    mismatches = [*_compare_files(files, expected), *missing]
    signer = ""
    if allowed_signers:
        _check_allowed_signers(allowed_signers)
        signer, problem = _check_signature(files, allowed_signers)
        mismatches += [problem] if problem else []
    if not mismatches:
        with tempfile.TemporaryDirectory(prefix="llmb-bundle-") as folder:
            write_files(folder, files)
            registry = PluginRegistry()
            records = [RunRecord(Path(folder, "runs", run_id)) for run_id in run_ids]
            try:
                mismatches += [f"{run_id}: {problem}" for run_id, problem in _recompute(records, registry)]
            except RecordError as error:
                mismatches.append(str(error).replace(f"{folder}/", ""))
            if manifest.get("llmb") == VERSION:  # other versions may write other reports of the same records
                tables = report_tables(folder, run_ids)
                mismatches += [f"{name} differs from the records" for name in tables if tables[name] != files.get(name)]
    return BundleCheck(
        run_ids=run_ids,
        files=len(expected),
        redacted=bool(manifest.get("redacted")),
        signed=SIGNATURE in files,
        signer=signer,
        mismatches=tuple(mismatches),
    )


def _unpack(file: Path) -> dict[str, bytes]:
    """Return the files of a bundle. Raise LlmbError for anything that is not a plain file or folder below the top.

    `tar czf FILE .` packs an unpacked bundle again with folders, and with ``./`` before each name.
    """
    files: dict[str, bytes] = {}
    left = MOST_BYTES
    try:
        with tarfile.open(file, "r:gz") as tar:
            for entry in tar:
                path, left = PurePosixPath(entry.name), left - entry.size
                plain = entry.isreg() or entry.isdir()
                if not plain or path.is_absolute() or ".." in path.parts or str(path) in files or left < 0:
                    raise LlmbError(f"{file} is not a bundle of llmb: unexpected entry {entry.name!r}")
                if content := tar.extractfile(entry):
                    files[str(path)] = content.read()
    except (OSError, tarfile.TarError, EOFError) as error:
        raise LlmbError(f"{file} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    return files


def _compare_files(files: Mapping[str, bytes], expected: Mapping[str, str]) -> Iterator[str]:
    present = files.keys() - {MANIFEST, SIGNATURE}
    yield from (f"{name} is missing" for name in sorted(expected.keys() - present))
    yield from (f"{name} is not in the manifest" for name in sorted(present - expected.keys()))
    for name in sorted(present & expected.keys()):
        if hashlib.sha256(files[name]).hexdigest() != expected[name]:
            yield f"{name} was changed: its SHA-256 is not that of the manifest"


def _check_allowed_signers(file: Path) -> None:
    """Raise LlmbError if a file of allowed signers cannot be read, or contains a public key without a signer."""
    try:
        lines = file.read_text(errors="replace").splitlines()
    except OSError as error:
        raise LlmbError(f"{file} cannot be read: {error.strerror}") from error
    if any(PUBLIC_KEY.match(line) for line in lines):
        expected = "lines such as `me@example.com ssh-ed25519 AAAA...`"
        raise LlmbError(Fault(message="a public key without its signer", file=str(file), expected=expected))


def _check_signature(files: Mapping[str, bytes], allowed_signers: Path) -> tuple[str, str]:
    """Return the principal who signed the manifest, and the problem with the signature, one of them empty."""
    if SIGNATURE not in files:
        return "", "the bundle is not signed"
    with tempfile.TemporaryDirectory(prefix="llmb-sign-") as folder:
        signature = Path(folder, SIGNATURE)
        signature.write_bytes(files[SIGNATURE])
        common = ["-f", str(allowed_signers), "-s", str(signature)]
        found = _ssh_keygen(["find-principals", *common], b"")
        if found.returncode or not found.stdout.strip():
            return "", f"the signature is not of a signer in {allowed_signers}"
        signer = found.stdout.decode(errors="replace").splitlines()[0]
        checked = _ssh_keygen(["verify", "-n", NAMESPACE, "-I", signer, *common], files[MANIFEST])
        return (signer, "") if checked.returncode == 0 else ("", "the signature does not match the manifest")


def _ssh_keygen(arguments: list[str], data: bytes) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(["ssh-keygen", "-Y", *arguments], input=data, capture_output=True, check=False)
    except FileNotFoundError as error:
        raise LlmbError("cannot check the signature: ssh-keygen is not installed") from error


def _recompute(records: Sequence[RunRecord], registry: PluginRegistry) -> Iterator[tuple[str, str]]:
    """Yield run ids, each with a difference between the recorded result of the run and what its logs give."""
    repeats: dict[str, list[RunRecord]] = {}
    for record in records:
        provenance = record.spec().get("provenance", {})
        if "imported" in provenance:
            repeats.setdefault(provenance.get("first_repeat", record.run_id), []).append(record)
        else:
            yield from ((record.run_id, problem) for problem in _recompute_run(record, registry))
    for imported in repeats.values():
        try:
            yield from _recompute_imports(imported, registry)
        except LogError as error:
            yield imported[0].run_id, str(error)


def _recompute_run(record: RunRecord, registry: PluginRegistry) -> Iterator[str]:
    """Yield the differences of a run that llmb started."""
    plan = plan_run(import_run(record.directory / "run.toml", registry), registry)
    run, recorded, completed = plan.run, record.result() or {}, record.state().run_state == "completed"
    logs = RunLogs(plan, record, registry.framework(run.framework), registry.scheduler(plan.target.scheduler))
    logs.start_attempt(record.state().attempt)
    logs.close()
    measured_peak = _table(recorded, "metrics").get("peak_flops")  # of a CPU, by the machine of the run
    peak = known_peak_flops(run.gpu_type, run.dtype, run.accelerator, run.framework, registry) or measured_peak
    other_gpus = find_other_gpus(record, run)
    measured = measure_and_judge(run, logs.series, peak, completed=completed, other_gpus=other_gpus)
    judged = completed or recorded.get("verdict") in ("pass", "fail")  # a run that did not start has no verdict
    yield from _compare(record, logs.series.steps, measured.metrics, measured.judgement if judged else None)


def _recompute_imports(records: Sequence[RunRecord], registry: PluginRegistry) -> Iterator[tuple[str, str]]:
    """Yield the differences of runs that were recorded from existing logs, all repeats of one another."""
    records = sorted(records, key=lambda record: record.spec()["provenance"].get("repeat", 1))
    graded = _grader(records[0], registry).describe_saved([imported_logs(record) for record in records])
    for record, each in zip(records, graded, strict=True):
        problems = _compare(record, each.run.log.steps, each.metrics, each.judgement)
        yield from ((record.run_id, problem) for problem in problems)


def _grader(record: RunRecord, registry: PluginRegistry) -> Grader:
    """Return what an imported run was graded against."""
    run = import_run(record.directory / "run.toml", registry).run
    recipe = registry.recipe(address_in(run.framework, run.recipe))
    return Grader(
        recipe=recipe,
        point=published_point(recipe, run.gpu_type, run.dtype, run.gpus, run.variant),
        registry=registry,
        window=run.window,
        tolerance=run.tolerance,
        steps=record.spec()["provenance"].get("steps_asked"),
    )


def _compare(
    record: RunRecord, steps: Iterable[Step], metrics: Metrics | None, judgement: Judgement | None
) -> Iterator[str]:
    """Yield the differences between a record and what its logs give. Without a judgement, compare no verdict."""
    text, computed = steps_csv(steps), dict[str, Any]()
    if text.encode() != (record.directory / "steps.csv").read_bytes():
        yield f"steps.csv differs from the logs, which have {len(text.splitlines()) - 1} steps"
    if metrics:
        computed["metrics"] = metrics.as_dict()
    if judgement:
        computed["verdict"] = judgement.verdict
        computed["interval"] = list(judgement.interval) if judgement.interval else None
    yield from _compare_tables("", record.result() or {}, computed)


def _compare_tables(prefix: str, recorded: Mapping[str, Any], computed: Mapping[str, Any]) -> Iterator[str]:
    """Yield the values that differ. Tables are compared key by key."""
    for name, after in computed.items():
        before = recorded.get(name)
        label = f"{prefix}.{name}" if prefix else name
        if isinstance(after, Mapping):
            yield from _compare_tables(label, _table(recorded, name), after)
        elif not _agrees(before, after):
            yield f"{label} is {before}, but the logs give {after}"


def _table(recorded: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return a table of a record; an empty one if the value is not a table."""
    found = recorded.get(name)
    return found if isinstance(found, Mapping) else {}


def _agrees(before: Any, after: Any) -> bool:
    if isinstance(before, list) and isinstance(after, list):
        return len(before) == len(after) and all(map(_agrees, before, after))
    if isinstance(before, int | float) and isinstance(after, int | float):
        return math.isclose(before, after, rel_tol=1e-9)
    return bool(before == after)
