"""The language of docstrings, comments, messages, pages and commit subjects.

To check some files or folders: ``python tests/test_language.py core/src/llmb/spec``. A line that needs a banned word
opts out with a reason: ``# voice: REASON`` in a file with comments, ``<!-- voice: REASON -->`` in Markdown, on the same
line or on the line before.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path

import pytest
from parts.repository import ROOT, is_test, statements, tracked_files

PROSE = ("*.py", "*.md", "*.sh", "*.toml", ".ci/*", "benchmarks/*")
FIRST_CHECKED_COMMIT = "68b3642"
LONGEST_SUBJECT = 72

OPENINGS = {"What", "Whether", "How", "Where", "Which", "Why", "When", "That", "Those", "Who"}
OPENINGS_OF_FUNCTIONS = OPENINGS | {"All", "As", "One", "Of"}
MAY_BE_OPENING = re.compile(rf'"""\s*(?:{"|".join(sorted(OPENINGS_OF_FUNCTIONS))})\b')
PROPERTIES = {"property", "cached_property", "setter"}

# A banned phrase (a space matches any white space), and the words to use instead.
BANNED = {
    r"tell|tells|telling|told": "report, print, return, log",
    r"say|says|said|saying": "report, print, log; a scheduler reports, a hook returns",
    r"ask|asks|asked|asking": "query, poll, check, request, need",
    r"(?:look|looks|looked|looking) (?:at|for|into)": "query, check, search, read",
    r"believe|believes|believed": "treat as, assume",
    r"at once": "together, in one pass; immediately",
    r"anew|afresh": "again",
    r"mend|mends|mended|mending": "fix",
    r"nobody|somebody|people|strangers?": "user, another process, third-party",
    r"(?:is|are|was|were) (?-i:none)": "does not exist, is None, no ... is",
    r"cannot be(?=\s*(?:[.,;:)]|(?:and|or|is|are|although|of|here|there)\b))": "is impossible",
    r"(?:is|are|be|was|were) ended": "is cancelled, ends",
    r"as yet": "not yet",
    r"but for": "except",
    r"in place of": "instead of",
    r"exit status(?:es)?": "exit code",
    r"(?:is|are|be|been|was|were|not|stays?) whole|whole(?=\s*[.,;:)])|whole (?:or|and|numbers?)": "complete, valid",
    r"(?<!segmentation.)(?<!page.)(?-i:faults?)": "error",
    r"figures?": "metrics, values",
    r"data sets?": "dataset",
    r"(?:take|takes|taken|took) up": "resume",
    r"(?:drive|drives|drove|driven) on": "resume, follow",
    r"(?:go|goes|went) on": "resume, continue",
    r"(?:stand|stands|stood|lies)(?!-)": "contains, is in, exists",
    r"where (?:none|nothing|either|any|no|neither)": "if",
    r"where (?:(?:there|that|one) (?:is|are|was)|(?:that|one|it|they) (?:has|have|can))": "if",
}
BANNED_WORDS = {
    re.compile(rf"\b(?:{words})(?!\w)".replace(" ", r"\s+"), re.IGNORECASE): use for words, use in BANNED.items()
}
ANY_BANNED = re.compile("|".join(f"(?:{each.pattern})" for each in BANNED_WORDS), re.IGNORECASE)

OPT_OUT = re.compile(r"(?:#|<!--) voice: \w{2,}")
CODE_IN_MARKDOWN = re.compile(r"<!--.*?-->|``.+?``|`[^`\n]+`|(?<=\])\([^)\s]+\)", re.DOTALL)
CODE_IN_DOCSTRINGS = re.compile(r"``.+?``", re.DOTALL)
QUOTES = re.compile(r"^\w*['\"]+|['\"]+$")
BLANK_IN_PROSE = re.compile(r"``.+?``|\b[bfru]{0,2}['\"]+|['\"#]", re.DOTALL)


def findings(path: Path) -> list[str]:
    """List the violations of a file, each with its place."""
    text = path.read_text()
    if path.suffix == ".py":
        has_banned = ANY_BANNED.search(BLANK_IN_PROSE.sub(" ", text))
        if not has_banned and not MAY_BE_OPENING.search(text):  # most files need not be parsed
            return []
        documented = list(docstrings(ast.parse(text)))
        found = [*banned_openings(documented)]
        if has_banned:
            prose = prose_of_python(text, {place(each) for _, each in documented}, with_strings=not is_test(path))
            found += banned_words(text, prose)
    else:
        found = [*banned_words(text, prose_of_page(path, text))]
    return [f"{path.relative_to(ROOT)}:{line}: {problem}" for line, problem in sorted(found)]


