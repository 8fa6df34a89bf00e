"""Every block of the documentation: commands have the output that the page shows, and no block is without a test."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import attrs
import pytest
from parts import page_setups, slurm
from parts.pages import ROOT, Block, Session, blocks, commands, matches, new_session, page_notes, pages
from parts.sshd import Sshd

import llmb

RUN = ("console", "sh", "python")
ALL = [block for page in pages() for block in blocks(page)]


def is_run(block: Block) -> bool:
    return (
        (block.language in RUN or bool(block.title))
        and block.note("not run") is None
        and block.note("tested by") is None
    )


CLUSTER_PAGES = ("docs/tutorials/first-cluster.md", "docs/how-to/acceptance.md")

PAGES = [
    pytest.param(page, marks=pytest.mark.slow) if "slow page" in page_notes(page) else page
    for page in pages()
    if page not in CLUSTER_PAGES and any(map(is_run, blocks(page)))
]


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_have_the_output_that_it_shows(page: str, tmp_path: Path) -> None:
    assert perform(page, new_session(page, tmp_path)) > 0


def perform(page: str, session: Session) -> int:
    """Run all blocks of a page, as a reader would. Return how many there are."""
    for name in [note.removeprefix("page setup: ") for note in page_notes(page) if note.startswith("page setup: ")]:
        getattr(page_setups, name)(session)
    on_page = [*filter(is_run, blocks(page))]
    for block in on_page:
        if name := block.note("setup:"):
            getattr(page_setups, name)(session)
        session.perform(block)
    return len(on_page)


@pytest.mark.slow
@pytest.mark.real
@pytest.mark.parametrize("page", CLUSTER_PAGES)
def test_a_page_on_a_cluster_works_on_one(page: str, tmp_path: Path) -> None:
    if lacking := slurm.missing():
        pytest.skip(lacking)
    with slurm.Cluster(nodes=2) as cluster, Sshd(env=cluster.env) as server:
        names = {"eos-login": server.host, "/lustre/me/llmb": str(tmp_path / "work")}
        session = new_session(page, tmp_path, names)
        assert perform(page, attrs.evolve(session, env={**session.env, **server.env})) > 0


@pytest.mark.parametrize("block", [each for each in ALL if not is_run(each)], ids=lambda block: block.name)
def test_a_block_that_is_not_run_has_another_test_or_a_reason(block: Block) -> None:
    tested, reason = block.note("tested by"), block.note("not run:")
    assert tested or reason, (
        f"{block.name}: add a title, `<!-- tested by FILE -->` or `<!-- not run: REASON -->` above it"
    )
    assert tested is None or (ROOT / tested.partition("::")[0]).is_file(), block.name


def test_the_quickstart_shows_the_example() -> None:
    shown = [block.text for block in blocks("docs/quickstart.md") if block.language == "toml"]
    example = (ROOT / "examples/quickstart.toml").read_text()
    assert shown == [example.partition("\n\n")[2]]


@pytest.mark.parametrize("block", [each for each in ALL if each.language == "toml"], ids=lambda block: block.name)
def test_every_table_is_valid_toml(block: Block) -> None:
    assert tomllib.loads(block.text.replace("{ ... }", "{}"))


@pytest.mark.parametrize("page", ["docs/local.md", "docs/slurm.md"])
def test_the_settings_of_a_scheduler_are_valid(page: str) -> None:
    target = next(tomllib.loads(block.text) for block in blocks(page) if block.text.startswith("[target]"))
    workload = {"recipe": "maxtext/llama2-tiny", "gpu_type": "cpu", "dtype": "fp32", "gpus": 1}
    assert llmb.load({"workload": workload, **target}).runs


def test_a_page_with_another_output_fails(tmp_path: Path) -> None:
    [block] = (each for each in blocks("docs/json.md"))
    session = new_session(block.page, tmp_path)
    wrong = Block(
        page="p", line=1, language="console", title="", text=block.text.replace("no such", "a"), notes=("exit code 2",)
    )
    with pytest.raises(AssertionError, match="expected:"):
        session.perform(wrong)


def test_output_may_leave_out_text_and_numbers() -> None:
    assert matches("a ... c\n", "a b\n b c\n")
    assert not matches("a ... c\n", "a b d\n")
    assert matches("step time  0.11 s, 3 steps", "step time 12,3 s, 4 steps", numbers_differ=True)
    assert not matches("step time  0.11 s", "step time 0.11 m", numbers_differ=True)


def test_commands_may_have_several_lines() -> None:
    block = Block(page="p", line=1, language="console", title="", text="$ a \\\n  b\nout\n$ c\n", notes=())
    assert list(commands(block)) == [("a \\\n  b", "out\n"), ("c", "")]


INLINE = re.compile(r"`llmb ([a-z]+)((?: [^`]*)?)`")


@pytest.mark.parametrize("page", pages())
def test_commands_in_the_text_exist(page: str) -> None:
    import typer.main

    from llmb.cli.app import app

    known = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    for name, rest in INLINE.findall((ROOT / page).read_text()):
        assert name in known, f"llmb {name}"
        options = {option for parameter in known[name].params for option in parameter.opts} | {"--help"}
        assert set(re.findall(r"(?<!\S)--[a-z-]+", rest)) - options <= {"--quiet", "--verbose"}, f"llmb {name}{rest}"
