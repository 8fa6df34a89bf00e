"""``llmb bundle``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import llmb
from llmb.cli import output
from llmb.cli.exit_codes import FAILED
from llmb.cli.options import AsJson, OptionsError, runs_argument


def bundle(
    runs: Annotated[list[str] | None, runs_argument("Run ids, unique prefixes, or filters in braces.")] = None,
    file: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE.tar.gz", help="Write the bundle to this file.")
    ] = None,
    redact: Annotated[bool, typer.Option("--redact", help="Replace names of hosts and users, and addresses.")] = False,
    sign: Annotated[
        Path | None, typer.Option("--sign", metavar="KEY", help="Sign the bundle with this SSH key.")
    ] = None,
    verify: Annotated[
        Path | None,
        typer.Option("--verify", metavar="FILE", help="Check a bundle, and compute its metrics again from its logs."),
    ] = None,
    allowed_signers: Annotated[
        Path | None,
        typer.Option(
            "--allowed-signers", metavar="FILE", help="With --verify, require a signature of one of these signers."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Pack recorded runs with a report for a vendor or a ticket, or verify such a bundle."""
    if verify:
        if runs or file or sign or redact:
            raise OptionsError("--verify cannot be combined with runs, -o, --redact or --sign")
        _verify(verify, allowed_signers, as_json=as_json)
        return
    if allowed_signers or as_json:
        raise OptionsError(f"{'--allowed-signers' if allowed_signers else '--json'} requires --verify")
    if not runs or not file:
        raise OptionsError("no run or no output is named; expected llmb bundle RUN... -o FILE.tar.gz")
    output.write_file(file, llmb.bundle(runs, redact=redact, key=sign))


def _verify(file: Path, allowed_signers: Path | None, *, as_json: bool) -> None:
    """Print the result of a verification. Exit with 1 if anything does not match."""
    check = llmb.verify_bundle(file, allowed_signers=allowed_signers)
    if as_json:
        import attrs

        output.print_json(attrs.asdict(check))
    else:
        from llmb.cli.views.metrics import print_named_values

        rows = [
            *(("mismatch", mismatch) for mismatch in check.mismatches),
            ("files", f"{check.files} listed in the manifest"),
            ("runs", ", ".join(check.run_ids)),
            ("signature", _describe_signature(check, checked=allowed_signers is not None)),
            ("verdict", "does not match" if check.mismatches else "files and metrics match"),
        ]
        print_named_values(rows)
    if check.mismatches:
        raise typer.Exit(FAILED)


def _describe_signature(check: llmb.BundleCheck, *, checked: bool) -> str:
    """Return who signed the bundle, or why that is unknown."""
    if check.signer:
        return f"by {check.signer}"
    if not check.signed:
        return "not signed"
    return "not valid" if checked else "signed, not checked; see --allowed-signers"
