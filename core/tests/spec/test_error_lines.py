"""The complete lines of errors that have to guess what the author meant."""

from __future__ import annotations

import re
from typing import Any

import pytest

WORKLOAD = '[workload]\nrecipe = "maxtext/llama2-tiny"\ngpu_type = "cpu"\ndtype = "fp32"\ngpus = 1\n'
LOCAL = '[target]\nscheduler = "local"\n'
USUAL = WORKLOAD + LOCAL
B200 = '[workload]\nrecipe = "maxtext/llama2-70b"\ngpu_type = "b200"\ndtype = "nvfp4"\ngpus = 64\n'
INSTALLED = "expected one of local, slurm"


def lines(spec: Any, text: str) -> list[str]:
    """Return all errors as they are printed, without the name of the spec."""
    found = spec.write(text).errors().values()
    return [str(error).removeprefix(f"{spec.file}: ") for error in found]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (WORKLOAD + "[target]\n", f"target.scheduler: required key is missing; {INSTALLED}"),
        (
            WORKLOAD + '[target]\nscheduler = "slrum"\n',
            "target.scheduler: scheduler plugin 'slrum' is not installed; expected one of local, "
            "slurm (did you mean 'slurm'?)",
        ),
        (
            USUAL.replace("gpus = 1", "gpus = []"),
            "workload.gpus: invalid value []; expected a positive integer, or a list of such values",
        ),
        (
            USUAL.replace("gpus = 1", "gpus = [1, 2, 1]"),
            "workload.gpus: 1 is listed more than once; use workload.repeats to repeat runs",
        ),
        (
            USUAL + '[sweep]\n"model.layers" = [2, 2]\n',
            "sweep.model.layers: 2 is listed more than once; use workload.repeats to repeat runs",
        ),
        (
            USUAL.replace("gpus = 1", "gpus = 1\nsteps = [10, 20]"),
            "workload.steps: invalid value [10, 20]; expected a positive integer, or a list in [sweep] under "
            '"workload.steps"',
        ),
        (
            USUAL + '[sweep]\n"sweep.tp" = [1, 2]\n',
            'sweep.sweep.tp: invalid key; expected a dotted key such as "parallelism.tp" '
            "(did you mean 'parallelism.tp'?)",
        ),
        (
            USUAL + '[mounts]\n"rel" = "/x"\n',
            'mounts."rel": not an absolute path; expected "/path/outside" = "/path/inside" or "/path/inside:ro"',
        ),
        (
            USUAL + '[mounts]\n"/a" = "/x"\n"/b" = "/x/:ro"\n',
            'mounts."/b": "/a" is already mounted at /x/; expected another path inside',
        ),
        (
            USUAL + "[measure]\nwindow = [44, 35]\n",
            'measure.window: window [44, 35] ends before it starts; expected "last" or [first, last] within 0 and 50',
        ),
        (
            USUAL.replace("maxtext/llama2-tiny", "megatron_bridge/llama3-tiny") + '[framework]\nhf_token = "no"\n',
            "framework.hf_token: invalid value (hidden); expected true or false",
        ),
        (
            USUAL + '[framework.config]\n"a b" = 1\n',
            "framework.config.a b: invalid key; expected names with dots between them, without blanks",
        ),
        (
            USUAL + '[framework.config]\n"" = 1\n',
            "framework.config.: invalid key; expected names with dots between them, without blanks",
        ),
        (
            USUAL + "[parallelism]\npp = 2\n",
            "workload.gpus: 1 GPU is not divisible by tp x pp x cp = 1 x 2 x 1 = 2; expected a multiple of 2",
        ),
        (
            USUAL.replace("fp32", "fp23"),
            "workload.dtype: cpu does not support fp23; expected fp32 (did you mean 'fp32'?)",
        ),
        (
            USUAL.replace("fp32", "fp32\\u200b"),  # a blank without width, copied from a page
            "workload.dtype: cpu does not support 'fp32\\u200b'; expected fp32 (did you mean 'fp32'?)",
        ),
    ],
)
def test_the_line_names_the_fix(spec: Any, text: str, line: str) -> None:
    assert lines(spec, text) == [line]


