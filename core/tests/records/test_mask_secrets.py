"""Secrets in logs: masked however the log is cut, with the same number of bytes."""

from __future__ import annotations

import base64
import itertools
import json
import os
import re
import subprocess
from collections.abc import Callable, Mapping
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmb.records.log_copies.mask_cut_lines import LINE_BYTES
from llmb.records.log_copies.mask_secrets import SecretMask, known_secrets

SECRET = "correct horse&$1"
TOKEN = "hf_" + "aB3" * 11
TEXT = (
    f"env\nPASSWORD={SECRET}\nHF_TOKEN={TOKEN}\nkey={SECRET[:7]} {TOKEN}{SECRET}\nstep 1: 2.5 s, hf_model_x\n".encode()
)


def copied(data: bytes, cuts: list[int], mask: SecretMask) -> bytes:
    """Copy data as a run's logs are: each block begins where the copy ends."""
    copy = b""
    for cut in sorted(cuts):
        copy += mask.mask(data[len(copy) : max(cut, len(copy))])
    return copy + mask.mask(data[len(copy) :], is_last=True)


@given(st.lists(st.integers(0, len(TEXT)), max_size=30))
def test_no_secret_survives_however_a_log_is_cut(cuts: list[int]) -> None:
    copy = copied(TEXT, cuts, SecretMask([SECRET]))
    assert copy == copied(TEXT, [], SecretMask([SECRET]))
    assert len(copy) == len(TEXT)
    assert SECRET.encode() not in copy
    assert TOKEN.encode() not in copy
    assert b"step 1: 2.5 s, hf_model_x\n" in copy


def test_single_bytes_leave_nothing_of_a_secret() -> None:
    assert re.findall(rb"[a-z&]+", copied(TEXT, [*range(len(TEXT))], SecretMask([SECRET])).split(b"\n")[1]) == []


TOKENS = (
    "hf_" + "x" * 34,
    "hf_oauth_" + "aB3" * 11,
    "hf_oauth_" + "eyJ_" * 11 + "-x",
    "hf_jwt_" + "eyJhbGci-_" * 5,
    "nvapi-" + "A1_-" * 16,
    "ghp_" + "1" * 36,
    "dckr_pat_" + "a-B_1" * 5 + "xy",
    "ghs_" + "1_eyJ-" * 9,
    "github_pat_" + "11A" * 7 + "_" + "b" * 59,
    "glpat-" + "k" * 20,
    "xoxb-" + "1" * 12 + "-" + "a" * 24,
    "sk-" + "a" * 20 + "T3BlbkFJ" + "b" * 20,
    "sk-proj-" + "aB_-" * 37,
    "sk-proj-" + "aB_-" * 4,
    "sk-ant-" + "api03-" + "a" * 15,
    "sk-svcacct-" + "b" * 20,
    "AKIA" + "EXAMPLE7" * 2,
    "ASIA" + "EXAMPLE7" * 2,
    "wandb_v1_" + "aB3_" * 19 + "a",
    "pypi-" + "AgEIcHlwaS5vcmc" + "a-B_" * 40,
    "AIza" + "Sy_-1" * 7,
    "npm_" + "aB3x" * 9,
)


@pytest.mark.parametrize("token", TOKENS)
def test_tokens_are_masked_by_their_shape_if_their_values_are_unknown(token: str) -> None:
    masked = SecretMask([]).mask(f"token={token};".encode(), is_last=True)
    assert masked == b"token=" + b"*" * len(token) + b";"


@pytest.mark.parametrize("token", TOKENS)
@pytest.mark.parametrize("before", ["", "token=", " ", '"'])
def test_tokens_of_unknown_values_are_masked_however_a_log_is_cut(before: str, token: str) -> None:
    data = f"{before}{token} {token}\n".encode()
    expected = before.encode() + b"*" * len(token) + b" " + b"*" * len(token) + b"\n"
    for cut in range(len(data)):
        assert copied(data, [cut], SecretMask([])) == expected
    assert copied(data, [*range(len(data))], SecretMask([])) == expected


