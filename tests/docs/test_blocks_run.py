"""Every fenced block of README, CONTRIBUTING and docs runs, page by page, in order, in one empty folder per page.

| language            | what happens                                                                                      |
|---------------------|---------------------------------------------------------------------------------------------------|
| python              | runs; all blocks of a page share their names                                                      |
| bash, sh, console   | runs, command by command; `# exit code N` at the end of a command says how it must end (else 0)   |
| text                | what the block before printed: every line must be in it, in order; `…` stands for anything        |
| toml, json, csv     | parsed; with title="NAME" also written to that file                                               |

A command that ends with `&` is a service: it prints what it says until it listens, and ends with `kill %1` or with its page. The
address 127.0.0.1:8000 stands for a free port. Where there is no curl, `curl.py` stands in for it.

Any other language fails, and so does none. Long work is tried, not run: `make TARGET` with -n, scripts with --help, and of
`pip install` the names of extras are looked up.
"""

import contextlib
import csv
import http.server
import io
import json
import os
import re
import runpy
import shlex
import shutil
import socket
import subprocess
import sys
import threading
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.docs import curl

from gcon.cli import app as cli

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
FAST_PAGES = {"README.md", "CONTRIBUTING.md", "docs/five-minutes.md"}  # what people try first
FENCE = re.compile(r"^\s*(```+|~~~+)(.*)$")
EXIT_CODE = re.compile(r"#.*\bexit code (\d+)\s*$")
SERVICE = "127.0.0.1:8000"  # where pages ask a service
PROGRAMS = Path(sys.prefix) / "bin"
CURL = Path(__file__).with_name("curl.py")
SHELL_ONLY = set("|&;<>$`*?(){}~")  # what only a shell understands


@dataclass
class Block:
    language: str
    title: str | None
    text: str
    line: int


def blocks(text):
    """The fenced blocks of a page. A fence that is never closed is an error."""
    found, fence, start, head, lines = [], None, 0, "", []
    for number, line in enumerate(text.splitlines(), start=1):
        mark = FENCE.match(line)
        if fence is None and mark:
            fence, head, start, lines = mark[1], mark[2].strip(), number, []
        elif fence is not None and mark and mark[1].startswith(fence) and not mark[2].strip():
            title = re.search(r'title="([^"]+)"', head)
            language = head.split()[0] if head else ""
            found.append(Block(language, title[1] if title else None, "\n".join(lines) + "\n", start))
            fence = None
        elif fence is not None:
            lines.append(line)
    assert fence is None, f"line {start}: a fence that is never closed"
    return found


def commands(block):
    """The commands of a shell block and the exit code that each must have."""
    for line in block.replace("\\\n", " ").splitlines():
        if line.strip() and not line.lstrip().startswith("#"):
            code = EXIT_CODE.search(line)
            yield line.strip(), int(code[1]) if code else 0


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return taken.getsockname()[1]