def test_missing_names_are_reported_with_the_command_that_lists_them(spec: Any) -> None:
    assert lines(spec, "[workload]\n" + LOCAL) == [
        "workload.recipe: required key is missing; expected an address that `llmb recipes` lists",
        *(
            f"workload.{key}: required key is missing; expected one that `llmb recipes ADDRESS` lists"
            for key in ("gpu_type", "dtype", "gpus")
        ),
    ]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (USUAL.replace("gpus =", "gpu ="), "workload.gpu: unknown key; expected one of {} (did you mean 'gpus'?)"),
        (
            USUAL.replace("recipe", "receipe"),
            "workload.receipe: unknown key; expected one of {} (did you mean 'recipe'?)",
        ),
        (
            USUAL.replace("scheduler", "schedular"),
            "target.schedular: unknown key; expected one of {} (did you mean 'scheduler'?)",
        ),
        (WORKLOAD + '[target]\nnmae = "eos"\n', "target.nmae: unknown key; expected one of {} (did you mean 'name'?)"),
        (
            USUAL.replace("[workload]", "[wrkload]"),
            "wrkload: unknown key; expected one of {} (did you mean 'workload'?)",
        ),
        (WORKLOAD + '[target]\naccount = "me"\n', f"target.scheduler: required key is missing; {INSTALLED}"),
        (
            USUAL.replace('dtype = "fp32"\n', ""),
            "workload.dtype: required key is missing; expected one that `llmb recipes ADDRESS` lists",
        ),
    ],
)
def test_a_misspelt_key_is_one_error(spec: Any, text: str, line: str) -> None:
    [found] = lines(spec, text)
    assert re.fullmatch(re.escape(line).replace(re.escape("{}"), r"[\w, ]+"), found)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("parallelism", {"tensor_parallel_size": "tp", "ep_size": "ep", "vpp": "vp", "mbs": "micro_batch_size"}),
        ("model", {"num_attention_heads": "heads", "sequence_length": "seq_len", "d_model": "hidden"}),
        ("workload", {"model": "recipe", "precision": "dtype", "num_nodes": "gpus", "container": "image"}),
        ("model", {"base_mlp_dim": "ffn", "max_target_length": "seq_len"}),  # of the framework
        ("model", {"mbs": "parallelism.micro_batch_size", "head_dim": "head_size", "n_layers": "layers"}),
        ("parallelism", {"ici_tensor_parallelism": "tp"}),
        ("workload", {"nnodes": "gpus", "container_image": "image"}),
    ],
)
def test_words_of_other_tools_are_reported_with_the_key_that_is_meant(
    spec: Any, table: str, words: dict[str, str]
) -> None:
    stated = "".join(f"{word} = 1\n" for word in words)
    text = WORKLOAD + (stated if table == "workload" else f"[{table}]\n{stated}") + LOCAL
    found = [re.sub("unknown key; expected .* (?=[(])", "", line) for line in lines(spec, text)]
    assert found == [f"{table}.{word}: (did you mean {key!r}?)" for word, key in words.items()]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            USUAL.replace("gpus = 1", 'gpus = "8,16"'),
            'invalid value "8,16"; expected a positive integer, or the list [8,16]',
        ),
        (
            USUAL + '[parallelism]\ntp = "1, 2"\n',
            'invalid value "1, 2"; expected a positive integer, or a list in [sweep] under "parallelism.tp"',
        ),
        ("mbs = 2\n" + USUAL, "unknown key; expected one of {} (did you mean 'parallelism.micro_batch_size'?)"),
    ],
)
def test_several_values_and_a_key_without_its_table_are_reported_with_the_right_form(
    spec: Any, text: str, line: str
) -> None:
    [found] = lines(spec, text)
    assert re.fullmatch(re.escape(line).replace(re.escape("{}"), r"[\w, ]+"), found.partition(": ")[2])


def test_words_of_a_framework_are_no_hints_in_tables_that_no_framework_has(spec: Any) -> None:
    [found] = lines(spec, USUAL + "[measure]\nbase_mlp_dim = 1\n")
    assert "ffn" not in found


def test_a_degree_of_data_parallelism_is_reported_as_computed(spec: Any) -> None:
    [found] = lines(spec, USUAL + "[parallelism]\ndp = 2\n")
    computed = "the number of GPUs divided by the other degrees"
    assert found == f"parallelism.dp: unknown key, because it is {computed}"


