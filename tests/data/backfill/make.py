"""Make the samples: sessions that the real programs write, while a scripted model answers them on loopback.

    python tests/data/backfill/make.py FOLDER_OF_PROGRAMS [AGENT …]

FOLDER_OF_PROGRAMS is where `npm install --prefix FOLDER_OF_PROGRAMS @anthropic-ai/claude-code @openai/codex
@google/gemini-cli @github/copilot cline opencode-ai` has put them. Two prompts in one session: the agent says what
it does, writes a file by a tool, and sums up; then it answers. The folder that is made up is called /home/me in what is
kept. Of Cline there is the first prompt alone.
"""

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from model_api import CALL, ModelAnswer, model_api

HERE = Path(__file__).parent
FIRST = "Write down in notes.md that billing migrations need --lock-timeout 5s."
SECOND = "Which port does the staging database listen on?"
BEFORE = "I will write that into notes.md now."
DONE = "Done: notes.md says that the billing migrations need a lock timeout of five seconds."
ANSWER = "The staging database listens on port 5433, as the compose file says."
LONGEST, MOST = 300, 40  # characters of a text, entries of a list, that are kept
NOTE = "Billing migrations need --lock-timeout 5s.\n"


def _answer(asked: str, work: str) -> ModelAnswer:
    """Return what the model says to a request: the step that it has come to is seen by what it holds."""
    if SECOND in asked:
        return ModelAnswer(ANSWER)
    if '"tools"' not in asked or FIRST not in asked:
        return ModelAnswer("A note on billing")  # a title
    if CALL in asked or "functionResponse" in asked:
        return ModelAnswer(DONE)
    tool, arguments = _find_tool(asked, f"{work}/notes.md")
    return ModelAnswer(BEFORE, "**Notes**\nThe user wants a note.", tool, arguments)


def _find_tool(asked: str, path: str) -> tuple[str, dict[str, Any]]:
    """Return the tool for writing of those that a request offers, and how it is called."""
    if '"exec_command"' in asked:  # Codex
        patch = f"*** Begin Patch\n*** Add File: notes.md\n+{NOTE}*** End Patch\n"
        return "exec_command", {"cmd": f"apply_patch <<'EOF'\n{patch}EOF\n"}
    if '"file_text"' in asked:  # Copilot CLI
        return "create", {"path": path, "file_text": NOTE}
    if '"new_text"' in asked:  # Cline
        return "editor", {"path": path, "new_text": NOTE}
    if '"write_file"' in asked:  # Gemini CLI
        return "write_file", {"file_path": path, "content": NOTE}
    if '"filePath"' in asked:  # OpenCode
        return "write", {"filePath": path, "content": NOTE}
    return "Write", {"file_path": path, "content": NOTE}  # Claude Code


# The programs --------------------------------------------------------------------------------------------------------


def _claude(url: str, home: Path) -> tuple[list[list[str]], dict[str, str]]:
    (home / ".claude").mkdir()
    (home / ".claude" / "settings.json").write_text("{}\n")
    quiet = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"}
    words = ["claude", "--permission-mode", "acceptEdits", "-p"]
    return [[*words, FIRST], [*words, SECOND, "--continue"]], {
        "ANTHROPIC_API_KEY": "none",
        "ANTHROPIC_BASE_URL": url,
        **quiet,
    }


