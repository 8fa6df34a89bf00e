"""The tables and keys of a declared framework, ``NAME.toml``. docs/declared.md describes the file."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import attrs

from llmb.recipes.recipe_tables import RecipeTable, StepRange
from llmb.recipes.scaling_rules import Rule
from llmb.values.environment import Image, Repository
from llmb.values.frozen import FrozenMap
from llmb.values.types.durations import Duration
from llmb.values.types.numbers import NonNegativeInt, PositiveInt
from llmb.values.types.one_or_more import one_or_more
from llmb.values.types.value_type import accepting, matching
from llmb.values.types.words_and_addresses import ImageAddress, Name, NonEmptyStr, VariableName

Launch = Literal["task", "torchrun", "node", "first"]
Degree = Literal["tp", "pp", "vp", "cp", "ep", "etp", "fsdp"]


def _is_neighbour(value: Any) -> bool:
    parts = value.split("/") if isinstance(value, str) and value.isprintable() else []
    return bool(parts) and not {"", ".", ".."} & {*parts}


Neighbour = Annotated[
    str,
    accepting("a relative path of a file next to this file, without ..", _is_neighbour, schema={"type": "string"}),
]
"""A path below the folder of the file."""

OptionName = Annotated[str, matching("a name of small letters, digits and _", "[a-z][a-z0-9_]*")]
"""The name of an option, which is also a placeholder."""

PythonVersion = Annotated[
    str, matching('a version such as "3.12" or ">=3.11,<3.14"', r"\d+\.\d+|[<>=!~][<>=!~\d.*, ]+")
]
"""A version of Python, or a specifier."""

Texts = Annotated[tuple[str, ...], one_or_more(NonEmptyStr)]
Fields = Annotated[tuple[Mapping[str, str], ...], one_or_more(Mapping[str, NonEmptyStr])]


@attrs.frozen(kw_only=True)
class VenvTable:
    """[venv]: a Python environment, which llmb installs once for each target."""

    lock: Neighbour
    """A requirements file next to this file, with pinned versions and hashes (``uv pip compile --generate-hashes``)."""
    python: PythonVersion
    """The version of Python, such as "3.12" or ">=3.11,<3.14"."""


@attrs.frozen(kw_only=True)
class OptionTable:
    """[options.NAME]: a key of the spec's [framework] table, and the placeholder ``{NAME}``."""

    default: Any
    """The value without the key. The key accepts values of the same type."""
    choices: tuple[Any, ...] = ()
    """The only values that the key accepts, by default all of its type."""
    help: str = ""
    """A description of the option."""
    comparable: bool = False
    """True if the option does not affect what is measured, so that the run stays comparable with the baseline."""


@attrs.frozen(kw_only=True)
class LogFilesTable:
    """[log.files]: the names of log files, for ``llmb parse`` of a directory."""

    directory: str | None = None
    """The folder in the current directory that ``llmb parse`` reads without a LOG."""
    training: tuple[str, ...] = ()
    """Shell patterns of names of logs. Such a file is a log even without a step, because its run may have failed."""
    other: tuple[str, ...] = ()
    """Shell patterns of names of files that are no logs."""


@attrs.frozen(kw_only=True)
class LogTable:
    """[log]: how llmb reads the log. Either ``line`` or ``fields`` is required."""

    line: Texts = ()
    """Lines copied from a log, with a name in braces instead of each number: "iter {step}: loss {loss}"."""
    fields: Fields = ()
    """Numbers after their keys, in any order: a table of NAME = "key", and ``where``, a text in the line."""
    end: Texts = ()
    """Texts that mark the end of training. A run whose log contains none of them is incomplete."""
    nan: Texts = ()
    """Texts that mark a loss of NaN. A loss that is printed as NaN is detected anyway."""
    first_step: NonNegativeInt | None = None
    """The number that the script gives to its first step."""
    printed_every: PositiveInt = 1
    """The interval of the printed steps."""
    time_is_mean: bool = False
    """True if the printed time is the mean since the line before. By default it is the time of one step."""
    window: Literal["last"] | StepRange = "last"
    """The usual measuring window: the last step, or the first and last step of a mean."""
    files: LogFilesTable = LogFilesTable()
    """The names of log files in a directory."""


@attrs.frozen(kw_only=True)
class DeclaredRecipe(RecipeTable):
    """[recipe] or [recipes.NAME]: the keys of a recipe. Only ``steps``, ``seq_len`` and a batch size are required."""

    release: NonEmptyStr = "unversioned"
    """The release of the script, which results show."""
    description: NonEmptyStr = "declared framework"
    """What is trained, in a few words, for ``llmb recipes``."""
    source: NonEmptyStr = "the user's own file"
    """The origin of the recipe and of its baselines."""
    window: Literal["last"] | StepRange | None = None  # type: ignore[assignment]  # a default takes its place
    """The measuring window, by default that of [log]."""
    time_limit: Duration = 3600
    """The longest time that the job may take: "30m", "1h30m"."""
    global_batch_size: Rule | None = None
    """Sequences in a step: a number, or a rule such as "8 * gpus". Required without [[points]]."""


@attrs.frozen(kw_only=True)
class DiagnoseTable:
    """[[diagnose]]: a cause of failure, searched for only in this framework's logs."""

    text: NonEmptyStr
    """A text in the log that identifies the cause."""
    cause: NonEmptyStr
    """What went wrong."""
    remedy: str = ""
    """How to fix it."""


@attrs.frozen(kw_only=True)
class DeclaredFile:
    """A declared framework: how a script is started, how its log is read, and what it trains."""

    command: tuple[str, ...] = attrs.field(validator=attrs.validators.min_len(1))
    """The words of the command. Placeholders in braces are replaced; ``{{`` is a literal brace."""
    launch: Launch = "task"
    """``task``: one process for each GPU. ``torchrun``: torchrun once on each node, which starts the others. ``node``:
    once on each node. ``first``: once."""
    files: tuple[Neighbour, ...] = ()
    """Text files next to this file. llmb copies them into the run's directory and starts the command there."""
    image: ImageAddress | Image | None = None
    """A container image, which cannot be combined with ``venv``."""
    venv: VenvTable | None = None
    """A Python environment, which cannot be combined with ``image``."""
    repository: Repository | None = None
    """A git repository at one commit. ``{repository}`` is its folder."""
    env: Mapping[VariableName, str] = FrozenMap()
    """Environment variables, with the placeholders of ``command``."""
    secrets: tuple[VariableName, ...] = ()
    """Names of environment variables of the user that the job needs, such as HF_TOKEN."""
    degrees: tuple[Degree, ...] = ()
    """Keys of [parallelism] that the script reads itself, besides those with a placeholder."""
    options: Mapping[OptionName, OptionTable] = FrozenMap()
    """Keys of the spec's [framework] table, each with the type of its default."""
    log: LogTable
    """How llmb reads the log."""
    recipe: DeclaredRecipe | None = None
    """The only recipe, whose address is NAME/NAME."""
    recipes: Mapping[Name, DeclaredRecipe] = FrozenMap()
    """The recipes, if there are several."""
    diagnose: tuple[DiagnoseTable, ...] = ()
    """Causes of failure, searched for only in this framework's logs."""