@dataclass
class Runner:
    """One page in one folder."""

    folder: Path
    patch: pytest.MonkeyPatch
    names: dict = field(default_factory=lambda: {"__name__": "__main__"})
    printed: str | None = None
    port: int = field(default_factory=free_port)
    service: subprocess.Popen | None = None

    def run(self, block):
        block.text = block.text.replace(SERVICE, SERVICE.replace("8000", str(self.port)))
        runners = {
            "python": self.python,
            "bash": self.shell,
            "sh": self.shell,
            "console": self.shell,
            "text": self.output,
            "toml": lambda found: self.data(found, tomllib.loads),
            "json": lambda found: self.data(found, json.loads),
            "csv": lambda found: self.data(found, same_width),
        }
        assert block.language in runners, f"no runner for the language {block.language!r}"
        runners[block.language](block)

    def python(self, block):
        with capture() as printed:
            exec(compile(block.text, f"block at line {block.line}", "exec"), self.names)
        self.printed = printed.getvalue()

    def shell(self, block):
        self.printed = ""
        for command, expected in commands(block.text):
            code, printed = self.command(command)
            self.printed += printed
            assert code == expected, f"{command}\nended with {code}, not {expected}:\n{printed}"

    def command(self, command):
        words = shlex.split(command, comments=True)
        if words[0] == "make":
            return dry_run(words[1:])
        if is_long_work(words):
            return ask_for_help(words)
        if words[:2] == ["pip", "install"]:
            return look_for_extras(words[2:])
        if words[1:3] == ["-m", "venv"] or command == ". .venv/bin/activate":
            return 0, ""  # these tests have an environment
        if words[-1] == "&":
            return self.start(command)
        if words == ["kill", "%1"]:
            return self.stop(), ""
        if words[0] == "gcon" and not SHELL_ONLY & set("".join(words)):
            return self.gcon(words)
        here = ROOT if ".venv/" in command else self.folder
        line = command.replace(".venv/bin/", f"{PROGRAMS}/")
        done = subprocess.run(
            ["bash", "-c", line], cwd=here, env=self.environment(), capture_output=True, text=True, check=False
        )
        return done.returncode, done.stdout + done.stderr

    def environment(self):
        """With our programs first, and with a curl in the end."""
        folders = [str(PROGRAMS), os.environ["PATH"]]
        if shutil.which("curl") is None:
            stand_in = self.folder / ".programs" / "curl"
            stand_in.parent.mkdir(exist_ok=True)
            stand_in.write_text(f"#!{sys.executable}\n{CURL.read_text()}")
            stand_in.chmod(0o755)
            folders.append(str(stand_in.parent))
        return os.environ | {"PATH": os.pathsep.join(folders)}

    def start(self, command):
        """A service in the background, on the page's port; back when it listens, or when it has ended."""
        assert self.service is None, "one service at a time"
        line = f"exec {command.rstrip(' &')} --port {self.port}"
        self.service = subprocess.Popen(
            ["bash", "-c", line],
            cwd=self.folder,
            env=self.environment() | {"OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        said = ""
        for part in iter(self.service.stdout.readline, ""):
            said += part
            if part.startswith("Listening"):
                return 0, said
        return self.stop() or 1, said

    def stop(self):
        """End the service as `kill %1` does; gives its exit code."""
        assert self.service is not None, "no service is running"
        service, self.service = self.service, None
        service.terminate()
        service.communicate(timeout=60)
        return service.returncode

    def gcon(self, words):
        """In this process: starting Python and torch for every command would take most of the time."""
        self.patch.setattr(sys, "argv", words)
        with capture() as printed, pytest.raises(SystemExit) as stopped:
            cli.main()
        return stopped.value.code, printed.getvalue()

    def output(self, block):
        assert self.printed is not None, "a block of output without a block that prints it"
        lines = iter(self.printed.splitlines())
        for wanted in block.text.splitlines():
            pattern = re.escape(wanted.rstrip()).replace("…", ".*")
            assert any(re.fullmatch(pattern, line.rstrip()) for line in lines), (
                f"not printed, or not in this order: {wanted}\nprinted:\n{self.printed}"
            )

    def data(self, block, parse):
        parse(block.text)
        if block.title:
            (self.folder / block.title).write_text(block.text)


@contextlib.contextmanager
def capture():
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        yield printed


def same_width(text):
    assert len({len(row) for row in csv.reader(io.StringIO(text))}) == 1, "rows of different lengths"


def dry_run(targets):
    """Make's plan for the targets; a target that does not exist fails."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    done = subprocess.run(
        ["make", "-n", *targets], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


def look_for_extras(words):
    """What pip is asked for is this package or a known one, with extras that it has."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    asked = [re.fullmatch(r"(?:\.|gcon)(?:\[([\w,]+)\])?", word) for word in words if not word.startswith("-")]
    known = all(each is not None and set((each[1] or "cli").split(",")) <= set(extras) for each in asked)
    return int(not known), f"asked for: {words}"


def is_long_work(words):
    return len(words) > 1 and Path(words[0]).name in ("python", "python3") and script_of(words) is not None


def script_of(words):
    """The file of `python -m gcon.MODULE`, `python -m gcon_lab.MODULE` or `python benchmarks/SCRIPT`."""
    if words[1] == "-m":
        place = {"gcon": "src", "gcon_lab": "lab"}.get(words[2].split(".")[0])
        if place is None:
            return None
        module = ROOT / place / Path(*words[2].split("."))
        return module / "__main__.py" if module.is_dir() else module.with_suffix(".py")
    return ROOT / words[1] if words[1].startswith("benchmarks/") else None


def ask_for_help(words):
    """Run a script with --help, and look for the options of the command in what it says."""
    script, options = script_of(words), [word for word in words[1:] if word.startswith("--")]
    with pytest.MonkeyPatch.context() as patch, capture() as printed:
        patch.setattr(sys, "argv", [str(script), "--help"])
        patch.syspath_prepend(script.parent)  # as python does for a script
        with pytest.raises(SystemExit) as stopped:
            runpy.run_path(str(script), run_name="__main__")
    said = printed.getvalue()
    missing = [option for option in options if option not in said]
    return (stopped.value.code or 0) or bool(missing), said


@pytest.fixture
def runner(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("GCON_DATA", raising=False)  # what a page shows needs no data set
    page = Runner(tmp_path, monkeypatch)
    yield page
    if page.service is not None:
        page.stop()


def name_of(page):
    return str(page.relative_to(ROOT))


def with_mark(page):
    return pytest.param(page, marks=[] if name_of(page) in FAST_PAGES else pytest.mark.slow)


@pytest.mark.parametrize("page", [with_mark(page) for page in PAGES if blocks(page.read_text())], ids=name_of)
def test_every_block_runs(page, runner):
    for block in blocks(page.read_text()):
        try:
            runner.run(block)
        except Exception as error:
            error.add_note(f"in {name_of(page)}, the block at line {block.line}")
            raise


def spans(start):
    """Commands in running text, each once: code between single backticks that starts like this."""
    found = {span for page in PAGES for span in re.findall(rf"`({re.escape(start)} [^`]+)`", page.read_text())}
    return sorted(found)


@pytest.mark.parametrize("command", spans("gcon"))
def test_commands_in_running_text_name_verbs_and_options_that_exist(command):
    _, name, *words = shlex.split(command)
    if name.startswith("-"):  # gcon --help, gcon --version
        with capture(), pytest.raises(SystemExit) as stopped, pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", ["gcon", name, *words])
            cli.main()
        assert stopped.value.code == 0, command
        return
    assert name in cli.VERBS, command
    verb = cli.command(name)
    while words and hasattr(verb, "commands"):
        name = words.pop(0) if words[0] in verb.commands else "run"  # gcon serve RELEASE is gcon serve run RELEASE
        assert name in verb.commands, command
        verb = verb.commands[name]
    known = {name for parameter in verb.params for name in (*parameter.opts, *parameter.secondary_opts)}
    for word in words:
        assert not word.startswith("-") or word in known | {"--help"}, command


@pytest.mark.parametrize("command", [*spans("make"), *spans(".venv/bin/python")])
def test_long_work_in_running_text_can_start(command):
    words = shlex.split(command)
    code, printed = dry_run(words[1:]) if words[0] == "make" else ask_for_help(words)
    assert code == 0, printed


class TestTheRunnerItself:
    """A runner that lets everything pass would be worse than none."""

    @pytest.mark.parametrize(
        "text",
        [
            "```\nno language\n```",
            "```ruby\nputs 1\n```",
            "```bash\nfalse\n```",
            "```bash\ngcon plan --epsilon -1\n```",
            "```bash\ntrue  # exit code 2\n```",
            "```bash\nmake no-such-target\n```",
            "```bash\npip install gcon[no-such-extra]\n```",
            "```bash\npip install gcon-from-elsewhere\n```",
            "```bash\n.venv/bin/python -m gcon_lab.experiments.baselines --no-such-option 1\n```",
            "```python\nprint(1)\n```\n```text\n2\n```",
            "```text\nnobody printed this\n```",
            '```toml title="x.toml"\n= 1\n```',
        ],
    )
    def test_wrong_blocks_fail(self, text, runner):
        *before, last = blocks(text)
        for block in before:
            runner.run(block)
        with pytest.raises((AssertionError, tomllib.TOMLDecodeError)):
            runner.run(last)

    @pytest.mark.slow
    def test_a_service_that_does_not_start_fails(self, runner):
        (block,) = blocks("```bash\ngcon serve no-such-folder &\n```")
        with pytest.raises(AssertionError, match="no-such-folder"):
            runner.run(block)
        assert runner.service is None

    def test_a_service_is_started_and_stopped(self, tmp_path, monkeypatch):
        page = Runner(tmp_path, monkeypatch)
        started = "import signal, sys; signal.signal(15, lambda *_: sys.exit(3)); print('Listening', flush=True); signal.pause()"
        (tmp_path / "service.py").write_text(started)
        code, said = page.command(f"{sys.executable} service.py &")
        assert (code, said) == (0, "Listening\n")
        assert page.command("kill %1") == (3, "")

    def test_the_stand_in_for_curl(self, runner, tmp_path, capsys):
        class Echo(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                self.send_response(401)
                self.end_headers()
                self.wfile.write(self.headers["x"].encode() + self.rfile.read(int(self.headers["content-length"])))

            def log_message(self, *_):
                pass

        (tmp_path / "headers").write_text("x: y\n")
        with http.server.HTTPServer(("127.0.0.1", 0), Echo) as server:
            threading.Thread(target=server.handle_request, daemon=True).start()
            address = f"http://127.0.0.1:{server.server_port}/"
            assert curl.main(["-s", "-H", f"@{tmp_path / 'headers'}", "--json", "{}", address]) == 0
        assert capsys.readouterr().out == "y{}"
        assert curl.main(["-s", f"http://127.0.0.1:{free_port()}/"]) == 7

    def test_a_fence_must_be_closed(self):
        with pytest.raises(AssertionError):
            blocks("```python\nprint(1)\n")

    def test_right_blocks_pass(self, runner):
        text = """
```bash
# a comment
gcon version \\
  --quiet
echo one && echo two   # in a shell
exit 3  # exit code 3
```
```text
o…
two
```
```csv title="t.csv"
a,b
1,2
```
```python
from pathlib import Path

print(Path("t.csv").read_text())
```
```text
1,2
```
"""
        for block in blocks(text):
            runner.run(block)