def _codex(url: str, home: Path) -> tuple[list[list[str]], dict[str, str]]:
    provider = f'[model_providers.test]\nname = "test"\nbase_url = "{url}/v1"\nwire_api = "responses"\n'
    (home / ".codex").mkdir()
    (home / ".codex" / "config.toml").write_text(f'model = "gpt-5-codex"\nmodel_provider = "test"\n{provider}')
    words = ["codex", "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
    return [[*words, FIRST], [*words, "resume", "--last", SECOND]], {}


def _gemini(url: str, home: Path) -> tuple[list[list[str]], dict[str, str]]:
    (home / ".gemini").mkdir()
    settings = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
    (home / ".gemini" / "settings.json").write_text(json.dumps(settings))
    words = ["gemini", "--skip-trust", "--approval-mode", "yolo", "-m", "gemini-2.5-flash"]
    key = {"GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": url}
    return [[*words, "-p", FIRST], [*words, "--resume", "latest", "-p", SECOND]], key


def _opencode(url: str, home: Path) -> tuple[list[list[str]], dict[str, str]]:
    model = {"name": "test", "tool_call": True, "limit": {"context": 100000, "output": 1000}}
    provider = {"npm": "@ai-sdk/openai-compatible", "name": "test", "models": {"test": model}}
    provider["options"] = {"baseURL": f"{url}/v1", "apiKey": "none"}
    (home / ".config" / "opencode").mkdir(parents=True)
    config = {"provider": {"test": provider}, "model": "test/test", "small_model": "test/test", "autoupdate": False}
    (home / ".config" / "opencode" / "opencode.json").write_text(json.dumps(config))
    quiet = {"OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1"}
    return [["opencode", "run", FIRST], ["opencode", "run", "--continue", SECOND]], quiet


def _copilot(url: str, home: Path) -> tuple[list[list[str]], dict[str, str]]:
    provider = {"COPILOT_PROVIDER_BASE_URL": f"{url}/v1", "COPILOT_PROVIDER_API_KEY": "none", "COPILOT_MODEL": "test"}
    words = ["copilot", "--allow-all-tools", "--no-color"]
    return [[*words, "-p", FIRST], [*words, "--continue", "-p", SECOND]], {"COPILOT_OFFLINE": "true", **provider}


def _cline(url: str, home: Path) -> tuple[list[list[str]], dict[str, str]]:
    auth = ["cline", "auth", "-p", "openai", "-k", "none", "-m", "test", "-b", f"{url}/v1"]
    words = ["cline", "--auto-approve", "true", "-P", "openai", "-m", "test"]
    return [auth, [*words, FIRST]], {}  # only in a terminal it goes on with a session


AGENTS = {
    "claude-code": (_claude, (".claude/projects/*/*.jsonl",)),
    "codex": (_codex, (".codex/sessions/**/rollout-*.jsonl",)),
    "gemini": (_gemini, (".gemini/tmp/*/chats/*.jsonl", ".gemini/tmp/*/.project_root", ".gemini/projects.json")),
    "cline": (_cline, (".cline/data/sessions/*/*.json",)),
    "copilot": (_copilot, (".copilot/session-state/*/events.jsonl",)),
    "opencode": (_opencode, (".local/share/opencode/opencode.db",)),
}


def make(programs: Path, agent: str) -> None:
    """Run a program twice and copy what it has written about its session."""
    start, kept = AGENTS[agent]
    with tempfile.TemporaryDirectory() as folder:
        home, work = Path(folder, "home", "me"), Path(folder, "home", "me", "billing")
        (work / ".git").mkdir(parents=True)
        with model_api(lambda asked: _answer(asked, str(work))) as server:
            commands, environment = start(server.url, home)
            path = f"{programs / 'node_modules' / '.bin'}:{os.environ['PATH']}"
            given = {"PATH": path, "HOME": str(home), "USER": "me", "TERM": "dumb", **environment}
            for words in commands:
                done = subprocess.run(
                    words, cwd=work, env=given, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=180
                )
                print(words[0], done.returncode, done.stdout[-300:], done.stderr[-600:], file=sys.stderr)
        shutil.rmtree(HERE / agent, ignore_errors=True)
        for pattern in kept:
            for source in sorted(home.glob(pattern)):
                target = HERE / agent / _rename(str(source.relative_to(home)), folder)
                target.parent.mkdir(parents=True, exist_ok=True)
                if source.suffix == ".db":
                    target.with_suffix(".sql").write_text(_rename(_dump(source), folder))
                elif source.suffix == ".jsonl":
                    target.write_text(_rename("".join(map(_shorten_line, source.open())), folder))
                elif agent == "cline":
                    short = json.dumps(_shorten(json.loads(source.read_text())), indent=1)
                    target.write_text(_rename(short, folder))
                else:
                    target.write_text(_rename(source.read_text(), folder))


def _shorten_line(line: str) -> str:
    """Return a line with long texts cut, empty for what Claude Code notes of the machine and of its requests."""
    entry = json.loads(line)
    if str(entry.get("type")).startswith(("api-request", "attachment")):
        return ""
    return json.dumps(_shorten(entry), ensure_ascii=False, separators=(",", ":")) + "\n"


def _shorten(value: Any) -> Any:
    if isinstance(value, str):
        return value if len(value) <= LONGEST else f"{value[:LONGEST]}…"
    if isinstance(value, dict):
        return {name: _shorten(held) for name, held in list(value.items())[:MOST]}
    return list(map(_shorten, value[:MOST])) if isinstance(value, list) else value


def _dump(path: Path) -> str:
    """Return the tables of OpenCode that hold what was said, as SQL."""
    connection = sqlite3.connect(path)
    lines = []
    for table in ("project", "session", "message", "part"):
        made = connection.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (table,)).fetchone()[0]
        lines.append(" ".join(made.split()) + ";")
        for row in connection.execute(f"SELECT * FROM {table}"):
            lines.append(f"INSERT INTO {table} VALUES ({', '.join(map(_quote, row))});")
    return "\n".join(lines) + "\n"


def _quote(value: Any) -> str:
    if value is None or isinstance(value, int | float):
        return "NULL" if value is None else repr(value)
    return "'" + value.replace("'", "''") + "'"


def _rename(text: str, folder: str) -> str:
    """Return a text with /home instead of the temporary folder, also where a name stands for a path."""
    dashed = re.sub(r"[^A-Za-z0-9]", "-", folder)
    return text.replace(folder, "").replace(folder.lstrip("/"), "").replace(dashed, "")


if __name__ == "__main__":
    for name in sys.argv[2:] or AGENTS:
        make(Path(sys.argv[1]).absolute(), name)