ORDINARY = (
    b"task-1 of disk-usage-of-all-the-nodes-of-the-cluster-in-gigabytes, risk-" + b"a" * 50,
    b"task-proj-" + b"a" * 50 + b" disk-ant-" + b"b" * 20 + b" task-proj-" + b"c" * 20,
    b"ASIA AKIA ASIA-PACIFIC EURASIANORTHEASTERNREGIONS AKIA" + b"X" * 17 + b" asia",
    b"hf_model hf_checkpoint_to_megatron_converter convert_hf_config_to_distributed_checkpoint wandb_v1",
    b"wandb: run at github_pat sk-learn xox task-",
    b"log ends with github",
    b"hf_cache=/tmp hf_home, hf_model_dir: hf_checkpoint github_pat_rotation_of_all_projects hf_cache",
    b"hf_home",
    b"no such folder: hf_model_dir",
    b"see github_pat_dir",
    b"project wandb_v1_migration",
    b"npm_config_cache=/root/.npm npm_lifecycle_event pypi-server AIza AIzawa",
)


URLS = (
    "http://user:PASSWORD@proxy:3128",
    "https://:PASSWORD@proxy.example.com/simple?a=b@c",
    "socks5h://a.user:PASSWORD@10.0.0.1:1080",
    "git+https://oauth2:PASSWORD@git.example.com/a/b.git#v1@2",
    "redis://:PASSWORD@[::1]:6379/0",
)


@pytest.mark.parametrize("url", URLS)
@pytest.mark.parametrize("password", ["x", "s3cret", "a:b@c!$'x", "é%40" * 12])
def test_passwords_in_urls_are_masked_however_a_log_is_cut(url: str, password: str) -> None:
    data = f"https_proxy={url}\n'{url}' {url}".replace("PASSWORD", password).encode()
    expected = data.replace(f":{password}@".encode(), b":" + b"*" * len(password.encode()) + b"@")
    for cut in range(len(data)):
        assert copied(data, [cut], SecretMask([])) == expected
    assert copied(data, [*range(len(data))], SecretMask([])) == expected


WITHOUT_PASSWORD = (
    b"http://localhost:8080/a@b http://user@host:80 ssh://git@host:22/a:b@c docker://ubuntu:24.04",
    b"docker://reg:5000#image@sha256:0123 tcp://10.0.0.1:29500 me@host",
    b'(http://a:80) "http://b:80","me@host" http://c:80?mail=me@host <http://d:80>me@host http:',
    b"git://" + b"a" * 800 + b":b@c",
)


@pytest.mark.parametrize("text", ORDINARY + WITHOUT_PASSWORD)
def test_words_and_urls_without_a_secret_remain_however_a_log_is_cut(text: bytes) -> None:
    for cut in range(len(text)):
        assert copied(text, [cut], SecretMask([])) == text
    assert copied(text, [*range(len(text))], SecretMask([])) == text


@pytest.mark.parametrize(
    "written", ["it's a$ecret\"x", "'it'\"'\"'s a$ecret\"x'", "it's a$ecret\\\"x", "it%27s%20a%24ecret%22x"]
)
def test_a_value_is_masked_as_a_shell_json_or_a_url_writes_it(written: str) -> None:
    masked = SecretMask(["it's a$ecret\"x"]).mask(f"<{written}>\n".encode())
    assert masked == b"<" + b"*" * len(written) + b">\n"