def docstrings(tree: ast.Module) -> Iterator[tuple[ast.AST, ast.Constant]]:
    """Yield each module, class and function that has a docstring, with the docstring."""
    for node in statements(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            match node.body:
                case [ast.Expr(value=ast.Constant(value=str()) as text), *_]:
                    yield node, text


def place(node: ast.Constant) -> tuple[int, int]:
    return node.lineno, node.col_offset


def banned_openings(documented: list[tuple[ast.AST, ast.Constant]]) -> Iterator[tuple[int, str]]:
    """Yield the docstrings that open with a banned word."""
    for node, text in documented:
        opening = str(text.value).split(maxsplit=1)[:1]
        if is_function(node) and set(opening) & OPENINGS_OF_FUNCTIONS:
            yield text.lineno, f"docstring opens with '{opening[0]}'; open with an imperative verb"
        elif set(opening) & OPENINGS:
            yield text.lineno, f"docstring opens with '{opening[0]}'; open with a noun phrase"


def is_function(node: ast.AST) -> bool:
    """Check whether a node is a function or a method other than a property."""
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    decorators = {ast.unparse(each).rpartition(".")[2] for each in node.decorator_list}
    return not decorators & PROPERTIES


def banned_words(text: str, prose: str) -> Iterator[tuple[int, str]]:
    """Yield the banned words in ``prose``, which has the lines of ``text``."""
    if not ANY_BANNED.search(prose):  # one pass instead of one for each pattern
        return
    lines = ["", *text.splitlines()]
    for pattern, use in BANNED_WORDS.items():
        for match in pattern.finditer(prose):
            line = 1 + prose.count("\n", 0, match.start())
            if not any(OPT_OUT.search(each) for each in lines[line - 1 : line + 1]):
                yield line, f"'{' '.join(match[0].split())}'; use: {use}"


def prose_of_page(path: Path, text: str) -> str:
    """Blank the code in a page, or the comment signs of a script; every character keeps its place."""
    if path.suffix == ".md":
        return CODE_IN_MARKDOWN.sub(blank, text)
    return re.sub(r"^\s*#", blank, text, flags=re.MULTILINE)


def prose_of_python(text: str, docstring_places: set[tuple[int, int]], *, with_strings: bool) -> str:
    """Blank all but docstrings, comments and, on request, strings; every character keeps its place."""
    starts = list(accumulate(map(len, text.splitlines(keepends=True)), initial=0))
    prose = list(re.sub(r"\S", "\0", text))  # code parts phrases, white space does not
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        begin, end = (starts[line - 1] + column for line, column in (token.start, token.end))
        if token.type == tokenize.COMMENT:
            prose[begin:end] = " " + token.string[1:]
        elif token.start in docstring_places:
            prose[begin:end] = CODE_IN_DOCSTRINGS.sub(blank, token.string)
        elif with_strings and tokenize.tok_name[token.type] in ("STRING", "FSTRING_MIDDLE"):
            prose[begin:end] = QUOTES.sub(blank, token.string)
    return "".join(prose)


def blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0])


def checked_files(*patterns: str) -> list[Path]:
    golden = ("golden", "uv.lock", "lock")
    return [path for path in tracked_files(*(patterns or PROSE)) if is_prose(path) and path.parent.name not in golden]


def is_prose(path: Path) -> bool:
    """Check whether a file has prose of ours: Python, Markdown, bash and TOML, without the data of tests."""
    if path.suffix in (".py", ".md", ".sh"):
        return True
    return (path.suffix == ".toml" and not is_test(path)) or path.parent.name == ".ci"


def test_the_language_is_that_of_the_house() -> None:
    assert [each for path in checked_files() for each in findings(path)] == []


@pytest.mark.parametrize(
    ("docstring", "violations"),
    [
        ("Whether a log ends.", 1),
        ("All of them.", 1),
        ("Return what Slurm tells.", 1),
        ("Return at\n    once.", 1),
        ("Return ``what is told``.", 0),
        ("Return what people say.  # voice: they do", 0),
        ("Check whether the target cannot be reached.", 0),
        ("Check which job cannot be.", 1),
        ("Raise PluginError on a segmentation fault.", 0),
    ],
)
def test_banned_words_are_found_in_prose(docstring: str, violations: int) -> None:
    text = f'def told() -> None:\n    """{docstring}"""\n'
    documented = list(docstrings(ast.parse(text)))
    prose = prose_of_python(text, {place(each) for _, each in documented}, with_strings=True)
    assert len([*banned_openings(documented), *banned_words(text, prose)]) == violations


def test_commit_subjects_are_short() -> None:
    if git("rev-parse", "--verify", "--quiet", f"{FIRST_CHECKED_COMMIT}^{{commit}}").returncode:
        assert git("rev-parse", "--is-shallow-repository").stdout.strip() == "true", "the history is not ours"
        pytest.skip("the clone is shallow")
    subjects = git("log", "--format=%s", f"{FIRST_CHECKED_COMMIT}..HEAD").stdout.splitlines()
    assert [each for each in subjects if len(each) > LONGEST_SUBJECT] == []


def git(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)


def main(arguments: list[str]) -> int:
    """Print the violations in these files and folders, or in all. Return an exit code."""
    paths = [str(Path(each).resolve().relative_to(ROOT)) for each in arguments]
    found = [each for path in checked_files(*paths) for each in findings(path)]
    print(*found, f"{len(found)} violations", sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
