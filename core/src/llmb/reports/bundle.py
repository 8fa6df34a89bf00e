"""Bundles of recorded runs for a vendor or a ticket: records, report and environment, with a manifest of SHA-256."""

import gzip
import hashlib
import io
import json
import os
import platform
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from llmb.files import read_regular
from llmb.judging.judge_repeats import find_repeats
from llmb.plugins.registry import PluginRegistry
from llmb.records.index.select_runs import select_runs
from llmb.records.log_copies.mask_secrets import SecretMask, known_secrets
from llmb.records.record import RunRecord
from llmb.records.result import DAMAGED, RunResult
from llmb.reports.bundle_files import (
    MANIFEST,
    NAMESPACE,
    NEEDED,
    SIGNATURE,
    describe_files,
    report_tables,
    without_folder,
    write_files,
)
from llmb.reports.redact_records import redact_records
from llmb.values.errors import LlmbError, PluginError, RecordError
from llmb.values.texts.error_text import NAMED_RUNS, first_names
from llmb.values.types.check_arguments import check_arguments
from llmb.version import VERSION

NOT_BUNDLED = ("lock", "cancel")
"""Files of a record that only the process which drives the run needs."""


@check_arguments
def bundle(runs: str | Iterable[str], *, redact: bool = False, key: Path | None = None) -> bytes:
    """Return recorded runs and their repeats as a tar.gz file, with a report and a manifest of SHA-256.

    ``runs`` are those of `report`. Known secrets are masked. ``redact`` replaces host and user names, and ``key`` is an
    SSH key that signs the manifest. Equal records give equal bytes, except the signature. Raise RecordError for a run
    that does not exist, has not ended or has a damaged record, and LlmbError if the key does not sign or a name cannot
    be replaced.
    """
    results = find_repeats(select_runs(runs))
    if running := [result.run_id for result in results if not result.ended]:
        have = "has" if len(running) == 1 else "have"
        named, words = first_names(running, NAMED_RUNS), " ".join(running[:NAMED_RUNS])
        raise RecordError(f"{named} {have} not ended; first follow to the end with `llmb attach {words}`")
    for result in results:
        _check_complete(result)
    directories = {result.run_id: Path(result.directory) for result in results}
    registry = PluginRegistry()
    files: dict[str, bytes] = {}
    for result in results:
        files |= {f"runs/{result.run_id}/{name}": data for name, data in _read_files(result)}
    if redact:
        files = redact_records(files, list(directories), registry)
    files["environment.json"] = _as_json(_environment(registry))
    files |= _reports(files, list(directories), registry)
    manifest = {
        "format": 1,
        "llmb": VERSION,
        "redacted": redact,
        "runs": list(directories),
        "files": {name: hashlib.sha256(files[name]).hexdigest() for name in sorted(files)},
    }
    files[MANIFEST] = _as_json(manifest)
    if key:
        files[SIGNATURE] = _sign(files[MANIFEST], key)
    return _pack(files)


def _check_complete(result: RunResult) -> None:
    """Raise RecordError if files of a record are missing or damaged, because the bundle could not be verified."""
    record = RunRecord(Path(result.directory))
    record.spec()
    record.result()
    if missing := [name for name in NEEDED if not (record.directory / name).is_file()]:
        raise RecordError(f"{record.directory / missing[0]} is missing")
    if result.reason.startswith(DAMAGED):
        raise RecordError(f"{result.run_id}: {result.reason}")


def _read_files(result: RunResult) -> Iterator[tuple[str, bytes]]:
    """Yield the files of a record without secrets. Raise RecordError if one cannot be read, or if the logs are gone."""
    mask = SecretMask(known_secrets(()))
    directory = Path(result.directory)
    logs = RunRecord(directory).logs
    has_logs = False
    try:
        for path in sorted(_paths_below(directory)):
            if path.is_file() and path.name not in NOT_BUNDLED and not path.name.startswith("."):
                has_logs = has_logs or path.is_relative_to(logs)
                data = mask.mask(read_regular(path), is_last=True)
                yield path.relative_to(directory).as_posix(), data
    except OSError as error:
        raise RecordError(f"{error.filename or directory} cannot be read: {error.strerror}") from error
    if result.steps_done and not has_logs:
        raise RecordError(f"{logs} has no logs, from which the receiver could compute the metrics again")


def _paths_below(directory: Path) -> Iterator[Path]:
    """Yield all files below a directory. Raise OSError for a folder that cannot be read, which rglob would skip."""

    def fail(error: OSError) -> NoReturn:
        raise error

    for folder, _, names in os.walk(directory, onerror=fail):
        yield from (Path(folder, name) for name in names)


def _environment(registry: PluginRegistry) -> dict[str, Any]:
    return {
        "llmb": VERSION,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "plugins": {entry.distribution: entry.version for entry in registry.installed if entry.distribution},
    }


def _reports(files: Mapping[str, bytes], run_ids: Sequence[str], registry: PluginRegistry) -> dict[str, bytes]:
    """Return the reports on the bundled files, which are those without names. HTML needs the package llmb-report."""
    with tempfile.TemporaryDirectory(prefix="llmb-bundle-") as folder:
        write_files(folder, files)
        report = describe_files(folder, run_ids)
        texts = report_tables(report)
        with suppress(PluginError):  # the other files are complete without it
            texts["report.html"] = registry.report_renderer(".html")(report)
        return without_folder(folder, texts)


def _as_json(document: Mapping[str, Any]) -> bytes:
    return f"{json.dumps(document, indent=2)}\n".encode()


def _sign(manifest: bytes, key: Path) -> bytes:
    """Return the signature of the manifest by the user's SSH key. The key may be in the agent. Raise LlmbError."""
    if shutil.which("ssh-keygen") is None:
        raise LlmbError("cannot sign: ssh-keygen is not installed; install the OpenSSH client")
    with tempfile.TemporaryDirectory(prefix="llmb-sign-") as folder:
        file = Path(folder, MANIFEST)
        file.write_bytes(manifest)
        command = ["ssh-keygen", "-Y", "sign", "-f", str(key), "-n", NAMESPACE, str(file)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            reason = (done.stderr.strip().splitlines() or ["ssh-keygen failed"])[-1]
            raise LlmbError(f"cannot sign with {key}: {reason}")
        return Path(f"{file}.sig").read_bytes()


def _pack(files: Mapping[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as compressed,
        tarfile.open(fileobj=compressed, mode="w") as tar,
    ):
        for name in sorted(files):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(files[name]), 0o644
            tar.addfile(entry, io.BytesIO(files[name]))
    return packed.getvalue()
