"""The `model` commands: list, install and switch embedding models.

Lists and installations run in a process of their own (`python -m memoryd.models`, which prints JSON); switching is a
call to the daemon.
"""

import time
from argparse import ArgumentParser, Namespace
from contextlib import suppress
from typing import Any

import msgspec

from memoryd.client.errors import MemorydError, ModelUnavailable, TimedOut
from memoryd.client.offline import VARIABLE
from memoryd.client.programs.memctl.arguments import declare_nothing
from memoryd.client.programs.memctl.commands import Command
from memoryd.client.programs.memctl.link import client_for
from memoryd.client.programs.memctl.local import effective_settings, read_output
from memoryd.client.programs.memctl.output import columns, show
from memoryd.client.programs.memctl.progress import ProgressBar
from memoryd.client.programs.memctl.service import model_text
from memoryd.client.programs.memctl.text_table import GAP, format_table, wrap
from memoryd.client.protocol import ModelState, UseModel
from memoryd.client.transport import paths
from memoryd.client.transport.sync import Client

POLL_S = 0.2
API = "openai:"  # prefix of the names of models behind [embedding_api]


def run_models(*arguments: str, given: bytes = b"", variables: dict[str, str] | None = None) -> Any:
    """Return the report of `python -m memoryd.models ARGUMENTS`; `variables` are added to its environment."""
    watched = arguments[0] in ("pull", "import")
    printed = read_output("memoryd.models", arguments, progress=watched, given=given, **variables or {})
    return msgspec.json.decode(printed)


def pull(*arguments: str) -> Any:
    """Pull a model and return the report; nothing is fetched if the settings have `offline`."""
    forbidden = {VARIABLE: "1"} if effective_settings()["network"]["offline"] else {}
    return run_models("pull", *arguments, "--json", variables=forbidden)


def _list(args: Namespace) -> None:
    used: ModelState | None = None
    with suppress(MemorydError), client_for(args, autostart=False) as client:
        used = client.status().model
    models = run_models("list", "--json", *folder_options()) + _list_api_models(used)
    for model in models:
        model["in_use"] = used is not None and used.state == "ready" and model["name"] == used.name
    show(args, models, lambda: _list_text(models))


def _list_api_models(used: ModelState | None) -> list[dict[str, Any]]:
    """Return the models behind an API that the settings name or the daemon uses."""
    settings = effective_settings()
    names: dict[str, int | None] = {settings["model"]["name"]: settings["embedding_api"]["dimensions"] or None}
    if used:
        names[used.name] = used.dimensions or names.get(used.name)
    return [
        {
            "name": name,
            "installed": False,
            "default": False,
            "dimensions": dimensions,
            "max_tokens": None,
            "languages": None,
            "size_mb": 0,
            "licence": "",
            "description": f"behind {settings['embedding_api']['url']}",
        }
        for name, dimensions in names.items()
        if name.startswith(API)
    ]


def _list_text(models: list[dict[str, Any]]) -> str:
    rows, size = [], max(columns() - 2 * len(GAP), 40)
    for m in models:
        state = "API" if m["name"].startswith(API) else "yes" if m["installed"] else ""
        rows.append([m["name"], "in use" if m["in_use"] else state, f"{m['dimensions'] or '?'}", f"{m['size_mb']:.0f}"])
    first, *lines = format_table(["NAME", "INSTALLED", "DIM", "MB"], rows, right=(2, 3)).splitlines()
    parts = [first]
    for line, m in zip(lines, models, strict=True):
        parts += [line, *(f"{GAP}{part}" for part in wrap(m["description"], size, 4))]
    return "\n".join([*parts, "`memctl model use NAME` computes all vectors again, in the background."])


def folder_options() -> list[str]:
    """Return the option for the models folder of the settings, else the default one."""
    return ["--dir", str(paths.models_dir(effective_settings()["model"]["folder"]))]


def _declare_pull(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="a model of the catalogue: `memctl model list`")
    parser.add_argument("--force", action="store_true", help="fetch it again even if it is installed")


def _pull(args: Namespace) -> None:
    force = ["--force"] if args.force else []
    report = pull(args.name, *force, *folder_options())
    show(args, report, lambda: _installed_text(args, report))


def _installed_text(args: Namespace, report: dict[str, Any]) -> str:
    name = report["name"]
    used = False
    with suppress(MemorydError), client_for(args, autostart=False) as client:
        used = client.status().model.name == name
    then = "it is the one in use" if used else f"`memctl model use {name}` switches to it"
    return f"{name} is installed in {report['path']}; {then}."


def _declare_import(parser: ArgumentParser) -> None:
    parser.add_argument(
        "source", metavar="DIR", help="a folder with model.safetensors or model.onnx and tokenizer.json"
    )
    parser.add_argument("--name", metavar="NAME", help="its name (default: that of the folder)")


def _import(args: Namespace) -> None:
    name = ["--name", args.name] if args.name else []
    report = run_models("import", args.source, "--json", *name, *folder_options())
    show(args, report, lambda: _installed_text(args, report))


def _declare_use(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="an installed model, or openai:NAME of one behind [embedding_api]")
    parser.add_argument("--no-wait", action="store_true", help="do not wait until all vectors are computed again")


def _use(args: Namespace) -> None:
    with client_for(args) as client:
        former = client.status().model.name
        client.call(UseModel(name=args.name))
        model = client.status().model if args.no_wait else _wait_for_model(client, args.name)
    back = f" `memctl model use {former}` switches back." if former != args.name else ""
    show(args, model, lambda: f"Model in use: {model_text(model)}.{back}")


def _wait_for_model(client: Client, name: str) -> ModelState:
    """Wait until the daemon uses the model and all vectors are computed.

    Raise `ModelUnavailable` if that fails, `TimedOut` if there is no progress for the client's `timeout_s`.
    """
    last, moved_at = None, time.monotonic()
    with ProgressBar(f"vectors of {name}") as progress:
        while True:
            model = client.status().model
            if model != last:
                last, moved_at = model, time.monotonic()
            elif time.monotonic() - moved_at > client.timeout_s:
                raise TimedOut(f"No progress for {client.timeout_s:g} s: the model is {model_text(model)}.")
            if model.state == "failed" or (model.error and not model.reembedding):
                raise ModelUnavailable(f"The model is {model_text(model)}.")
            if model.reembedding:
                progress.update(model.reembedding.done, model.reembedding.total)
            elif model.name == name and model.state == "ready":
                return model
            time.sleep(POLL_S)


COMMANDS = {
    "model list": Command(declare_nothing, _list, "  memctl model list"),
    "model pull": Command(_declare_pull, _pull, "  memctl model pull bge-small-en-v1.5"),
    "model import": Command(_declare_import, _import, "  memctl model import ~/models/my-model --name my-model"),
    "model use": Command(
        _declare_use, _use, "  memctl model use bge-small-en-v1.5\n  memctl model use openai:text-embedding-3-small"
    ),
}