@pytest.mark.parametrize(
    ("table", "misspelt", "swept"),
    [
        ("target", "taget", '"target.workdir" = ["/a", "/b"]'),
        ("workload", "wrkload", '"workload.steps" = [10, 20]'),
        ("parallelism", "paralelism", '"parallelism.pp" = [3]'),  # a rule would need the other keys
    ],
)
def test_a_misspelt_table_is_one_error_if_the_sweep_has_a_key_of_it(
    spec: Any, table: str, misspelt: str, swept: str
) -> None:
    text = (USUAL if table in USUAL else USUAL + "[parallelism]\ntp = 3\n") + f"[sweep]\n{swept}\n"
    [found] = lines(spec, text.replace(f"[{table}]", f"[{misspelt}]"))
    assert found.startswith(f"{misspelt}: unknown key; ")
    assert found.endswith(f"(did you mean '{table}'?)")


def test_a_misspelt_key_hides_no_other_missing_key(spec: Any) -> None:
    gpu_type, gpus = lines(spec, USUAL.replace('gpu_type = "cpu"\n', "").replace("gpus =", "gpu ="))
    assert gpu_type == "workload.gpu_type: required key is missing; expected one that `llmb recipes ADDRESS` lists"
    assert gpus.startswith("workload.gpu: unknown key")


def test_an_invalid_dtype_is_reported_with_an_unknown_gpu_type(spec: Any) -> None:
    gpu_type, dtype = lines(spec, USUAL.replace('"cpu"', '"cqu"').replace("fp32", "z"))
    assert "did you mean 'cpu'" in gpu_type
    assert dtype == "workload.dtype: maxtext/llama2-tiny has no configuration for z; expected fp32"


OTHER_GPU = "workload.gpu_type: h100 supports none of the dtypes of maxtext/llama2-tiny: fp32; expected cpu"


@pytest.mark.parametrize("parallelism", ["", "[parallelism]\nglobal_batch_size = 4\n"])
@pytest.mark.parametrize(
    ("dtype", "more"),
    [
        ("fp32", []),
        ("bf16", ["workload.dtype: maxtext/llama2-tiny has no configuration for bf16; expected fp32"]),
    ],
)
def test_a_gpu_that_supports_no_dtype_of_the_recipe_is_the_error(
    spec: Any, parallelism: str, dtype: str, more: list[str]
) -> None:
    text = USUAL.replace('"cpu"', '"h100"').replace("fp32", dtype) + parallelism
    assert lines(spec, text) == [OTHER_GPU, *more]


@pytest.mark.parametrize(
    ("parallelism", "keys"),
    [("", ["workload.gpu_type", "workload.dtype"]), ("[parallelism]\nglobal_batch_size = 256\n", ["workload.dtype"])],
)
def test_a_dtype_that_a_recipe_lacks_names_no_other_gpu(spec: Any, parallelism: str, keys: list[str]) -> None:
    found = lines(spec, B200 + parallelism + LOCAL)
    assert [line.partition(":")[0] for line in found] == keys
    dtype = "workload.dtype: maxtext/llama2-70b has no configuration for nvfp4; expected bf16 or fp8"
    assert found[-1].startswith(dtype)


def test_a_dtype_that_a_recipe_for_one_gpu_type_lacks_is_not_that_of_its_gpu_type(spec: Any) -> None:
    text = USUAL.replace("maxtext/llama2-tiny", "nemo_launcher/llama3.1-8b") + "[parallelism]\nglobal_batch_size = 4\n"
    message = "nemo_launcher/llama3.1-8b has no configuration for fp32; expected bf16 or fp8"
    assert lines(spec, text) == [f"workload.dtype: {message}"]


def test_a_key_outside_a_table_is_taken_for_the_key_of_that_name(spec: Any) -> None:
    [line] = lines(spec, "steps = 10\n" + USUAL)
    assert line.endswith("(did you mean 'workload.steps'?)")


@pytest.mark.parametrize(
    ("targets", "line"),
    [
        (
            '[eos]\nscheduler = "slurm"\naccount = "me"\n',
            '{spec}: target.scheduler: eos in {file} has scheduler slurm, not local; expected "slurm", or no name',
        ),
        ('eos = "slurm"\n', '{file}: eos: invalid value "slurm"; expected a table [eos] with a scheduler'),
    ],
)
def test_a_target_that_does_not_match_the_spec_is_an_error_with_the_reason(
    spec: Any, write_targets: Any, targets: str, line: str
) -> None:
    file = write_targets(targets)
    [error] = spec.write(USUAL + 'name = "eos"\n').errors().values()
    assert str(error) == line.format(spec=spec.file, file=file)