@pytest.mark.parametrize("command", ["export -p", "set", 'set -x; : "$VALUE"', "printf '%q\\n' \"$VALUE\""])
@pytest.mark.parametrize("value", ["it's s3cret", 's3"cr$et`1', "s3cr\\et/1+2", "s3cret é!#{x}", "~s3cret"])
def test_a_value_is_masked_as_bash_prints_its_variables(command: str, value: str) -> None:
    env = {"VALUE": value, "PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}
    printed = subprocess.run(
        ["bash", "-c", f"{{ {command}; }} 2>&1"], env=env, stdout=subprocess.PIPE, check=True
    ).stdout
    assert b"cr" in printed
    masked = SecretMask([value]).mask(printed, is_last=True)
    assert not [line for line in masked.splitlines() if b"s3" in line]


@pytest.mark.parametrize("value", ['s3"cr\\et', "s3cr'et\\1", "s3crét\\1"])
def test_a_value_is_masked_as_python_prints_it(value: str) -> None:
    for printed in (str({"VALUE": value}), json.dumps({"VALUE": value}, ensure_ascii=False)):
        assert "s3" not in SecretMask([value]).mask_text(printed)


def test_a_value_is_masked_as_a_url_writes_it() -> None:
    for written in (quote("s3cret/1 +2"), quote("s3cret/1 +2", safe=""), quote_plus("s3cret/1 +2")):
        assert (
            SecretMask(["s3cret/1 +2"]).mask_text(f"GET /x?key={written}&a=1") == f"GET /x?key={'*' * len(written)}&a=1"
        )


def test_a_value_is_masked_as_a_url_in_lower_case_writes_it() -> None:
    assert SecretMask(["s3cret/1+2"]).mask_text("key=s3cret%2f1%2b2&a=1") == "key=**************&a=1"


@pytest.mark.parametrize("before", ["", "u", "me:", "user:", "token=a "])
@pytest.mark.parametrize("after", ["", "\n", '"}'])
@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
@pytest.mark.parametrize("value", ["s3cret", "s3cret1", "s3cret-?>~", "\x7fs3cr\xe9t\xfb\xff"])
def test_a_value_is_masked_in_base64(before: str, after: str, encode: Callable[[bytes], bytes], value: str) -> None:
    written = encode(f"{before}{value}{after}".encode()).decode()
    masked = SecretMask([value]).mask_text(f"Authorization: Basic {written};")
    begin = len("Authorization: Basic ")
    left = [at for at, character in enumerate(masked[begin : -len(";")]) if character != "*"]
    inside = range(-(-8 * len(before.encode()) // 6), 8 * len(f"{before}{value}".encode()) // 6)
    assert not {*inside} & {*left}
    assert len(masked) == begin + len(written) + 1


LONG = "".join(f"{number}-" for number in range(700))
"""A value of 2,690 bytes, which srun writes in three or four lines."""


def labelled(texts: Mapping[int, bytes]) -> bytes:
    """Return the log in which srun prints a line of each rank, with the parts of the lines of all ranks in turn."""
    size = LINE_BYTES
    parts = {rank: [text[at : at + size] for at in range(0, len(text), size)] for rank, text in texts.items()}
    turns = itertools.zip_longest(*([(rank, part) for part in each] for rank, each in parts.items()))
    return b"".join(b"%2d: %b\n" % each for turn in turns for each in turn if each)


@pytest.mark.parametrize("secret", [SECRET, LONG, "a" * 1024], ids=["short", "long", "line"])
@pytest.mark.parametrize("every", [100_000, 1023, 7])
def test_a_secret_in_lines_that_srun_cuts_is_masked(secret: str, every: int) -> None:
    cuts = [*range(0, 10_000, every)]
    for shift in range(1000, 1026, 5):
        texts = {rank: b"x" * (shift + rank) + secret.encode() + b"z" * 500 for rank in (0, 3, 11)}
        masked = {rank: text.replace(secret.encode(), b"*" * len(secret)) for rank, text in texts.items()}
        assert copied(labelled(texts), cuts, SecretMask([secret])) == labelled(masked)


def test_a_known_token_in_lines_that_srun_cuts_is_masked() -> None:
    """The part before the cut has the shape of a token, too."""
    token = "hf_" + "Ab9" * 11
    for shift in range(980, 1026):
        text = b"x" * shift + b" " + token.encode() + b" " + b"z" * 500
        masked = text.replace(token.encode(), b"*" * len(token))
        for every in (100_000, 1023, 7):
            cuts = [*range(0, 10_000, every)]
            assert copied(labelled({0: text, 3: text}), cuts, SecretMask([token])) == labelled({0: masked, 3: masked})


def test_a_cut_line_is_copied_with_the_next_one_so_that_another_process_can_mask_both() -> None:
    first, second = labelled({1: b"x" * 1015 + SECRET.encode()}).splitlines(keepends=True)
    assert SecretMask([SECRET]).mask(b" 1: step 1\n" + first) == b" 1: step 1\n"
    copy = SecretMask([SECRET]).mask(first + second, is_last=True)
    assert copy == first.replace(b"correct h", b"*" * 9) + b" 1: *******\n"


def test_lines_of_standard_error_may_come_between_the_parts_of_a_secret() -> None:
    """Both streams of a rank have the same label."""
    first, second = labelled({1: b"x" * 1015 + SECRET.encode()}).splitlines(keepends=True)
    third, fourth = labelled({1: b"y" * 1012 + SECRET.encode()}).splitlines(keepends=True)
    copy = copied(first + b" 1: correct\n 2: horse&$1\n" + third + fourth + second + fourth, [], SecretMask([SECRET]))
    assert copy == (
        first.replace(b"correct h", b"*" * 9) + b" 1: correct\n 2: horse&$1\n"
        + third.replace(b"correct hors", b"*" * 12) + b" 1: ****\n 1: *******\n" + fourth
    )  # fmt: skip


def test_ordinary_lines_of_srun_remain_and_are_copied_once_they_are_complete() -> None:
    log = labelled({0: b"x" * 3000, 1: b"step 1\n correct horse", 2: b"orrect horse&$1"}) + b" 2: \n12\n 3: end"
    assert copied(log, [*range(len(log))], SecretMask([SECRET])) == log
    mask = SecretMask([SECRET])
    assert mask.mask(b" 3: step 1\n 4: st") == b" 3: step 1\n"
    assert mask.mask(b" 4: step 1\n") == b" 4: step 1\n"
    assert mask.mask(b"10%|x\r20%|y\r") == b"10%|x\r20%|y\r"


def test_a_value_that_is_no_utf8_is_masked() -> None:
    value = os.fsdecode("s3crét".encode("latin-1"))
    assert SecretMask([value]).mask(b"PASSWORD=s3cr\xe9t\nkey=s3cr%E9t\n") == b"PASSWORD=******\nkey=********\n"


def test_a_log_that_ends_within_a_secret_keeps_no_part_of_it() -> None:
    assert SecretMask([SECRET]).mask(b"a " + SECRET[:9].encode(), is_last=True) == b"a *********"


@pytest.mark.parametrize("begin", ["hf_oauth_ab", "hf_" + "aB3" * 6, "sk-proj-a", "sk-ant-api03-", "sk-svcacct-ab"])
def test_a_log_that_ends_within_a_token_keeps_no_part_of_it(begin: str) -> None:
    assert copied(f"key={begin}".encode(), [], SecretMask([])) == b"key=" + b"*" * len(begin)


def test_a_secret_that_begins_another_one_does_not_uncover_its_end() -> None:
    mask = SecretMask(["abcdef", "abcdefghij"])
    assert copied(b"abcdefghij", [6], mask) == b"*" * 10
    assert copied(b"abcdef-ghij", [6], mask) == b"******-ghij"


@pytest.mark.parametrize("value", ["abcdefgh", "ABCabcdefgh", "P@proxy"])
def test_a_value_within_a_token_or_a_password_does_not_uncover_the_rest(value: str) -> None:
    token, url = b"hf_" + b"ABC" * 5 + b"abcdefghijkl" * 2, b"http://me:p{P@proxy}w@host"
    data, masked = token + b" " + url + b"\n", b"*" * len(token) + b" http://me:***********@host\n"
    for cut in range(len(data)):
        assert copied(data, [cut], SecretMask([value])) == masked


def test_short_values_are_no_secrets_because_any_log_contains_them() -> None:
    assert SecretMask(["1", "", "true"]).mask(b"step 1 true", is_last=True) == b"step 1 true"


def test_values_are_known_by_declaration_or_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LOGIN", "SITE_PASSWORD", "SORT_KEY"):
        monkeypatch.setenv(name, f"value-of-{name}")
    known = known_secrets(["LOGIN", "ABSENT"])
    assert "value-of-LOGIN" in known
    assert "value-of-SITE_PASSWORD" in known
    assert "value-of-SORT_KEY" not in known
