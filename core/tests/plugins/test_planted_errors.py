"""Broken plugins: each is one line that names plugin, hook, distribution and version, and breaks no other command."""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest
from parts.deadline import DEADLINE_S
from parts.screen import Screen

import llmb
from llmb.plugins import guard, load, slow_hooks
from llmb.plugins.find_plugins import PluginEntry


@attrs.frozen
class Planted:
    """An error in a plugin: the arguments of `Plugins.install` that plant it, and the message after the plugin."""

    title: str
    message: str
    kind: str
    code: Mapping[str, Any]


def framework(title: str, message: str, members: str = "", **code: Any) -> Planted:
    return Planted(title, message, "framework", {"members": members, **code})


def scheduler(title: str, message: str, members: str = "", **code: Any) -> Planted:
    return Planted(title, message, "scheduler", {"members": members, **code})


def hook(signature: str, body: str) -> str:
    return f"@hookimpl\ndef {signature}:\n    {body}"


def parser(method: str, body: str) -> dict[str, str]:
    """Return a framework whose log parser has this method."""
    return {
        "before": f"class Log(LogParser):\n    def feed(self, block, source=''): return ()\n"
        f"    def close(self): return ()\n    def {method}: {body}",
        "members": hook("parse_log(self)", "return Log()"),
    }


def needles(value: str) -> dict[str, str]:
    """Return a framework whose log parser has these needles."""
    return {
        "before": f"class Log(LineParser):\n    needles = {value}",
        "members": hook("parse_log(self)", "return Log()"),
    }


IMPORT = "import of llmb_odd:Plugin failed: "
HOOKS = f"does not match the hooks of llmb {llmb.VERSION}: "
NO_MESSAGE = "def __str__(self): raise ValueError"
OPTION = "word: str = attrs.field(default='x', {})"
STOP = "class Stop(BaseException): pass"

IN_IMPORTS = [
    framework("an exception", f"{IMPORT}ZeroDivisionError: division by zero", after="1 / 0"),
    framework("a missing module", f"{IMPORT}ModuleNotFoundError: No module named 'nothing'", after="import nothing"),
    framework("a syntax error", f"{IMPORT}SyntaxError: expected ':' (__init__.py, line ", after="def f()"),
    framework("SystemExit", f"{IMPORT}SystemExit: bye", after="sys.exit('bye')"),
    framework("a BaseException", f"{IMPORT}Stop", after=f"{STOP}\nraise Stop"),
    framework("endless recursion", f"{IMPORT}RecursionError: maximum recursion depth", after="def f(): f()\nf()"),
    framework("an exception without a message", f"{IMPORT}Odd: its message cannot be read",
              after=f"class Odd(Exception):\n    {NO_MESSAGE}\nraise Odd"),
    framework("a message of two lines", f"{IMPORT}OSError: no licence", after="raise OSError('no\\nlicence')"),
    framework("no such class", f"{IMPORT}AttributeError: module 'llmb_odd' has no attribute 'Plugin'",
              after="del Plugin"),
    framework("no such module", "import of llmb_odd.plugin:Plugin failed: ModuleNotFoundError: No module named",
              entry=".plugin:Plugin"),
    framework("a module", "the entry point llmb_odd names a module; expected MODULE:CLASS", entry=""),
    framework("the hooks of another kind", "it inherits from SchedulerHooks; expected FrameworkHooks, or the "
              "entry-point group llmb.schedulers", after="class Plugin(SchedulerHooks[Options]): pass"),
    framework("a class with arguments", f"{IMPORT}TypeError: Plugin.__init__() missing 1 required positional argument",
              "def __init__(self, port): pass"),
]  # fmt: skip

