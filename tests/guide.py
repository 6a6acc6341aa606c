"""README and the guides, run as a reader would: block by block, in a home folder and with a daemon of their own.

What the kinds of blocks mean:

- `console`: `$ CALL`, then what it prints. A line `…` stands for any lines. A call may fail if it prints something.
- `sh`: calls whose output is not shown; each ends well. `cd` and `export` hold for the rest of the page.
- `python`: a program; a block `text` after it is what it prints.
- any language with `title="PATH"`: the content of that file, which is written.
- `<!-- there is PATH: SOURCE -->`: what the reader has already, a file of the checkout or `models`: the embedding
  models, where they are by default; without it they are in the checkout, and must not be removed.
- `text title="Claude Code, …"`: a session of an agent whose hooks are installed: `> PROMPT`, `● ANSWER`, and after `⎿ `
  what the hook gave the agent.

Ids, dates, durations and scores differ each time and may do so; all else is what really comes out. A call may use an id
or the date in the name of a copy that an output on the page showed before: what came out in its place is used.
`python tests/guide.py docs/PAGE.md …` writes what comes out into the pages.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from hosting import Agent
from memoryd.client.programs.hooks.hosts import HOSTS, PROMPT, START, STOP
from places import make_folder

CHECKOUT = Path(__file__).parents[1]
HOME, RUN = "/home/ada", "/run/user/1000"  # what a page shows for the reader's folders
SETTLED_S = 100
NO_DAEMON = 3  # the exit code of memctl
_QUALITY = "it takes minutes, or an hour and public sets; tests/quality runs its parts"
_MACHINE = "it changes the machine; test_memctl_systemd.py runs what is ours of it"
# Lines of shell blocks that are not run, and why not. Whoever adds one says who runs it instead.
NOT_RUN = {
    "claude plugin marketplace add ./client/programs/hooks/plugins/claude-code": "test_agent_hosts.py runs it",
    "claude plugin install memoryd@memoryd": "test_agent_hosts.py runs it",
    "codex plugin marketplace add ./client/programs/hooks/plugins/codex": "test_agent_hosts.py runs it",
    "codex plugin add memoryd@memoryd": "test_agent_hosts.py runs it",
    "make wheel": "it makes an environment; tests/release.py runs it",
    'uv tool install "dist/memoryd-0.2.0-py3-none-any.whl[daemon,mcp,web]"': "tests/release.py runs it",
    'pipx install "dist/memoryd-0.2.0-py3-none-any.whl[daemon,mcp,web]"': "tests/release.py runs it",
    'pip install "dist/memoryd-0.2.0-py3-none-any.whl[daemon,mcp,web]"': "tests/release.py runs it",
    'pip install "dist/memoryd-0.2.0.tar.gz[daemon,mcp,web]"': "tests/release.py runs it",
    "make quality SETS=/path/to/folder": _QUALITY,
    "python tests/quality/evaluate.py tests/data/team": _QUALITY,
    "python tests/quality/pairs.py tests/data/pairs/pairs-seen.jsonl": _QUALITY,
    "python tests/quality/unasked.py tests/data/unasked/seen.jsonl": _QUALITY,
    "python tests/quality/saved.py projects changes hostile": _QUALITY,
    "python tests/quality/fit_changes.py": _QUALITY,
    "memctl model pull multilingual-e5-small": "it fetches 490 MB; tests/models runs pull",
    "memctl model use multilingual-e5-small": "it needs that model; tests/daemon/embedding runs use",
    "memctl service install": "it changes the user's systemd; test_memctl_systemd.py runs it",
    "memctl web": "it serves until it is ended; tests/memctl/web runs it",
    "memctl web --port 9000 --no-open": "it serves until it is ended; tests/memctl/web runs it",
    "memctl mcp --http": "it serves until it is ended; test_mcp_http.py runs it",
    "memctl doctor": "it judges this machine; tests/memctl/doctor runs it",
    "sudo /usr/bin/python3 -m venv /opt/memoryd": _MACHINE,
    'sudo /opt/memoryd/bin/pip install "memoryd-0.2.0-py3-none-any.whl[daemon,mcp]"': _MACHINE,
    "sudo ln -s /opt/memoryd/bin/memctl /opt/memoryd/bin/memoryd /usr/local/bin/": _MACHINE,
    'sudo loginctl enable-linger "$USER"': _MACHINE,
    "memctl service status": _MACHINE,
    "sudo useradd --system bot": _MACHINE,
    "sudo systemctl daemon-reload": _MACHINE,
    "sudo systemctl enable --now memoryd": _MACHINE,
    'botctl() { sudo -u bot env $(cat /etc/memoryd/environment) memctl "$@"; }': _MACHINE,
    "botctl status --no-autostart": _MACHINE,
    "serve() { local token; \\\n"
    '  token=$(botctl token add "$1" "${@:3}" 2> >(sed \'s/ The token is shown only now.*//\' >&2)) || return; \\\n'
    '  printf \'PORT=%s\\nMEMORYD_TOKEN=%s\\n\' "$2" "$token" | '
    'sudo install -m 600 /dev/stdin "/etc/memoryd/mcp-$1" || \\\n'
    '  { botctl token revoke "$1"; return 1; }; \\\n'
    '  sudo systemctl enable --now "memoryd-mcp@$1"; }': _MACHINE,
    "useradd --system --user-group bot; install -d /etc/memoryd; install -d -o bot -m 700 /var/lib/memoryd": _MACHINE,
    "install -d -o bot -m 700 /run/memoryd; . /etc/memoryd/commands.sh; botctl up": _MACHINE,
    "start ada": _MACHINE,
    'kill "$(cat /run/memoryd-mcp-ada.pid)"': _MACHINE,
    "serve ada 879 --namespace team/ada": _MACHINE,
    "serve ben 880 --namespace team/ben": _MACHINE,
    "serve cleo 881 --namespace team/cleo --role reader": _MACHINE,
    "botctl token revoke ben": _MACHINE,
    "sudo systemctl disable --now memoryd-mcp@ben": _MACHINE,
    "sudo rm /etc/memoryd/mcp-ben": _MACHINE,
    "botctl list --namespace team/ben --reach subtree": _MACHINE,
    "botctl erase --namespace team/ben --reach subtree --copies": _MACHINE,
    "sudo sed -n 's/^MEMORYD_TOKEN=//p' /etc/memoryd/mcp-ada": _MACHINE,
    'claude mcp add --transport http memory http://127.0.0.1:879/mcp --header "Authorization: Bearer TOKEN"': _MACHINE,
    "sudo MEMORYD_MODEL_DIR=/opt/memoryd/models memctl model pull all-MiniLM-L6-v2": _MACHINE,
    "export MEMORYD_MODEL_DIR=/opt/memoryd/models": "the page goes on with its own",
    "ssh -N -L 8379:127.0.0.1:879 server &": _MACHINE,
    "botctl backup /var/lib/memoryd/before-0.3.0.sqlite": _MACHINE,
    'sudo /opt/memoryd/bin/pip install --upgrade "memoryd-0.3.0-py3-none-any.whl[daemon,mcp]"': _MACHINE,
    "botctl status": _MACHINE,
    "sudo systemctl restart 'memoryd-mcp@*'": _MACHINE,
    "sudo systemctl stop memoryd": _MACHINE,
    "botctl restore /var/lib/memoryd/before-0.3.0.sqlite --no-autostart": _MACHINE,
    "sudo systemctl start memoryd": _MACHINE,
}
_OPENING = re.compile(r'(?P<indent> *)```(?P<language>\w+)(?: title="(?P<title>[^"]+)")?$')
_GIVEN = "⎿ "
_ID = re.compile(r"\b(?:[0-9a-f]{32}|[0-9a-f]{8}|\d{8}T\d{6}Z)\b")
_PATIENT = """import sys
from memoryd.client.programs.hooks import answering, hook
answering.DEADLINE_MS, hook.LIMIT_S, hook.LIMITS_S, hook._RESERVE_S = 60_000, 60.0, {}, -60.0
hook.main(sys.argv[1:])
"""
_THERE = re.compile(r"<!-- there is (\S+): (\S+) -->")
_CHANCE = (
    (r"\b[0-9a-f]{32}\b", "ID"),
    (r"\b\d{8}T\d{6}Z\b", "TIME"),
    (r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME"),
    (r"\d{4}-\d\d-\d\d( \d\d:\d\d(:\d\d)?)?", "DATE"),
    (r"\b\d{1,2} [A-Z][a-z]+ \d{4}\b", "DATE"),
    (r"\b\d\d:\d\d(:\d\d)?\b", "TIME"),
    (r"\b[0-9a-f]{8}\b", "ID"),
    (r"\b\d[\d,.]* ?(ms|s|B|kB|MB|GB|days)\b", "SIZE"),
    (r"\bpid \d+", "pid N"),
    (r"\bmt_[\w…-]+", "TOKEN"),
    (r"\b\d+ tokens\b", "N tokens"),
    (r"\b[\d.]+% confident\b", "N% confident"),
    (r"\b(likely|maybe|a guess|unlikely) \([\d.]+%\)", "likely (N%)"),
    (r"\bmemoryd \d+\.\d+\.\d+\b", "memoryd VERSION"),
    (r"\brows\d/\d\b", "rows8/2"),  # the processor chooses
    (r"(?<![\w.])-?[01]\.\d{2,3}\b", "SCORE"),  # the last digits follow from the processor
    (r", 1 copy in backups/", ""),  # the nightly one, if it is due meanwhile
    (r"\b\d+ added, \d+ changed, \d+ removed\b", "N added"),  # the nightly job may have made the graph meanwhile
    (r" {2,}", "  "),
)


class PatientAgent(Agent):
    """An agent whose hooks have a minute, so that what they say does not depend on how busy the machine is."""

    def command(self, event: str) -> list[str]:
        """Return the words of the hook, with other limits."""
        return [sys.executable, "-P", "-c", _PATIENT, event, "--agent", self.name]


class Block(NamedTuple):
    """A block of code of a page: its language, the title beside it, its lines, the number of its first line."""

    language: str
    title: str
    lines: list[str]
    number: int

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


class Call(NamedTuple):
    """A call of a `console` block and the output that the page shows for it."""

    words: str
    shown: str


def read_blocks(page: str) -> list[Block]:
    """Return the blocks of a page, without the indentation of their fence."""
    blocks: list[Block] = []
    indent = None
    for number, line in enumerate(page.splitlines(), 1):
        if indent is not None and line == f"{indent}```":
            indent = None
        elif indent is not None:
            blocks[-1].lines.append(line.removeprefix(indent))
        elif line.lstrip().startswith("```"):
            opening = _OPENING.match(line)
            assert opening, f"line {number}: a block begins with its language and nothing but a title: {line}"
            blocks.append(Block(opening["language"], opening["title"] or "", [], number + 1))
            indent = opening["indent"]
    return blocks


def split_calls(block: Block) -> list[Call]:
    """Return the calls of a `console` block."""
    parts = f"\n{block.text}".split("\n$ ")
    assert not parts[0].strip(), f"line {block.number}: a console block begins with `$ `"
    calls = []
    for part in parts[1:]:
        words, *output = re.sub(r"\\\n", "\\\\\0", part).split("\n")
        calls.append(Call(words.replace("\0", "\n"), "\n".join(output).strip()))
    return calls


def list_commands(page: str) -> list[str]:
    """Return the lines of all `sh` blocks without their comments, and the calls of `console` blocks."""
    commands = []
    for block in read_blocks(page):
        if block.language == "sh" and not block.title:
            commands += [strip_comment(line) for line in join_lines(block.lines)]
        elif block.language == "console":
            commands += [call.words for call in split_calls(block)]
    return [command for command in commands if command]


def join_lines(lines: Sequence[str]) -> list[str]:
    """Return commands of which some are continued on the next line by a backslash."""
    return re.sub(r"\\\n", "\\\\\0", "\n".join(lines)).replace("\n", "\n\n").replace("\0", "\n").split("\n\n")


def strip_comment(line: str) -> str:
    return re.sub(r"(^|\s+)# .*", "", line)


class Reader:
    """Somebody who types what a page says, in a home and with a daemon of their own."""

    def __init__(self, folder: Path, models: Path, place: Path | None = None) -> None:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("MEMORYD_", "XDG_", "GIT_"))}
        self.folder, self._models = folder, models
        self.place = place or folder
        self._variables = folder / ".variables"
        self.ids: dict[str, str] = {}  # that the page shows: those that came out in their place
        self.environment = {
            **kept,
            "PATH": f"{Path(sys.prefix) / 'bin'}:{os.environ['PATH']}",
            "HOME": str(folder),
            "USER": "ada",
            "LANG": "C.UTF-8",
            "XDG_RUNTIME_DIR": str(folder / "run"),
            "MEMORYD_MODEL_DIR": str(models),
        }
        (folder / "run").mkdir(mode=0o700)

    def run(self, *words: str) -> str:
        """Run a program and return its output; it must end well."""
        done = self.try_to_run(*words)
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout

    def try_to_run(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """Run a program."""
        return subprocess.run(
            words, env=self.environment, cwd=self.place, capture_output=True, text=True, timeout=SETTLED_S
        )

    def type(self, call: str) -> "subprocess.CompletedProcess[str]":
        """Run a line in the page's shell; what it says on both outputs is in `stdout`, as on a terminal."""
        assert "uninstall --yes" not in call or "MEMORYD_MODEL_DIR" not in self.environment, "it removes these models"
        restore = f'[ -e "{self._variables}" ] && . "{self._variables}"'
        keep = f'code=$?; export -p > "{self._variables}"; pwd > "{self._variables}.place"; exit $code'
        done = subprocess.run(
            ["bash", "-c", f"{restore}\n{call}\n{keep}"],
            env=self.environment,
            cwd=self.place,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SETTLED_S,
        )
        where = Path(f"{self._variables}.place")
        if where.exists():
            self.place = Path(where.read_text().strip())
        return done

    def translate(self, call: str) -> str:
        """Put in place of the ids that the page shows in a call those that came out."""
        return _ID.sub(lambda match: self.ids.get(match[0], match[0]), call)

    def stop(self) -> None:
        """Stop the daemon of the reader, the one that variables name, and what the page has in the background."""
        self.type('[ -z "$SERVER" ] || kill "$SERVER"')
        self.type("memctl down")
        self.try_to_run("memctl", "down")

    def show(self, text: str) -> str:
        """Return an output as a page shows it."""
        run = self.folder / "run"
        for place, shown in ((run, RUN), (f"~/{run.name}", RUN), (self.folder, HOME), (sys.prefix, f"{HOME}/venv")):
            text = text.replace(f"{place}/", f"{shown}/").replace(str(place), shown)
        return text.strip("\n")

    def settle(self) -> None:
        """Wait until the model is there, what was stored has vectors and turns are rated; readers take their time."""
        until = time.monotonic() + SETTLED_S
        while time.monotonic() < until:
            done = self.try_to_run("memctl", "status", "--no-autostart", "--json")
            if done.returncode == NO_DAEMON:
                return
            status = json.loads(done.stdout or "{}")  # none: it did not answer in time
            if status.get("model", {}).get("state") == "ready" and not status["pending_embeddings"]:
                tiers = json.loads(self.run("memctl", "tiers", "--json"))
                if not tiers["waiting"]:
                    return
            time.sleep(0.05)
        raise AssertionError(f"not settled: {done.stdout}")

    def write(self, title: str, text: str) -> None:
        """Write the file that a block shows."""
        self._make_place(title).write_text(f"{text}\n")

    def bring(self, title: str, source: str) -> None:
        """Put a copy of something where the reader has it already."""
        path = self._make_place(title)
        if source == "models":
            shutil.copytree(self._models, path)
            del self.environment["MEMORYD_MODEL_DIR"]
        else:
            shutil.copy(CHECKOUT / source, path)

    def _make_place(self, title: str) -> Path:
        path = Path(title.replace("~", str(self.folder), 1))
        path = path if path.is_absolute() else self.place / path
        if self.folder not in path.parents:  # of the system: readers of tests are not its owner
            path = self.folder / "system" / path.relative_to("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def talk(self, title: str, lines: Sequence[str]) -> list[str]:
        """Have a session with an agent; return its lines with what the hooks gave the agent."""
        [name] = [name for name, host in HOSTS.items() if title.startswith(f"{host.title},")]
        session = str(uuid.uuid5(uuid.NAMESPACE_URL, title))
        self.run("memctl", "up")
        self.settle()
        agent = PatientAgent(name, self.folder, self.place, session)
        agent.environment = self.environment
        shown = [f"{_GIVEN}{line}" for line in agent.hook(START, source="startup").said.splitlines()]
        for line in (line for line in lines if not line.startswith(_GIVEN)):
            shown.append(line)
            if line.startswith("> "):
                given = agent.hook(PROMPT, prompt=line[2:]).said
                shown += [f"{_GIVEN}{line}" for line in given.splitlines()]
            elif line.startswith("● "):
                agent.hook(STOP, last_assistant_message=line[2:])
        end = f"client.end_session({session!r}, wait=True)"
        self.run(sys.executable, "-c", f"from memoryd.client import Client\nwith Client() as client: {end}")
        return [self.show(line) for line in shown]


def replay(reader: Reader, page: str) -> Iterator[tuple[Block, str]]:
    """Run a page; yield each block that shows what comes out, and its text with what came out now."""
    output = ""
    for title, source in _THERE.findall(page):
        reader.bring(title, source)
    for block in read_blocks(page):
        reader.settle()
        if block.language == "python" and not block.title:
            output = reader.show(reader.run(sys.executable, "-c", block.text))
        elif block.language == "text" and block.title:
            yield block, "\n".join(reader.talk(block.title, block.lines))
        elif block.language == "text":
            yield block, output
        elif block.title:
            reader.write(block.title, block.text)
        elif block.language == "console":
            yield block, "\n".join(_type_calls(reader, block))
        elif block.language == "sh":
            for command in filter(None, map(strip_comment, join_lines(block.lines))):
                if command not in NOT_RUN:
                    done = reader.type(reader.translate(command))
                    assert done.returncode == 0, f"line {block.number}: {command}: {done.stdout}"
        else:
            raise AssertionError(f"line {block.number}: nothing runs a block of {block.language} without a title")


def _type_calls(reader: Reader, block: Block) -> Iterator[str]:
    for call in split_calls(block):
        yield f"$ {call.words}"
        output = call.shown
        if strip_comment(call.words) not in NOT_RUN:
            reader.settle()
            done = reader.type(reader.translate(call.words))
            output = reader.show(done.stdout)
            pages = {came: shown for shown, came in reader.ids.items()}
            shown, came = _ID.findall(call.shown), _ID.findall(output)
            if len(shown) == len(came):
                reader.ids |= dict(zip(shown, came, strict=True))
            for came_before, shown_before in pages.items():
                output = output.replace(came_before, shown_before)
            assert done.returncode == 0 or output, f"line {block.number}: {call.words} fails without a word"
        if output:
            yield call.shown if is_like(call.shown, output) else output


def without_chance(text: str) -> str:
    """Return a text without ids, dates, times, durations, sizes and scores, which differ each time."""
    for pattern, word in _CHANCE:
        text = re.sub(pattern, word, text)
    return text.strip()


def is_like(shown: str, output: str) -> bool:
    """Return whether an output is what a page shows, in which a line `…` stands for any lines."""
    parts = re.split(r"(?m)^…$\n?", without_chance(shown))
    pattern = r"(?:.*\n)*".join(re.escape(part) for part in parts)
    return re.fullmatch(f"{pattern}\n?", f"{without_chance(output)}\n") is not None


def write_page(path: Path, models: Path) -> None:
    """Run a page and write what comes out into it."""
    folder = make_folder()
    reader = Reader(folder, models)
    lines = path.read_text().splitlines()
    try:
        changes = [(block, text) for block, text in replay(reader, path.read_text())]
        for block, text in reversed(changes):
            if not is_like(block.text, text):
                lines[block.number - 1 : block.number - 1 + len(block.lines)] = text.splitlines()
        path.write_text("\n".join(lines) + "\n")
    finally:
        reader.stop()
        shutil.rmtree(folder)


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        write_page(Path(argument), Path(os.environ.get("MEMORYD_MODEL_DIR") or CHECKOUT / ".cache/models"))
