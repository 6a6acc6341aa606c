"""The ledger, `surface.toml`, has a row for all that the code promises. Run this file to print what is to go."""

import argparse
import ast
import re
import tomllib
from importlib import import_module
from pathlib import Path

from each import each

ROOT = Path(__file__).parents[1]
LEDGER = Path(__file__).with_name("surface.toml")
PARTS = ("NewMemory", "NewTurn", "KeyedEntry", "SearchOptions")  # what calls take in lists
PLACES = "client daemon models scheduler".split()


def list_calls():
    from memoryd.client import protocol

    return {protocol.method_name(call): call for call in protocol.METHODS}


def list_methods():
    return list(list_calls())


def list_parameters():
    from memoryd.client import protocol
    from memoryd.client.protocol import base, search

    bases = [base.Scoped, base.Filtered, search.Query]
    known = set()
    for one in bases:
        for field in one.__struct_fields__:
            if field not in known:
                yield f"{one.__name__}.{field}"
        known |= set(one.__struct_fields__)
    for name, call in list_calls().items():
        inherited = {field for one in bases if issubclass(call, one) for field in one.__struct_fields__}
        yield from (f"{name}.{field}" for field in call.__struct_fields__ if field not in inherited)
    for part in PARTS:
        yield from (f"{part}.{field}" for field in getattr(protocol, part).__struct_fields__)


def list_commands():
    from memoryd.client.programs.memctl import commands

    return list(commands.list_commands())


def list_options():
    from memoryd.client.programs.memctl import arguments, commands

    everywhere = argparse.ArgumentParser(add_help=False)
    arguments.add_global_options(everywhere)
    shared = [_name(action) for action in everywhere._actions if action.option_strings]
    yield from (f"every command {option}" for option in shared)
    for name in commands.list_commands():
        _, parser = arguments.command_of(name)
        for action in parser._actions:
            if action.option_strings and _name(action) not in (*shared, "--help"):
                yield f"{name} {_name(action)}"


def _name(action):
    """Return the longest way to write an option that does not begin with `--no-`, where there is one."""
    names = [name for name in action.option_strings if not name.startswith("--no-")] or action.option_strings
    return max(names, key=len)


def list_settings():
    import msgspec

    from memoryd.daemon import config

    for section in msgspec.structs.fields(config.Config):
        shape = section.type
        if isinstance(shape, type) and hasattr(shape, "__struct_fields__"):
            yield from (f"{section.name}.{name}" for name in shape.__struct_fields__)
        else:  # a section per name
            yield from (f"{section.name}.NAME.{name}" for name in config.SharedConfig.__struct_fields__)


def list_jobs():
    from memoryd.daemon.jobs.table import list_jobs

    return {name: f"{row.every_s:g} s" for name, row in list_jobs().items()}


def list_tables():
    pattern = re.compile(r"CREATE (?:VIRTUAL )?TABLE (?:IF NOT EXISTS )?([a-z_]+) ?(?:\(|USING)")
    root = ROOT
    return sorted({name for file in (root / "daemon").rglob("*.py") for name in pattern.findall(file.read_text())})


def list_checks():
    return list(import_module("memoryd.client.programs.doctor.checks").list_checks())


def list_errors():
    return list(import_module("memoryd.client.errors").ERRORS)


def list_mcp():
    from memoryd.client.programs.mcp import prompts, resources, tools

    source = ast.parse((ROOT / "client/programs/mcp/tools.py").read_text())
    for table in (tools.TOOLS, tools.CONNECTOR_TOOLS):
        for name, tool in table.items():
            yield name
            shape = next(
                value for value in _values(tool) if hasattr(value, "__struct_fields__") and isinstance(value, type)
            )
            yield from (f"{name}.{field}" for field in shape.__struct_fields__)
    assert source
    yield from (f"prompt {name}" for name in prompts.PROMPTS)
    yield from (f"resource {resources.uri(name)}" for name in resources.SHELVES)


def _values(row):
    return tuple(row) if isinstance(row, tuple) else [getattr(row, name) for name in row.__struct_fields__]


def list_hosts():
    from memoryd.client.programs.hooks.hosts import HOSTS

    return [*HOSTS, *(["hermes"] if (ROOT / "client/programs/hooks/hermes.py").exists() else [])]


def list_events():
    return list(import_module("memoryd.client.programs.hooks.hosts").EVENTS)