IN_ATTRIBUTES = [
    framework("a property that raises", "window failed: OSError: no disk",
              "@property\ndef window(self): raise OSError('no disk')"),
    framework("a property that exits", "log_files failed: SystemExit: 3",
              "@property\ndef log_files(self): sys.exit(3)"),
    framework("a property of a missing name", "options failed: AttributeError: 'Plugin' object has no attribute",
              "@property\ndef options(self): return self.nothing"),
    framework("a window of one number", f'{HOOKS}window is 5, not "last" or two numbers of steps', "window = 5"),
    framework("log files as a list", f"{HOOKS}log_files is ['*.log'], not a LogFiles", "log_files = ['*.log']"),
    framework("a name of log files as text", f'{IMPORT}InvalidValueError: LogFiles.training: invalid value "*.log"',
              "log_files = LogFiles(training='*.log')"),
    framework("a pattern that is no pattern", f"{IMPORT}{re.error.__name__}: missing ), unterminated subpattern",
              "log_files = LogFiles(experiment='(')"),
    framework("a pattern without a group", f"{IMPORT}ValueError: invalid LogFiles.experiment 'run'; expected a ",
              "log_files = LogFiles(experiment='run')"),
    framework("no options", f"{HOOKS}options is None, not an attrs class", "options = None"),
    framework("settings that are no attrs class", f"{HOOKS}settings is 3, not an attrs class", "settings = 3"),
    framework("options that are no attrs class", f"{HOOKS}options is <class 'dict'>, not an attrs class",
              "options = dict"),
    framework("an instance as options", f"{HOOKS}options is Options(words='{'a' * 45}..., not an attrs class",
              "options = Options()", options=f"words: str = '{'a' * 99}'"),
    framework("an option of a missing type", "options failed: NameError: name 'Nothing' is not defined",
              options="word: 'Nothing' = None"),
    scheduler("a flag as text", f"{HOOKS}single_node is 'no', not True or False", "single_node = 'no'"),
    scheduler("key hints without keys", f"{HOOKS}key_hints is ['queue'], not a mapping of words to keys",
              "key_hints = ['queue']"),
    scheduler("one poll interval", f"{HOOKS}poll_interval_s is 5, not two positive numbers of seconds",
              "poll_interval_s = 5"),
    scheduler("a poll interval of 0", f"{HOOKS}poll_interval_s is (0, 5), not two positive numbers of seconds",
              "poll_interval_s = (0, 5)"),
]  # fmt: skip

IN_OPTIONS = [
    framework("a validator that raises", "options failed: KeyError: 'word'",
              options=OPTION.format("validator=lambda options, field, value: {}[field.name]")),
    framework("a validator that exits", "options failed: SystemExit: 3",
              options=OPTION.format("validator=lambda options, field, value: sys.exit(3)")),
    framework("a converter that raises", "options failed: ZeroDivisionError: division by zero",
              options=OPTION.format("converter=lambda value: 1 / 0")),
    framework("an option of an unknown type", "options failed: TypeError: ",
              options="word: complex = 1j"),
]  # fmt: skip

