"""The plugins that are written for agents whose hooks are programs: what they hand to `memctl hook`, and that they
never fail."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from memoryd.client.programs.hooks.entries import Plugin

MEMCTL = """#!/bin/sh
echo "$2 $(cat)" >> "$0.log"
echo '{"hookSpecificOutput": {"additionalContext": "told at '$2'"}}'
"""
OPENCODE = """
const answer = (role, text, more) => ({ info: { id: text, role, ...more }, parts: [{ type: "text", text }] })
const session = {
  get: async ({ path: { id } }) => ({ data: { parentID: id === "child" ? "main" : undefined } }),
  messages: async () => ({ data: [answer("assistant", "The answer."), answer("assistant", "Sum", { summary: true })] }),
}
const { Memoryd } = await import(process.argv[2])
const hooks = await Memoryd({ client: { session }, directory: "/api" })
const say = async (sessionID, text) => {
  const parts = [{ id: "prt_1", type: "text", text }, { id: "prt_2", type: "text", text: "a file", synthetic: true }]
  await hooks["chat.message"]({ sessionID }, { message: { id: "msg_1" }, parts })
  return parts.slice(2).map((part) => [part.id, part.synthetic, part.text])
}
const is = (type) => hooks.event({ event: { type, properties: { sessionID: "main" } } })
const config = {}
await hooks.config(config)
const given = [await say("main", "One"), await say("main", "Two"), await say("child", "Look for it")]
const args = { filePath: "/api/a.py" }
for (const tool of ["read", "edit"]) await hooks["tool.execute.after"]({ tool, sessionID: "main", args }, {})
await is("session.idle")
await is("session.idle")
await is("session.compacted")
given.push(await say("main", "Three"))
await hooks.dispose()
console.log(JSON.stringify({ given, config }))
"""
CLINE = """
const { default: plugin } = await import(process.argv[2])
plugin.setup({}, { session: { sessionId: "main" } })
const said = (text, metadata) => ({ role: "user", content: [{ type: "text", text }], metadata })
const run = async (text, parentAgentId) => {
  const given = said("<hook_context>", { displayRole: "system" })
  const messages = [said(`<user_input mode="act">${text}</user_input>`), given]
  const started = await plugin.hooks.beforeRun({ snapshot: { messages, parentAgentId } })
  for (const toolName of ["read_files", "editor"])
    await plugin.hooks.afterTool({ snapshot: { parentAgentId }, toolCall: { toolName }, input: { path: "/api/a.py" } })
  messages.push({ role: "assistant", content: [{ type: "text", text: `Did: ${text}` }] })
  await plugin.hooks.afterRun({ snapshot: { messages, parentAgentId } })
  return started?.appendContext ?? ""
}
console.log(JSON.stringify([await run("One"), await run("Two"), await run("Look for it", "main agent")]))
process.kill(process.pid, "SIGTERM")
setInterval(() => {}, 1000)
"""

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed; with it plugins are run")


def play(agent: str, script: str, folder: Path) -> Any:
    """Run a script with the path of an agent's plugin, and return the JSON that it prints."""
    (folder / "plugin.mjs").write_text(Plugin(agent).add("", [str(folder / "memctl")]))
    (folder / "play.mjs").write_text(script)
    done = subprocess.run(["node", folder / "play.mjs", folder / "plugin.mjs"], capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


def hooks(folder: Path) -> list[tuple[str, dict[str, Any]]]:
    """Return the hooks that were run, in order, with what each was given."""
    lines = [line.split(" ", 1) for line in (folder / "memctl.log").read_text().splitlines()]
    return [(event, json.loads(given)) for event, given in lines]


@pytest.fixture
def memctl(folder: Path) -> Path:
    (folder / "memctl").write_text(MEMCTL)
    (folder / "memctl").chmod(0o700)
    return folder / "memctl"


def test_opencode_is_told_at_each_prompt_and_the_start_again_after_a_compaction(folder: Path, memctl: Path) -> None:
    played = play("opencode", OPENCODE, folder)
    both, later = "told at session-start\ntold at prompt", "told at prompt"
    assert played["given"] == [[["prt_2m", True, both]], [["prt_2m", True, later]], [], [["prt_2m", True, both]]]
    assert played["config"] == {"mcp": {"memoryd": {"type": "local", "command": [str(memctl), "mcp"]}}}
    place = {"session_id": "main", "cwd": "/api"}
    ran = hooks(folder)
    assert sorted(event for event, _ in ran) == sorted(
        ["session-start", "prompt", "prompt", "tool", "stop", "compact", "session-start", "prompt", "session-end"]
    )
    assert [given for event, given in ran if event == "prompt"] == [
        {**place, "prompt": text} for text in ("One", "Two", "Three")
    ]
    assert ("stop", {**place, "last_assistant_message": "The answer."}) in ran
    assert ("tool", {**place, "tool_input": {"file_path": "/api/a.py"}}) in ran
    assert [given["source"] for event, given in ran if event == "session-start"] == ["startup", "compact"]


def test_cline_is_told_at_each_prompt_and_says_when_a_session_ends(folder: Path, memctl: Path) -> None:
    assert play("cline", CLINE, folder) == ["told at session-start\ntold at prompt", "told at prompt", ""]
    ran = hooks(folder)
    asked = ["session-start", *["prompt", "tool", "stop"] * 2, "session-end"]
    assert sorted(event for event, _ in ran) == sorted(asked)
    assert {given["session_id"] for _, given in ran} == {"main"}
    assert [given["prompt"] for event, given in ran if event == "prompt"] == ["One", "Two"]
    answers = [given["last_assistant_message"] for event, given in ran if event == "stop"]
    assert answers == ["Did: One", "Did: Two"]
    assert [given["tool_input"] for event, given in ran if event == "tool"] == [{"path": "/api/a.py"}] * 2


def test_agents_go_on_where_memctl_is_gone(folder: Path) -> None:
    assert play("opencode", OPENCODE, folder)["given"] == [[], [], [], []]
    assert play("cline", CLINE, folder) == ["", "", ""]