def list_agents():
    return list(import_module("memoryd.client.programs.sessions.agents").AGENTS)


def list_systems():
    return list(import_module("memoryd.client.programs.importing.systems").SYSTEMS)


def list_frameworks():
    """Return the public classes and functions of adapters, and the tools for any agent."""
    for name in ("langgraph", "openai_agents", "anthropic"):
        tree = ast.parse((ROOT / f"client/integrations/{name}.py").read_text())
        for node in tree.body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_"):
                yield f"{name}.{node.name}"
    tree = ast.parse((ROOT / "client/tools.py").read_text())
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_"):
            yield f"tools.{node.name}"


def list_models():
    return list(import_module("memoryd.models.catalog").CATALOG)


def list_pages():
    root = ROOT
    return sorted(str(path.relative_to(root)) for path in (*root.glob("*.md"), *root.glob("docs/*.md")))


_VARIABLE = re.compile(
    r"(?:MEMORYD|XDG|LISTEN|WATCHDOG|CLAUDE|CODEX|COPILOT|CLINE|SSL|HF|OPENAI)_[A-Z_]+|NOTIFY_SOCKET|JOURNAL_STREAM"
    r"|NO_COLOR|TMPDIR|USER|INVOCATION_ID"
)


def list_variables():
    """Return the variables of the environment that the source names as a whole text, or as the first part of one."""
    root, names = ROOT, set()
    for folder in PLACES:
        for file in (root / folder).rglob("*.py"):
            if "tests" in file.relative_to(root).parts:
                continue
            text = file.read_text()
            for node in ast.walk(ast.parse(text)) if _VARIABLE.search(text) else ():
                if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 400:
                    for word in re.split(r"[ /]", node.value):
                        if _VARIABLE.fullmatch(word) and (
                            word == node.value or node.value.isupper() or "/" in node.value
                        ):
                            names.add(word)
    return sorted(names)


def list_dependencies():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    yield from (f"base {_distribution(one)}" for one in project["dependencies"])
    for extra, ones in project["optional-dependencies"].items():
        yield f"[{extra}]"
        yield from dict.fromkeys(f"{extra} {_distribution(one)}" for one in ones if not one.startswith("memoryd["))


def _distribution(requirement):
    return re.match(r"[A-Za-z0-9_.-]+", requirement)[0]


def list_stages():
    return [stage.__name__ for stage in import_module("memoryd.daemon.search.pipeline").list_stages()]


def list_profiles():
    return list(import_module("memoryd.daemon.search.profiles").PROFILES)


def list_views():
    root = ROOT
    text = (root / "client/programs/web/static/app.js").read_text()
    table = re.search(r"const VIEWS = \[(.*?)\];", text, re.DOTALL)[1]
    yield from re.findall(r'\["([a-z]+)"', table)


SECTIONS = {
    "methods": list_methods,
    "parameters": list_parameters,
    "commands": list_commands,
    "options": list_options,
    "settings": list_settings,
    "jobs": list_jobs,
    "tables": list_tables,
    "checks": list_checks,
    "errors": list_errors,
    "mcp": list_mcp,
    "hosts": list_hosts,
    "events": list_events,
    "agents": list_agents,
    "systems": list_systems,
    "frameworks": list_frameworks,
    "models": list_models,
    "pages": list_pages,
    "variables": list_variables,
    "dependencies": list_dependencies,
    "stages": list_stages,
    "profiles": list_profiles,
    "views": list_views,
}


@each("section", SECTIONS)
def test_the_ledger_has_a_row_for_each_promise_of_the_code(section: str) -> None:
    rows = tomllib.loads(LEDGER.read_text())[section]
    names = list(SECTIONS[section]())
    assert [name for name in names if name not in rows] == [], "in the code and in no row"
    missing = [name for name, row in rows.items() if name not in names and not row.get("new")]
    assert missing == [], "in a row and not in the code: delete the row, or mark it `new`"


def test_each_row_has_its_reason() -> None:
    for section, rows in tomllib.loads(LEDGER.read_text()).items():
        assert section in SECTIONS
        for name, row in rows.items():
            assert row.get("why" if row["keep"] else "instead"), f"{section}: {name}"


if __name__ == "__main__":
    for section, rows in tomllib.loads(LEDGER.read_text()).items():
        for name, row in rows.items():
            if not row["keep"]:
                print(f"{section}: {name}: {row['instead']}")
