"""memctl hook: it fails open within its limit whatever happens, and what the daemon was not told comes to it later."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from configs import NO_JOBS, NO_MODEL
from each import each
from hosting import Agent
from memoryd.client import Client
from memoryd.client.programs.hooks import answering, hosts
from memoryd.client.programs.hooks.hosts import EVENTS, HOSTS
from memoryd.client.programs.sessions.agents import AGENTS
from memoryd.client.protocol import METHODS, AddToken, Call, GetObserving, Traces, method_name
from waiting import wait_until
from workbench import Process

DEEP = b'{"prompt": ' + b"[" * 5000 + b"]" * 5000 + b"}"
SAYING = "We decided that deploys of the api are on Tuesdays at 10:00"


@pytest.fixture
def project(folder: Path) -> Path:
    made = folder / "api"
    (made / ".git").mkdir(parents=True)
    return made


@pytest.fixture
def agent(folder: Path, project: Path) -> Agent:
    return Agent("claude-code", folder, project)


def turns(client: Client) -> list[tuple[str, str, str, str]]:
    return [(turn.namespace, turn.session, turn.role, turn.content) for turn in client.turns()]


def spooled(folder: Path) -> list[dict[str, Any]]:
    path = folder / "data" / "hooks.spool"
    return [json.loads(line) for line in path.read_bytes().splitlines()] if path.exists() else []


def send_spooled(agent: Agent, folder: Path) -> None:
    """Have another hook send what one had no time to send, as on a busy machine."""

    def is_sent() -> bool:
        if spooled(folder):
            agent.hook("compact")
        return not spooled(folder)

    wait_until(is_sent)


# Fail open -----------------------------------------------------------------------------------------------------------


ODD = [b"", b"[]", b'{"prompt": "\xff"}', b'{"prompt": 1, "session_id": {}}', DEEP]


@each(
    ("name", "data"),
    [*((name, b"not json") for name in ("cursor", "gemini")), *(("claude-code", data) for data in ODD)],
)
def test_bad_input_is_answered_with_nothing(name: str, data: bytes, folder: Path, project: Path) -> None:
    done = Agent(name, folder, project).run("prompt", data)
    assert done.code == 0
    assert done.out == HOSTS[name].answer_nothing("prompt").decode()
    assert spooled(folder) == []


@each(
    ("words", "said"),
    [
        ([], b"memctl hook: needs one of session-start,"),
        (["nonsense"], b"memctl hook: needs one of session-start,"),
        (["prompt", "--agent", "nobody"], b"memctl hook: needs one of session-start,"),
        (["prompt", "--agent"], b"memctl hook: needs one of session-start,"),
        (
            ["prompt", "--agent", "codex", "--frob"],
            b"memctl hook: does not know --frob; it needs one of session-start,",
        ),
    ],
)
def test_a_wrong_command_line_is_said_on_stderr_alone(words: list[str], said: bytes, agent: Agent) -> None:
    command = [sys.executable, "-m", "memoryd.client.programs.memctl", "hook", *words]
    done = subprocess.run(command, input=b"{}", capture_output=True, env=agent.environment)
    assert (done.returncode, done.stdout, done.stderr.startswith(said)) == (0, b"", True)


def test_help_is_printed_also_for_a_hook(agent: Agent) -> None:
    command = [sys.executable, "-m", "memoryd.client.programs.memctl", "hook", "--help"]
    done = subprocess.run(command, capture_output=True, env=agent.environment)
    assert done.returncode == 0
    assert b"session-start" in done.stdout


def test_without_a_home_and_a_folder_to_be_in_it_still_answers(folder: Path, project: Path) -> None:
    agent = Agent("gemini", folder, project)
    agent.environment = {"PATH": os.environ["PATH"], "MEMORYD_SOCKET": str(folder / "s"), "HOME": "/nonexistent"}
    agent.environment["MEMORYD_DATA_DIR"] = "/proc/nowhere"
    for event in set(EVENTS) - {hosts.START}:
        assert (agent.run(event, b'{"cwd": "/gone", "prompt": "deploys"}').out or "{}") == "{}"


@pytest.mark.slow
def test_a_host_that_never_ends_its_input_is_left_in_time(folder: Path, project: Path) -> None:
    agent = Agent("gemini", folder, project)
    with subprocess.Popen(
        agent.command("stop"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=agent.environment,
    ) as child:
        assert child.stdout is not None
        assert child.stdout.read() == b"{}"
        assert child.wait(60) == 0


def test_what_the_alarm_breaks_off_is_spooled(folder: Path, project: Path) -> None:
    agent = Agent("claude-code", folder, project)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "s"))
        listener.listen()
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        with subprocess.Popen(agent.command("prompt"), env=agent.environment, **pipes) as child:
            assert child.stdin is not None
            child.stdin.write(json.dumps(agent.given("prompt", prompt=SAYING)).encode())
            child.stdin.close()
            listener.settimeout(30)
            link, _ = listener.accept()
            with link:
                assert link.recv(1)  # it asks, and is not answered
                child.send_signal(signal.SIGALRM)
                assert child.wait(30) == 0
            assert child.stderr is not None
            assert child.stderr.read() == b""
    assert [call["turns"][0]["content"] for call in spooled(folder)] == [SAYING]


@pytest.mark.slow
def test_a_hung_daemon_delays_a_prompt_by_a_second_and_loses_nothing(process: Process, agent: Agent) -> None:
    assert process.child is not None
    process.child.send_signal(signal.SIGSTOP)
    try:
        done = agent.hook("prompt", prompt=SAYING)
        assert (done.code, done.out, done.err) == (0, "", "")
        stopped = agent.hook("stop", last_assistant_message="Noted: Tuesdays at 10:00.")
        assert (stopped.code, stopped.out, stopped.err) == (0, "", "")
        assert len(spooled(process.folder)) == 2
    finally:
        process.child.send_signal(signal.SIGCONT)
    agent.hook("compact")
    assert spooled(process.folder) == []
    with process.client() as client:
        assert sorted(turn[3] for turn in turns(client)) == ["Noted: Tuesdays at 10:00.", SAYING]


# Notes and answers ---------------------------------------------------------------------------------------------------


def test_a_prompt_and_an_answer_are_noted_in_the_namespace_of_the_project(process: Process, agent: Agent) -> None:
    inner = agent.project / "src"
    inner.mkdir()
    agent.hook("prompt", prompt=SAYING, cwd=str(inner))
    agent.hook("prompt", prompt="/compact")
    agent.hook("stop", last_assistant_message="I moved the deploy job to Tuesday.")
    agent.hook("stop", last_assistant_message="I moved the deploy job to Tuesday.")
    with process.client() as client:
        assert turns(client) == [
            ("api", agent.session, "assistant", "I moved the deploy job to Tuesday."),
            ("api", agent.session, "user", SAYING),
        ]


def test_a_private_prompt_is_nowhere_on_disk_while_no_daemon_runs_and_not_kept_later(
    folder: Path, agent: Agent
) -> None:
    agent.hook("prompt", prompt="<private>the merger with zanzibar")
    agent.hook("stop", last_assistant_message="The merger is announced on Friday.")
    agent.hook("prompt", prompt=f"{SAYING} <private>as zanzibar wants</private>")
    assert len(spooled(folder)) == 3
    assert b"zanzibar" not in (folder / "data" / "hooks.spool").read_bytes()
    process = Process(folder, NO_MODEL).start()
    try:
        send_spooled(agent, folder)
        with process.client() as client:
            assert [turn[3].strip() for turn in turns(client)] == [SAYING]
    finally:
        process.stop()


@pytest.mark.slow
def test_the_first_session_in_a_folder_that_moved_names_the_project_that_it_may_be(folder: Path) -> None:
    old, new = folder / "old/api", folder / "new/api"
    old.mkdir(parents=True)
    process = Process(folder, NO_MODEL).start()
    try:
        assert "new project" not in Agent("claude-code", folder, old).hook("session-start", source="startup").said
        new.parent.mkdir()
        old.rename(new)
        agent = Agent("claude-code", folder, new)
        agent.hook("prompt", prompt="Where do the deploys of the api run?")
        said = agent.hook("session-start", source="startup").said
        assert said.startswith(
            "memoryd knows this folder as a new project, api-2. If it is the project api, moved or with another remote,"
            " its memories are not found here until `memctl project move api` is run in this folder."
        )
        assert "new project" not in agent.hook("session-start", source="resume").said
    finally:
        process.stop()


def test_checkouts_of_one_name_share_no_memory_also_while_the_daemon_is_down(folder: Path) -> None:
    agents = [Agent("claude-code", folder, folder / client / "api", client) for client in ("a", "b")]
    for agent in agents:
        (agent.project / ".git").mkdir(parents=True)
        agent.hook("prompt", prompt=f"Client {agent.session} pays by invoice.")
    assert [(call["namespace"], call["session"]) for call in spooled(folder)] == [("api", "a"), ("api-2", "b")]


def test_a_damaged_table_of_projects_costs_a_prompt_nothing(own_spool: Path, agent: Agent) -> None:
    own_spool.with_name("projects.json").write_text("{")
    given = json.dumps(agent.given("prompt", prompt=SAYING)).encode()
    assert answering.read_event("prompt", "claude-code", given).namespace == "api"


@each(
    ("escaped", "read"),
    [
        (r"a\u0000 b", "a b"),
        (r"a \ud83d b", "a \ufffd b"),
        (r"\ude00\ud83d\ude00", "\ufffd😀"),
        (r"C:\\ud83d \ud83dx", "C:\\ud83d \ufffdx"),
    ],
)
def test_half_an_emoji_or_a_nul_byte_costs_a_prompt_nothing_else(escaped: str, read: str) -> None:
    given = b'{"prompt": "' + escaped.encode() + b'", "session_id": "one", "cwd": "/"}'
    event = answering.read_event("prompt", "claude-code", given)
    assert (event.text("prompt"), event.session) == (read, "one")


def test_a_session_is_given_a_memory_once_until_it_is_compacted(process: Process, agent: Agent) -> None:
    with process.client("api") as client:
        client.add("Deploys of the api go through the blue pipeline", type="decision")
    prompt = "how do deploys of the api go through the pipeline?"
    assert "blue pipeline" in agent.hook("prompt", prompt=prompt).said
    assert agent.hook("prompt", prompt=prompt).out == ""
    agent.hook("compact", trigger="auto")
    assert "blue pipeline" in agent.hook("session-start", source="compact").said
    assert agent.hook("prompt", prompt=prompt).out == ""
    assert "blue pipeline" in agent.hook("session-start", source="clear").said
    assert agent.hook("session-start", source="resume").out == ""


def test_a_tool_that_wrote_a_memory_file_has_its_workspace_indexed(process: Process, agent: Agent) -> None:
    (agent.project / "MEMORY.md").write_text("# Memory\n\nThe cache is Valkey.\n")
    with process.client() as client:
        client.add_workspace(str(agent.project))

        def is_indexed() -> bool:  # on a busy machine a hook may have no time for it
            assert agent.hook("tool", tool_name="Write", tool_input={"file_path": "MEMORY.md"}).said == ""
            return bool(client.search("Which cache is it?").hits)

        wait_until(is_indexed)
        assert agent.hook("tool", tool_name="Write", tool_input={"file_path": "/elsewhere/MEMORY.md"}).code == 0


@each(
    ("name", "fields", "file"),
    [
        ("claude-code", {"tool_input": {"file_path": "{root}/MEMORY.md", "content": "x"}}, "MEMORY.md"),
        ("claude-code", {"tool_input": {"file_path": "{root}/main.py"}}, None),
        ("codex", {"tool_input": {"command": "*** Begin Patch\n*** Update File: MEMORY.md\n"}}, "MEMORY.md"),
        ("cursor", {"file_path": "{root}/memory/plums.md", "edits": []}, "memory/plums.md"),
        ("gemini", {"tool_name": "write_file", "tool_input": {"file_path": "memory/plums.md"}}, "memory/plums.md"),
        ("copilot", {"tool_input": {"path": "{root}/memory/plums.md", "file_text": "x"}}, "memory/plums.md"),
    ],
)
def test_each_host_names_the_memory_file_that_a_tool_wrote(
    name: str, fields: dict[str, Any], file: str | None, agent: Agent
) -> None:
    agent.name = name
    told = json.dumps(agent.given("tool", **fields)).replace("{root}", str(agent.project))
    written = answering.list_written(answering.read_event("tool", name, told.encode()))
    assert written == ([f"{agent.project}/{file}"] if file else [])


def test_an_answer_names_the_files_that_tools_wrote_since_the_last_one(folder: Path, agent: Agent) -> None:
    agent.environment["USER"] = "Farid"
    agent.hook("prompt", session_id="s", prompt="We decided that the importer streams its orders.")
    for name in ("src/importer.py", "src/importer.py", "/elsewhere/a b.md"):
        agent.hook("tool", session_id="s", tool_name="Write", tool_input={"file_path": name})
    agent.hook("tool", session_id="t", tool_name="Write", tool_input={"file_path": "other.py"})
    agent.hook("stop", session_id="s", last_assistant_message="Implemented streaming, about 220 MB.")
    agent.hook("stop", session_id="s", last_assistant_message="The tests of the importer pass again.")
    prompt, first, second = (call["turns"][0] for call in spooled(folder))
    assert (prompt["speaker"], prompt.get("files")) == ("Farid", None)
    assert (first.get("speaker"), first["files"]) == (None, [f"{agent.project}/src/importer.py", "/elsewhere/a b.md"])
    assert "files" not in second


@pytest.mark.slow
def test_the_environment_and_a_token_say_where_memories_go(process: Process, agent: Agent) -> None:
    agent.environment["MEMORYD_NAMESPACE"] = "acme/web"
    agent.hook("prompt", prompt=SAYING)
    send_spooled(agent, process.folder)
    with process.client() as client:
        assert [turn[0] for turn in turns(client)] == ["acme/web"]
        token = client.call(AddToken(name="beta", namespace="beta")).token
    agent.environment |= {"MEMORYD_TOKEN": token, "MEMORYD_NAMESPACE": ""}
    agent.hook("prompt", prompt="The staging database is called sparrow")
    send_spooled(agent, process.folder)
    with process.client() as client:
        assert [turn[0] for turn in turns(client)] == ["beta", "acme/web"]


# The spool -----------------------------------------------------------------------------------------------------------


def test_what_is_said_with_a_token_that_is_refused_waits(process: Process, agent: Agent, folder: Path) -> None:
    agent.environment["MEMORYD_TOKEN"] = "revoked"
    assert agent.hook("prompt", prompt=SAYING).out == ""
    assert [call["turns"][0]["content"] for call in spooled(folder)] == [SAYING]


def test_what_is_said_while_the_daemon_is_down_comes_to_it_once_with_its_time(folder: Path, agent: Agent) -> None:
    began = time.time()
    agent.hook("prompt", prompt=SAYING)
    agent.hook("stop", last_assistant_message="Noted: Tuesdays at 10:00.")
    assert [call["method"] for call in spooled(folder)] == ["observe", "observe"]
    assert (folder / "data" / "hooks.spool").stat().st_mode & 0o777 == 0o600
    said = time.time()
    kept = (folder / "data" / "hooks.spool").read_bytes()
    process = Process(folder, NO_MODEL).start()
    try:
        agent.hook("compact")
        assert spooled(folder) == []
        (folder / "data" / "hooks.spool").write_bytes(kept)  # a hook killed between sending and taking out
        agent.hook("compact")
        with process.client() as client:
            found = list(client.turns())
            flows = client.tiers().flows
        assert [turn.content for turn in reversed(found)] == [SAYING, "Noted: Tuesdays at 10:00."]
        assert all(began <= turn.created_at <= said for turn in found)
        assert flows["skipped: observed before"] == 2
    finally:
        process.stop()


def test_the_end_of_a_session_and_a_compaction_wait_for_the_daemon_too(folder: Path, agent: Agent) -> None:
    agent.hook("compact", trigger="manual")
    agent.hook("session-end", reason="exit")
    place = {"namespace": "api", "session": agent.session}
    assert spooled(folder) == [{"method": "reset_session", **place}, {"method": "end_session", **place}]


def test_only_a_compaction_by_hand_is_one_where_the_host_announces_others_at_every_prompt(
    folder: Path, project: Path
) -> None:
    agent = Agent("gemini", folder, project)
    agent.hook("compact", trigger="auto")
    assert spooled(folder) == []
    agent.hook("compact", trigger="manual")
    assert [call["method"] for call in spooled(folder)] == ["reset_session"]


def test_many_hooks_at_once_lose_no_line(folder: Path, project: Path) -> None:
    agents = [Agent("codex", folder, project, f"s{number}") for number in range(6)]
    running = [
        subprocess.Popen(agent.command("prompt"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=agent.environment)
        for agent in agents
    ]
    for number, (agent, child) in enumerate(zip(agents, running, strict=True)):
        child.communicate(json.dumps(agent.given("prompt", prompt=f"Plan number {number} of the migration")).encode())
    assert sorted(call["session"] for call in spooled(folder)) == [f"s{number}" for number in range(6)]


@each("word", ["off", "OFF", "0", "on", ""])
def test_the_environment_keeps_turns_from_being_sent(agent: Agent, monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    monkeypatch.setenv("MEMORYD_OBSERVE", word)
    asked = answering.read_event("prompt", "claude-code", json.dumps(agent.given("prompt", prompt="Ship it")).encode())
    calls = answering.list_calls(asked)
    if word in ("on", ""):
        assert [(call["method"], call["folder"]) for call in calls] == [("observe", asked.folder)]
    else:  # that no later backfill takes it in
        assert calls == [{"method": "pause_observing", "kind": "session", "name": asked.session}]


def test_the_file_of_a_session_is_below_the_folder_of_its_host(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    for host in HOSTS.values():
        monkeypatch.delenv(host.keeps[0].partition("/")[0], raising=False)
    rows = [
        ("claude-code", "/home/ada/.claude/projects/-api/s.jsonl", "/home/ada/.claude/projects/-api/s.jsonl"),
        ("claude-code", "/home/ada/.claudeX/s.jsonl", ""),
        ("claude-code", "/etc/s.jsonl", ""),
        ("claude-code", "", ""),
        ("codex", "/home/ada/.codex/sessions/rollout-s.jsonl", "/home/ada/.codex/sessions/rollout-s.jsonl"),
        ("copilot", "", "/home/ada/.copilot/session-state/s/events.jsonl"),
        ("gemini", "/home/ada/.gemini/tmp/a/chats/s.jsonl", "/home/ada/.gemini/tmp/a/chats/s.jsonl"),
        ("gemini", "/home/ada/.gemini/tmp/a/chats/s.json", ""),
        ("opencode", "", "/home/ada/.local/share/opencode/opencode.db"),
        ("cline", "", "/home/ada/.cline/data/sessions/s/s.messages.json"),
        ("cursor", "/home/ada/.cursor/s.jsonl", ""),
    ]
    for host, given, found in rows:
        fields = {"session_id": "s", "transcript_path": given, "cwd": "/"}
        event = answering.read_event("stop", host, json.dumps(fields).encode())
        assert (host, given, answering.find_file(event).get("file", "")) == (host, given, found)
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", "/c/")
    fields = {"session_id": "s", "transcript_path": "/c/projects/a/s.jsonl"}
    event = answering.read_event("stop", "claude-code", json.dumps(fields).encode())
    assert answering.find_file(event) == {"file": "/c/projects/a/s.jsonl", "size": 0, "at": event.at}
    monkeypatch.setenv("XDG_DATA_HOME", "/d")
    event = answering.read_event("stop", "opencode", b'{"session_id": "s"}')
    assert answering.find_file(event)["file"] == "/d/opencode/opencode.db"


def test_hooks_and_readers_look_for_sessions_in_the_same_folders() -> None:
    assert {name: host.keeps for name, host in HOSTS.items() if host.keeps[1]} == {
        name: (agent.home, agent.folder) for name, agent in AGENTS.items()
    }


@pytest.mark.slow
def test_a_prompt_that_the_environment_keeps_back_leaves_no_trace(process: Process, agent: Agent) -> None:
    agent.environment["MEMORYD_OBSERVE"] = "off"
    agent.hook("prompt", prompt="We decided that zebraword1 is the code of the shed")
    with process.client("") as client:
        assert [pause.kind for pause in client.call(GetObserving()).pauses] == ["session"]
        assert client.call(Traces()).traces == []


@pytest.fixture
def own_spool(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MEMORYD_DATA_DIR", str(folder / "data"))
    return folder / "data" / "hooks.spool"


def test_what_files_a_silenced_or_ended_session_wrote_is_not_kept(own_spool: Path, agent: Agent) -> None:
    agent.hook("tool", session_id="s", tool_name="Write", tool_input={"file_path": "/elsewhere/main.py"})
    assert [(name, files) for _, name, files in answering.list_noted()] == [("s", "/elsewhere/main.py\n")]
    agent.hook("session-end", session_id="s")
    agent.environment["MEMORYD_OBSERVE"] = "off"
    agent.hook("tool", session_id="t", tool_name="Write", tool_input={"file_path": "/elsewhere/zebraword1.md"})
    assert list(answering.list_noted()) == []


def test_a_hook_killed_at_any_moment_loses_no_line_that_another_wrote(folder: Path, agent: Agent) -> None:
    for number in range(3):
        agent.hook("prompt", prompt=f"Plan number {number} of the migration")
    for delay_s in (0.02, 0.05, 0.08, 0.1, 0.12):
        with subprocess.Popen(agent.command("prompt"), stdin=subprocess.PIPE, env=agent.environment) as child:
            assert child.stdin is not None
            child.stdin.write(json.dumps(agent.given("prompt", prompt=f"Killed after {delay_s} s, maybe")).encode())
            child.stdin.close()
            time.sleep(delay_s)
            child.kill()
    agent.hook("prompt", prompt="Plan number 3 of the migration")
    said = [call["turns"][0]["content"] for call in spooled(folder)]
    assert [text for text in said if text.startswith("Plan")] == [f"Plan number {n} of the migration" for n in range(4)]


# The protocol --------------------------------------------------------------------------------------------------------


@each("name", HOSTS)
@each("event", EVENTS)
def test_every_call_of_a_hook_is_one_of_the_protocol(name: str, event: str, folder: Path) -> None:
    host = HOSTS[name]
    assert event in host.events, f"give {event!r} a row in the events of {name!r} in HOSTS"
    agent = Agent(name, folder, folder)
    fields = {"prompt": SAYING, host.message: "Noted.", "source": "startup"}
    asked = answering.read_event(event, name, json.dumps(agent.given(event, **fields)).encode())

    sent: list[dict[str, Any]] = []

    class Link:
        def call(self, method: str, **fields: Any) -> dict[str, Any]:
            sent.append({"method": method, **fields})
            return {"text": "context"}

    said = answering.context(Link(), asked)  # type: ignore[arg-type]
    assert bool(said) == (event in host.injects)
    for call in [*sent, *answering.list_calls(asked), {"method": "index_workspace", "workspace": "/a"}]:
        kind: type[Call[Any]] = next(one for one in METHODS if method_name(one) == call["method"])
        msgspec.msgpack.decode(msgspec.msgpack.encode(call), type=kind)


def test_a_hook_imports_what_it_needs_alone(agent: Agent, process: Process) -> None:
    code = (
        "import os, sys; sys.argv = ['memctl', 'hook', 'prompt'];"
        "leave = os._exit; os._exit = lambda code: (print(sorted(sys.modules), file=sys.stderr), leave(code));"
        "from memoryd.client.programs.memctl import main; main()"
    )
    given = json.dumps(agent.given("prompt", prompt="deploys")).encode()
    agent.run("prompt", given)  # the project is met for the first time
    done = subprocess.run([sys.executable, "-c", code], input=given, capture_output=True, env=agent.environment)
    loaded = set(done.stderr.decode().strip("[]\n").replace("'", "").split(", "))
    assert "memoryd.client.programs.hooks.answering" in loaded
    slow = {
        "argparse",
        "asyncio",
        "inspect",
        "json",
        "memoryd.client.credentials",
        "memoryd.client.protocol",
        "pathlib",
        "subprocess",
        "typing_extensions",
    }
    assert loaded & slow == set()


def test_the_start_of_a_session_starts_the_daemon_and_tells_how_to_keep_nothing(folder: Path, agent: Agent) -> None:
    (folder / "config.toml").write_text(NO_MODEL + NO_JOBS)
    agent.hook("prompt", prompt=SAYING)
    assert not (folder / "s").exists()
    assert "memctl observe off" in agent.hook("session-start", source="startup").said, "the first one alone is told"
    assert "memctl observe off" not in agent.hook("session-start", source="startup").said
    with Client(socket=folder / "s", autostart=False) as client:
        pid = client.status().pid
        try:
            assert [turn[3] for turn in turns(client)] == [SAYING]
        finally:
            os.kill(pid, signal.SIGTERM)
            wait_until(lambda: not Path(f"/proc/{pid}/exe").exists())  # its database is closed after its socket