IN_HOOKS = [
    framework("an exception", "build_job() failed: ValueError: deep inside",
              hook("build_job(self, run)", "raise ValueError('deep inside')")),
    framework("SystemExit", "build_job() failed: SystemExit: 3", hook("build_job(self, run)", "sys.exit(3)")),
    framework("a BaseException", "prepare_env() failed: Stop", hook("prepare_env(self)", "raise Stop"), before=STOP),
    framework("endless recursion", "prepare_env() failed: RecursionError: maximum recursion depth",
              hook("prepare_env(self)", "self.prepare_env()")),
    framework("an error of llmb that the hook must not raise", "build_job() failed: RecordError: no record",
              hook("build_job(self)", "raise RecordError('no record')")),
    framework("an exception without an error", "build_job() failed: TypeError: SpecError without an error in it",
              hook("build_job(self)", "raise SpecError()")),
    framework("a list as one error", "build_job() failed: TypeError: SpecError takes errors one by one: SpecError(*",
              hook("build_job(self)", "raise SpecError([Fault(message='odd')])")),
    framework("an unfinished hook", "build_job() failed: NotImplementedError",
              hook("build_job(self)", "raise NotImplementedError")),
    framework("a command as a string", 'build_job() failed: InvalidValueError: Phase.command: invalid value "true"',
              hook("build_job(self)", "Phase(name='a', command='true')")),
    framework("two phases of one name", "build_job() failed: ValueError: Job.phases: several phases are named train",
              hook("build_job(self, run)", "return run.job([Phase(name='train', command=['true'])] * 2)")),
    framework("no measured phase", "build_job() returned a job in which no phase is measured",
              hook("build_job(self, run)",
                   "return run.job([Phase(name='train', command=['true'], measured=False)])")),
    framework("a number as a secret", "prepare_env() failed: InvalidValueError: Environment.secrets[0]: ",
              hook("prepare_env(self)", "return Environment(secrets=[3])")),
    framework("no result", "build_job() returned None; expected Job", hook("build_job(self)", "pass")),
    framework("a coroutine", "prepare_env() returned coroutine; expected Environment",
              "@hookimpl\nasync def prepare_env(self): pass"),
    framework("a generator of one value", "build_job() returned generator; expected Job",
              hook("build_job(self)", "yield")),
    framework("a tuple as a dataset", "prepare_dataset() returned tuple; expected Dataset | None",
              hook("prepare_dataset(self)", "return ()")),
    framework("a parser without close()", "parse_log() returned Log; expected LogParser",
              hook("parse_log(self)", "return type('Log', (), {'feed': print})()")),
    framework("a class as a parser", "parse_log() returned the class LineParser; return LineParser()",
              hook("parse_log(self)", "return LineParser")),
    framework("a needle as needles", "the log parser of parse_log() failed: ValueError: invalid needles b', took '; "
              "expected a tuple of bytes, such as (b'step',)", **needles("b', took '")),
    framework("text as a needle", "the log parser of parse_log() failed: ValueError: invalid needles ('step',); ",
              **needles("('step',)")),
    framework("an empty needle", "the log parser of parse_log() failed: ValueError: invalid needles (b'',); ",
              **needles("(b'',)")),
    scheduler("text as a script", "build_job() returned str; expected Script",
              hook("build_job(self)", "return 'exit 0'")),
    scheduler("a number as the text of a script", "build_job() failed: InvalidValueError: Script.text: invalid value 3",
              hook("build_job(self)", "return Script(id='a', directory='/a', text=3)")),
    scheduler("another id", 'build_job() returned a script with the id "a"; expected that of the job, "',
              hook("build_job(self, job)", "return Script(id='a', directory=job.directory, text='')")),
    scheduler("another directory", 'build_job() returned a script in "/a"; expected the directory of the job, "/',
              hook("build_job(self, job)", "return Script(id=job.id, directory='/a', text='')")),
    scheduler("no log of a phase", "build_job() returned no log of the phase train, which is measured",
              hook("build_job(self, job)", "return Script(id=job.id, directory=job.directory, text='')")),
    scheduler("a number as a host", "host() returned int; expected str | None", hook("host(self)", "return 3")),
    scheduler("text as tasks", "prepare_env() returned str; expected tuple[Task, ...]",
              hook("prepare_env(self)", "return 'abc'")),
    scheduler("text within tasks", "prepare_env() returned generator with str in it; expected tuple[Task, ...]",
              hook("prepare_env(self)", "yield 'abc'")),
    scheduler("a generator that raises midway", "prepare_env() failed: ZeroDivisionError: division by zero",
              hook("prepare_env(self)", "yield Task(key='a', kind='a', work='true', check='true')\n    1 / 0")),
    scheduler("a list as a probe", "probe() returned list; expected str", hook("probe(self)", "return ['true']")),
    scheduler("a list of handles", "submit() returned list; expected Mapping[str, JobHandle]",
              hook("submit(self)", "return []")),
    scheduler("text as a handle", "submit() returned dict with str in it; expected Mapping[str, JobHandle]",
              hook("submit(self, scripts)", "return {each.id: each.id for each in scripts}")),
    scheduler("no handle of a job", "submit() returned nothing for ", hook("submit(self)", "return {}")),
    scheduler("a bug in submit()", "submit() failed: ZeroDivisionError", hook("submit(self)", "1 / 0")),
    scheduler("a number as a reason", "submit() failed: InvalidValueError: JobHandle.refused: invalid value 3",
              hook("submit(self, scripts)", "JobHandle(id=scripts[0].id, directory='/', refused=3)")),
    scheduler("no status of a job", "poll() returned nothing for ",
              hook("poll(self)", "return {'x': JobStatus(state='running')}")),
    scheduler("a negative attempt", "poll() failed: InvalidValueError: JobStatus.attempt: invalid value -1; expected",
              hook("poll(self, handles)",
                   "return {each.id: JobStatus(state='ended', attempt=-1) for each in handles}")),
    scheduler("an unknown state", 'poll() failed: InvalidValueError: JobStatus.state: invalid value "queued"',
              hook("poll(self, handles)", "return {each.id: JobStatus(state='queued') for each in handles}")),
    scheduler("text as a parser", "parse_log() returned str; expected LogParser | None",
              hook("parse_log(self)", "return 'x'")),
]  # fmt: skip

