"""Commands of remedies with the spec that the user typed."""

from __future__ import annotations

from pathlib import Path

import pytest

import llmb
from llmb.cli.app import execute
from llmb.cli.spec_in_remedies import SpecArguments

RUN = "`llmb run SPEC --set target.workdir=/path/to/folder`"


@pytest.mark.parametrize(
    ("typed", "text", "named"),
    [
        (
            SpecArguments("my specs/a.toml"),
            f"fix this, or {RUN}",
            "fix this, or " + RUN.replace("SPEC", "'my specs/a.toml'"),
        ),
        (SpecArguments("-a.toml"), "`llmb validate SPEC`", "`llmb validate ./-a.toml`"),
        (SpecArguments("a.toml", "eos"), RUN, RUN.replace("SPEC", "a.toml --target eos")),
        (SpecArguments("a.toml", "eos"), "`llmb doctor SPEC`", "`llmb doctor eos a.toml`"),
        (SpecArguments("a.toml", None, ["env.A=b"]), "`llmb doctor SPEC`", "`llmb doctor a.toml --set env.A=b`"),
        (
            SpecArguments("a.toml", None, ["env.A=x y", "target.workdir=/w"]),
            f"`llmb run SPEC` or {RUN}",
            "`llmb run a.toml --set 'env.A=x y' --set target.workdir=/w` or "
            + RUN.replace("SPEC", "a.toml --set 'env.A=x y'"),
        ),
        (SpecArguments("a.toml"), "the SPEC of `llmb runs` and `cat SPEC`", "the SPEC of `llmb runs` and `cat SPEC`"),
    ],
)
def test_commands_of_llmb_name_the_spec(typed: SpecArguments, text: str, named: str) -> None:
    assert typed.name_in(text) == named


@pytest.mark.parametrize(
    ("place", "path", "named"),
    [
        ("overrides", "a.toml", "--set"),
        ("target", "a.toml", "--target"),
        ("a.toml", "a.toml", "a.toml"),
        ("target", "target", "target"),  # the file
        (None, "a.toml", None),
    ],
)
def test_errors_name_options_in_place_of_arguments(place: str | None, path: str, named: str | None) -> None:
    with pytest.raises(llmb.SpecError) as raised, SpecArguments(path, "eos", ["a=b"]).named_in_errors():
        raise llmb.SpecError(llmb.Fault(message="wrong", file=place))
    assert raised.value.faults == (llmb.Fault(message="wrong", file=named),)


def test_the_errors_of_an_invalid_spec_omit_overrides() -> None:
    typed = SpecArguments("a.toml", None, ["api_key=abc"])
    with pytest.raises(llmb.SpecError) as raised, typed.named_in_errors():
        raise llmb.SpecError(llmb.Fault(message="wrong", expected=RUN))
    assert raised.value.faults == (llmb.Fault(message="wrong", expected=RUN.replace("SPEC", "a.toml")),)


def test_doctor_has_no_option_for_the_target(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    spec = tmp_path / "a.toml"
    spec.write_text('[workload]\nrecipe = "maxtext/llama2-tiny"\ngpu_type = "cpu"\ndtype = "fp32"\ngpus = 1\n')
    assert execute(["doctor", "nosuch", str(spec)]) == 2
    assert capsys.readouterr().err.startswith("llmb: TARGET: target.name: unknown target 'nosuch'; ")
