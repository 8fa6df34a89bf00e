"""The whole line of a fault, where it has to say what its author meant."""

from __future__ import annotations

from typing import Any

import pytest

WORKLOAD = '[workload]\nrecipe = "maxtext/llama2-tiny"\ngpu_type = "cpu"\ndtype = "fp32"\ngpus = 1\n'
LOCAL = '[target]\nscheduler = "local"\n'
USUAL = WORKLOAD + LOCAL
B200 = '[workload]\nrecipe = "maxtext/llama2-70b"\ngpu_type = "b200"\ndtype = "nvfp4"\ngpus = 64\n'
INSTALLED = "expected one of local, slurm"


def lines(spec: Any, text: str) -> list[str]:
    """All faults as they are printed, without the name of the spec."""
    found = spec.write(text).faults().values()
    return [str(fault).removeprefix(f"{spec.file}: ") for fault in found]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (WORKLOAD + "[target]\n", f"target.scheduler: is missing; {INSTALLED}"),
        (
            WORKLOAD + '[target]\nscheduler = "slrum"\n',
            "target.scheduler: scheduler plugin 'slrum' is not installed; expected one of local, "
            "slurm (did you mean 'slurm'?)",
        ),
        (
            USUAL.replace("gpus = 1", "gpus = []"),
            "workload.gpus: is []; expected a whole number of at least 1, or a list of such",
        ),
        (
            USUAL.replace("gpus = 1", "gpus = [1, 2, 1]"),
            "workload.gpus: has 1 more than once; expected each value once; workload.repeats runs all again",
        ),
        (
            USUAL + '[sweep]\n"model.layers" = [2, 2]\n',
            "sweep.model.layers: has 2 more than once; expected each value once; workload.repeats runs all again",
        ),
        (
            USUAL.replace("gpus = 1", "gpus = 1\nsteps = [10, 20]"),
            'workload.steps: is [10, 20]; expected a whole number of at least 1, or "workload.steps" = [10, 20] in '
            "[sweep]",
        ),
        (
            USUAL + '[sweep]\n"sweep.tp" = [1, 2]\n',
            'sweep.sweep.tp: is not a key to sweep; expected a dotted key such as "parallelism.tp" '
            "(did you mean 'parallelism.tp'?)",
        ),
        (
            USUAL + '[mounts]\n"rel" = "/x"\n',
            'mounts."rel": is no absolute path; expected "/path/outside" = "/path/inside" or "/path/inside:ro"',
        ),
        (
            USUAL + '[mounts]\n"/a" = "/x"\n"/b" = "/x/:ro"\n',
            'mounts."/b": is mounted at /x/, and "/a" too; expected another path inside',
        ),
        (
            USUAL + "[measure]\nwindow = [44, 35]\n",
            'measure.window: is [44, 35], and 44 comes after 35; expected "last", or the first and last step of a '
            "mean, within 0 and 50",
        ),
        (
            USUAL.replace("maxtext/llama2-tiny", "megatron_bridge/llama3-tiny") + '[framework]\nhf_token = "no"\n',
            "framework.hf_token: is a string; expected true or false",
        ),
        (
            USUAL + '[framework.config]\n"a b" = 1\n',
            "framework.config.a b: is not a key; expected names with dots between them, without blanks",
        ),
        (
            USUAL + '[framework.config]\n"" = 1\n',
            "framework.config.: is not a key; expected names with dots between them, without blanks",
        ),
        (
            USUAL + "[parallelism]\npp = 2\n",
            "workload.gpus: 1 GPU cannot be divided by tp x pp x cp = 1 x 2 x 1 = 2; expected a multiple of 2",
        ),
        (
            USUAL.replace("fp32", "fp23"),
            "workload.dtype: is \"fp23\", which cpu does not have; expected fp32 (did you mean 'fp32'?)",
        ),
    ],
)
def test_the_line_says_what_to_write(spec: Any, text: str, line: str) -> None:
    assert lines(spec, text) == [line]


def test_names_that_are_missing_say_which_command_lists_them(spec: Any) -> None:
    assert lines(spec, "[workload]\n" + LOCAL) == [
        "workload.recipe: is missing; expected an address that `llmb recipes` lists",
        *(
            f"workload.{key}: is missing; expected one that `llmb recipes ADDRESS` lists"
            for key in ("gpu_type", "dtype", "gpus")
        ),
    ]


def test_a_wrong_dtype_is_told_beside_a_wrong_gpu_type(spec: Any) -> None:
    gpu_type, dtype = lines(spec, USUAL.replace('"cpu"', '"cqu"').replace("fp32", "z"))
    assert "did you mean 'cpu'" in gpu_type
    assert dtype == 'workload.dtype: is "z", which maxtext/llama2-tiny does not have; expected fp32'


OTHER_GPU = (
    'workload.gpu_type: is "h100", which has none of the dtypes of maxtext/llama2-tiny: fp32; expected one of cpu'
)


@pytest.mark.parametrize("parallelism", ["", "[parallelism]\nglobal_batch_size = 4\n"])
@pytest.mark.parametrize(
    ("dtype", "told"),
    [
        ("fp32", []),
        ("bf16", ['workload.dtype: is "bf16", which maxtext/llama2-tiny does not have; expected fp32']),
    ],
)
def test_a_gpu_without_any_dtype_of_the_recipe_is_what_is_wrong(
    spec: Any, parallelism: str, dtype: str, told: list[str]
) -> None:
    text = USUAL.replace('"cpu"', '"h100"').replace("fp32", dtype) + parallelism
    assert lines(spec, text) == [OTHER_GPU, *told]


@pytest.mark.parametrize(
    ("parallelism", "keys"),
    [("", ["workload.gpu_type", "workload.dtype"]), ("[parallelism]\nglobal_batch_size = 256\n", ["workload.dtype"])],
)
def test_a_dtype_that_a_recipe_lacks_names_no_gpu_that_nobody_asked_for(
    spec: Any, parallelism: str, keys: list[str]
) -> None:
    told = lines(spec, B200 + parallelism + LOCAL)
    assert [line.partition(":")[0] for line in told] == keys
    dtype = 'workload.dtype: is "nvfp4", for which maxtext/llama2-70b is not published; expected one of bf16, fp8'
    assert told[-1].startswith(dtype)


def test_a_key_that_stands_in_no_table_is_meant_as_the_one_of_that_name(spec: Any) -> None:
    [line] = lines(spec, "steps = 10\n" + USUAL)
    assert line.endswith("(did you mean 'workload.steps'?)")


@pytest.mark.parametrize(
    ("targets", "line"),
    [
        (
            '[eos]\nscheduler = "slurm"\naccount = "me"\n',
            '{spec}: target.scheduler: is "local", and eos in {file} has "slurm"; expected "slurm", or no name',
        ),
        ('eos = "slurm"\n', '{file}: eos: is "slurm"; expected a table [eos] with a scheduler'),
    ],
)
def test_a_name_of_the_targets_file_that_does_not_fit_says_why(
    spec: Any, write_targets: Any, targets: str, line: str
) -> None:
    file = write_targets(targets)
    [fault] = spec.write(USUAL + 'name = "eos"\n').faults().values()
    assert str(fault) == line.format(spec=spec.file, file=file)