IN_PARSERS = [
    framework("feed() raises", "ValueError: odd", **parser("feed(self, block, source='')", "raise ValueError('odd')")),
    framework("feed() exits", "SystemExit: 3", **parser("feed(self, block, source='')", "sys.exit(3)")),
    framework("close() raises", "ValueError: odd", **parser("close(self)", "raise ValueError('odd')")),
    framework("a generator that raises", "ZeroDivisionError: ", **parser("close(self)", "yield Step(step=1 // 0)")),
    framework("text as steps", "TypeError: 's' is neither", **parser("close(self)", "return 'steps'")),
    framework("no steps", "TypeError: 'NoneType' object is not iterable", **parser("close(self)", "return None")),
]

AT_LOAD = [*IN_IMPORTS, *IN_ATTRIBUTES]
PLANTED = [*AT_LOAD, *IN_OPTIONS, *IN_HOOKS]


def command(planted: Planted, plugins: Any) -> list[str | Path]:
    """Return a command that uses the plugin."""
    if planted.kind == "scheduler":
        plugins.install("framework", name="plain")
        return ["run", plugins.spec(framework="plain", scheduler="odd")]
    return ["validate", plugins.spec()]


def label(planted: Planted) -> str:
    return f"{planted.kind} plugin 'odd' (llmb-odd 1.2.3): {planted.message}"


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: f"{planted.kind}: {planted.title}")
def test_a_broken_plugin_is_one_line(planted: Planted, plugins: Any, run_llmb: Any) -> None:
    plugins.install(planted.kind, **planted.code)
    words = command(planted, plugins)
    done = run_llmb(*words)
    [line] = [line for line in done.stderr.splitlines() if "llmb-odd" in line]
    assert (done.returncode, done.stdout) == (2, "")
    assert label(planted) in line
    assert "Traceback" not in done.stderr
    document = run_llmb.json(*words, status=2)
    assert [error for error in document["errors"] if error["message"].startswith(label(planted))]


@pytest.mark.parametrize("planted", IN_PARSERS, ids=lambda planted: planted.title)
def test_a_broken_log_parser_is_one_line(
    planted: Planted, plugins: Any, run_llmb: Any, tmp_path: Path, one_line: Any
) -> None:
    plugins.install(planted.kind, **planted.code)
    log = tmp_path / "run.log"
    log.write_text("step 1\n")
    message = f"framework plugin 'odd' (llmb-odd 1.2.3): the log parser of parse_log() failed: {planted.message}"
    assert one_line(run_llmb("parse", "--framework", "odd", log)).startswith(f"{log}: {message}")
    [error] = run_llmb.json("parse", "--framework", "odd", log, status=2)["errors"]
    assert error["message"].startswith(message)


def test_broken_plugins_affect_no_command_that_does_not_use_them(plugins: Any, run_llmb: Any, spec: Any) -> None:
    for number, planted in enumerate([*PLANTED, *IN_PARSERS]):
        plugins.install(planted.kind, **{**planted.code, "name": f"odd{number}"})
    done = run_llmb("validate", spec.usual().file)
    assert (done.returncode, done.stderr) == (0, "")
    assert run_llmb.json("runs")["runs"] == []
    assert {each["address"] for each in run_llmb.json("recipes")["recipes"]} >= {"maxtext/llama2-tiny", "odd0/tiny"}
    listed = {each["name"]: each["error"] for each in run_llmb.json("plugins")["plugins"]}
    assert listed["maxtext"] is None
    for number, planted in enumerate([*PLANTED, *IN_PARSERS]):
        error = listed[f"odd{number}"]
        if planted in AT_LOAD:
            assert error.startswith(label(planted).replace("odd", f"odd{number}"))
        else:
            assert error is None


