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
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
FIRST = "Write down in notes.md that billing migrations need --lock-timeout 5s."
SECOND = "Which port does the staging database listen on?"
BEFORE = "I will write that into notes.md now."
DONE = "Done: notes.md says that the billing migrations need a lock timeout of five seconds."
ANSWER = "The staging database listens on port 5433, as the compose file says."
LONGEST, MOST = 300, 40  # characters of a text, entries of a list, that are kept
NOTE = "Billing migrations need --lock-timeout 5s.\n"


def _patch() -> str:
    return f"*** Begin Patch\n*** Add File: notes.md\n+{NOTE}*** End Patch\n"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: "_Model"

    def log_message(self, *words: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self._reply(b"", "application/json")

    def do_GET(self) -> None:
        self._reply(b'{"data": [], "models": []}', "application/json")

    def do_POST(self) -> None:
        asked = self.rfile.read(int(self.headers.get("content-length") or 0)).decode("utf-8", "replace")
        self.server.asked.append(asked)
        step = self._find_step(asked)
        if "/messages" in self.path and "count_tokens" not in self.path:
            self._stream(_messages(step, self.server.work))
        elif "/responses" in self.path:
            self._stream(_responses(step))
        elif "/chat/completions" in self.path:
            chunks = [f"data: {json.dumps(chunk)}\n\n" for chunk in _chat(step, self.server.work, asked)]
            self._reply("".join([*chunks, "data: [DONE]\n\n"]).encode(), "text/event-stream")
        elif "streamGenerateContent" in self.path:
            data = json.dumps(_generated(step, self.server.work)).encode()
            self._reply(b"data: " + data + b"\n\n", "text/event-stream")
        elif "generateContent" in self.path:
            self._reply(json.dumps(_generated("second", self.server.work)).encode(), "application/json")
        else:
            self._reply(b"{}", "application/json")

    def _find_step(self, asked: str) -> str:
        if SECOND in asked:
            return "second"
        has_tools = '"tools"' in asked
        if not has_tools or FIRST not in asked:
            return "title"
        return "done" if "call_1" in asked or "functionResponse" in asked else "write"

    def _stream(self, events: list[tuple[str, dict[str, Any]]]) -> None:
        lines = [f"event: {name}\ndata: {json.dumps({'type': name, **data})}\n\n" for name, data in events]
        self._reply("".join(lines).encode(), "text/event-stream")

    def _reply(self, data: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


class _Model(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[str] = []
        self.work = ""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


_TEXTS = {"write": BEFORE, "done": DONE, "second": ANSWER, "title": "A note on billing"}


def _messages(step: str, work: str) -> list[tuple[str, dict[str, Any]]]:
    usage = {"input_tokens": 10, "output_tokens": 1}
    message = {"id": f"msg_{step}", "type": "message", "role": "assistant", "model": "claude-test", "content": []}
    blocks: list[tuple[dict[str, Any], dict[str, Any]]] = []
    if step == "write":
        thought = {"type": "thinking_delta", "thinking": "The user wants a note."}
        blocks.append(({"type": "thinking", "thinking": "", "signature": "c2ln"}, thought))
    blocks.append(({"type": "text", "text": ""}, {"type": "text_delta", "text": _TEXTS[step]}))
    if step == "write":
        given = json.dumps({"file_path": f"{work}/notes.md", "content": NOTE})
        tool = {"type": "tool_use", "id": "call_1", "name": "Write", "input": {}}
        blocks.append((tool, {"type": "input_json_delta", "partial_json": given}))
    events = [("message_start", {"message": {**message, "usage": usage, "stop_reason": None, "stop_sequence": None}})]
    for index, (block, delta) in enumerate(blocks):
        events += [
            ("content_block_start", {"index": index, "content_block": block}),
            ("content_block_delta", {"index": index, "delta": delta}),
            ("content_block_stop", {"index": index}),
        ]
    stop = {"stop_reason": "tool_use" if step == "write" else "end_turn", "stop_sequence": None}
    return [*events, ("message_delta", {"delta": stop, "usage": {"output_tokens": 20}}), ("message_stop", {})]


def _responses(step: str) -> list[tuple[str, dict[str, Any]]]:
    content = [{"type": "output_text", "text": _TEXTS[step], "annotations": []}]
    items: list[dict[str, Any]] = []
    if step == "write":
        summary = [{"type": "summary_text", "text": "The user wants a note."}]
        items.append({"type": "reasoning", "id": "rs_1", "summary": summary, "content": [], "encrypted_content": None})
    message = {"type": "message", "id": f"m_{step}", "role": "assistant", "status": "completed", "content": content}
    items.append(message)
    if step == "write":
        given = json.dumps({"cmd": f"apply_patch <<'EOF'\n{_patch()}EOF\n"})
        call = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "exec_command"}
        items.append({**call, "arguments": given, "status": "completed"})
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    details = {"input_tokens_details": None, "output_tokens_details": None}
    done = [("response.output_item.done", {"output_index": at, "item": item}) for at, item in enumerate(items)]
    end = {"response": {"id": f"r_{step}", "output": items, "usage": {**usage, **details}}}
    return [("response.created", {"response": {"id": f"r_{step}"}}), *done, ("response.completed", end)]


def _generated(step: str, work: str) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"text": _TEXTS[step]}]
    if step == "write":
        parts.insert(0, {"text": "**Notes**\nThe user wants a note.", "thought": True})
        given = {"file_path": f"{work}/notes.md", "content": NOTE}
        parts.append({"functionCall": {"id": "call_1", "name": "write_file", "args": given}})
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    return {"candidates": [candidate], "usageMetadata": usage}


def _chat(step: str, work: str, asked: str) -> list[dict[str, Any]]:
    base = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "test"}
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": _TEXTS[step]}]
    if step == "write":
        path = f"{work}/notes.md"
        called: dict[str, Any] = {"name": "write", "arguments": {"filePath": path, "content": NOTE}}  # of OpenCode
        if '"file_text"' in asked:
            called = {"name": "create", "arguments": {"path": path, "file_text": NOTE}}  # of Copilot CLI
        elif '"new_text"' in asked:
            called = {"name": "editor", "arguments": {"path": path, "new_text": NOTE}}  # of Cline
        called["arguments"] = json.dumps(called["arguments"])
        tool = {"index": 0, "id": "call_1", "type": "function", "function": called}
        deltas.append({"tool_calls": [tool]})
    chunks = [{**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    reason = "tool_calls" if step == "write" else "stop"
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    return [*chunks, {**base, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}], "usage": usage}]


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
        server = _Model()
        server.work = str(work)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        commands, environment = start(server.url, home)
        path = f"{programs / 'node_modules' / '.bin'}:{os.environ['PATH']}"
        given = {"PATH": path, "HOME": str(home), "USER": "me", "TERM": "dumb", **environment}
        for words in commands:
            done = subprocess.run(
                words, cwd=work, env=given, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=180
            )
            print(words[0], done.returncode, done.stdout[-300:], done.stderr[-600:], file=sys.stderr)
        server.shutdown()
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