PRINTS = (
    "import subprocess\nprint('{0}: print')\nos.write(1, b'{0}: C code\\n')\nsubprocess.run(['echo', '{0}: program'])"
)


def test_what_a_plugin_prints_goes_to_standard_error(plugins: Any, run_llmb: Any) -> None:
    logging = "import logging\nlogging.basicConfig(stream=sys.stdout, format='%(message)s')\n"
    in_hook = PRINTS.format("hook").replace("\n", "; ") + "; logging.warning('hook: log')"
    plugins.install(
        "framework",
        hook("prepare_env(self)", f"{in_hook}; return Environment()"),
        before=logging + PRINTS.format("import"),
    )
    done = run_llmb.process("validate", plugins.spec(), "--json")
    assert json.loads(done.stdout)["runs"] == ["tiny-h100-bf16-1"]
    expected = [f"{code}: {way}" for code in ("import", "hook") for way in ("print", "C code", "program")]
    assert sorted(done.stderr.splitlines()) == sorted([*expected, "hook: log"])


def test_what_a_thread_of_a_plugin_prints_after_its_hook_goes_to_standard_error(plugins: Any, run_llmb: Any) -> None:
    """The thread ends after the last hook: the interpreter waits for it before it exits."""
    thread = "threading.Thread(target=lambda: (threading.main_thread().join(), print('too late'))).start()"
    plugins.install("framework", hook("prepare_env(self)", f"import threading; {thread}; return Environment()"))
    done = run_llmb.process("validate", plugins.spec(), "--json")
    assert json.loads(done.stdout)["runs"] == ["tiny-h100-bf16-1"]
    assert done.stderr == "too late\n"


def test_a_hook_neither_closes_standard_output_nor_sends_logs_of_llmb_there(plugins: Any, run_llmb: Any) -> None:
    log = "import logging; logging.basicConfig(stream=sys.stdout, level='DEBUG', format='%(message)s')"
    plugins.install("framework", hook("prepare_env(self)", f"{log}; sys.stdout.close(); return Environment()"))
    done = run_llmb.process("run", plugins.spec(target={"workdir": "/dev/null"}), "--json")
    assert "this machine runs" in done.stderr
    assert json.loads(done.stdout)["errors"]


def test_other_threads_print_on_standard_output_while_hooks_run(capsys: pytest.CaptureFixture[str]) -> None:
    entry = PluginEntry(name="odd", kind="framework", value="odd:Plugin", distribution="llmb-odd", version="1.0")
    began, first_may_end, second_may_end = threading.Event(), threading.Event(), threading.Event()

    def run_hook(may_end: threading.Event) -> None:
        with guard.Guard(entry).running("build_job()"):
            print("begin")
            began.set()
            may_end.wait(DEADLINE_S)
            print("end")

    first = threading.Thread(target=run_hook, args=[first_may_end])
    second = threading.Thread(target=run_hook, args=[second_may_end])
    for thread in (first, second):
        thread.start()
        began.wait(DEADLINE_S)
        began.clear()
    print("during the hooks")
    for thread, may_end in ((first, first_may_end), (second, second_may_end)):
        may_end.set()
        thread.join()
    print("after the hooks")
    assert capsys.readouterr() == ("during the hooks\nafter the hooks\n", "begin\nbegin\nend\nend\n")


def test_a_slow_hook_is_reported_while_it_runs(plugins: Any, run_llmb: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slow_hooks, "SLOW_S", 0.01)
    wait = "while 'prepare_env() has been running' not in sys.stderr.getvalue(): time.sleep(0.001)"
    plugins.install("framework", hook("prepare_env(self)", f"{wait}\n    return Environment()"))
    done = run_llmb("validate", plugins.spec())
    line = "llmb: framework plugin 'odd' (llmb-odd 1.2.3): prepare_env() has been running for 0.01 s\n"
    assert (done.returncode, done.stderr.count(line)) == (0, 1)


def test_the_report_of_a_slow_hook_is_broken_between_words(plugins: Any, tmp_path: Path) -> None:
    wait = f"while not os.path.exists('{tmp_path}/gate'): time.sleep(0.001)"
    soon = "from llmb.plugins import slow_hooks\nslow_hooks.SLOW_S = 0.01"
    plugins.install("framework", hook("prepare_env(self)", f"{wait}\n    return Environment()"), before=soon)
    screen = Screen.of_llmb("validate", str(plugins.spec()), env={**os.environ, "PYTHONPATH": str(tmp_path / "site")})
    shown = screen.wait_for("0.01 s\n")
    (tmp_path / "gate").touch()
    assert "llmb: framework plugin 'odd' (llmb-odd 1.2.3): prepare_env() has been running\n  for 0.01 s\n" in shown
    assert screen.end() == 0


def test_an_optional_hook_of_another_version_is_accepted(plugins: Any, run_llmb: Any) -> None:
    plugins.install("framework", "@hookimpl(optionalhook=True)\ndef tune(self, run):\n    return 3")
    assert run_llmb("validate", plugins.spec()).returncode == 0
    [listed] = [each for each in run_llmb.json("plugins")["plugins"] if each["name"] == "odd"]
    assert listed["error"] is None


@pytest.mark.parametrize("mark", ["hookwrapper", "wrapper"])
def test_a_hook_wrapper_is_rejected_in_one_line(plugins: Any, run_llmb: Any, mark: str) -> None:
    plugins.install("framework", f"@hookimpl({mark}=True)\ndef prepare_env(self, run):\n    return (yield)")
    done = run_llmb("validate", plugins.spec())
    assert "prepare_env() is a hook wrapper, but llmb calls one implementation of each hook; remove the" in done.stderr
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)


def test_release_candidates_count_as_their_release(
    plugins: Any, run_llmb: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load, "VERSION", "0.1.0rc1")
    plugins.install("framework", requires=("llmb>=0.1,<0.2",), version="1.0rc1")
    assert run_llmb("validate", plugins.spec()).returncode == 0
    [listed] = [each for each in run_llmb.json("plugins")["plugins"] if each["name"] == "odd"]
    assert (listed["version"], listed["error"]) == ("1.0rc1", None)
    monkeypatch.setattr(load, "VERSION", "0.2.0rc1")
    assert "requires llmb <0.2,>=0.1, but this is llmb 0.2.0rc1" in run_llmb("validate", plugins.spec()).stderr


def test_the_traceback_is_printed_for_debugging(plugins: Any, run_llmb: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLMB_DEBUG", "1")
    plugins.install("framework", hook("build_job(self)", "raise ValueError('deep inside')"))
    done = run_llmb("validate", plugins.spec())
    *trace, line = done.stderr.splitlines()
    assert (done.returncode, trace[0]) == (2, "Traceback (most recent call last):")
    assert any("llmb_odd/__init__.py" in each for each in trace)
    assert re.search(r"build_job\(\) failed: ValueError: deep inside \(__init__\.py, line \d+\)$", line)
    assert len(run_llmb.json("validate", plugins.spec(), status=2)["errors"]) == 1


def test_the_place_of_an_error_is_the_last_line_of_the_plugin_itself(
    plugins: Any, run_llmb: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLMB_DEBUG", "1")
    plugins.install("framework", hook("build_job(self)", "import json; json.loads('x')"))
    *trace, line = run_llmb("validate", plugins.spec()).stderr.splitlines()
    [number] = {*re.findall(r'llmb_odd/__init__.py", line (\d+), in build_job', "\n".join(trace))}
    assert "json/decoder.py" in "\n".join(trace), "the code that raises is another one"
    assert line.endswith(f"Expecting value: line 1 column 1 (char 0) (__init__.py, line {number})")


def test_ctrl_c_in_a_hook_interrupts_llmb(plugins: Any, run_llmb: Any) -> None:
    plugins.install("framework", hook("build_job(self)", "raise KeyboardInterrupt"))
    assert run_llmb("validate", plugins.spec()).returncode == 130
