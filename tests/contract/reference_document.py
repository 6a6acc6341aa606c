"""Print docs/reference.md with its methods written anew: python tests/contract/reference_document.py

The page is written by hand but for what is between `<!-- methods -->` and `<!-- end of methods -->`: a section for each
module of `client/protocol/`, by its docstring (`Title: what it is.`), with an entry for each method of the clients, and
each value that programs write or read most often, from signatures and docstrings.
"""

import re
from collections.abc import Iterator
from importlib import import_module
from inspect import Parameter, cleandoc, signature
from itertools import groupby
from pathlib import Path
from typing import Any

from msgspec import UNSET
from msgspec import inspect as types
from protocol_document import docstring, field_meanings

from memoryd.client import Client, methods, protocol
from memoryd.client.errors import Conflict, Forbidden, MemorydError, ModelUnavailable, NotFound
from memoryd.client.method import method
from memoryd.client.protocol import DECLARED, METHODS

PAGE = Path(__file__).parents[2] / "docs" / "reference.md"
_ENTRIES = re.compile(r"(?<=<!-- methods -->\n).*(?=<!-- end of methods -->)", re.DOTALL)
# Values whose fields are explained: those that programs write themselves or read most often.
VALUES = (
    protocol.SearchOptions,
    protocol.NewTurn,
    protocol.KeyedEntry,
    protocol.Memory,
    protocol.Hit,
    protocol.Hits,
    protocol.ContextText,
    protocol.Added,
    protocol.LaterStatement,
    protocol.Event,
    protocol.Progress,
)
_CALLS = {call.__name__: call for call in METHODS}
# Those that the clients have by themselves, and the call that each sends.
OWN = {"add_many": protocol.AddMany, "subscribe": protocol.Subscribe}
NOT_FOR_PROGRAMS = {"hello", "authenticate", "confine", "backfill"}  # of transports, hooks and memctl
# Arguments that mean the same in many methods: they are listed once, and left out of an entry that means just this.
_COMMON = {
    "id": "id or unique prefix",
    "ids": "ids or unique prefixes",
    "limit": "how many at most (1 to 1,000)",
    "offset": "how many to skip",
    "allow_secrets": "store likely credentials as they are",
    "session": "the conversation's name",
    "workspace": "its namespace, or an absolute path inside it",
    "on_progress": "called with a [`Progress`](#progress) now and then",
}
# Arguments that are no field of the call, or mean more than the field does.
_ARGUMENTS = {
    **_COMMON,
    "key": "a key or several, of memories in the namespace itself",
    "lines": "`start_line` and `end_line`: a part of the memory by its lines",
    "messages": "mappings with `role` and `content`, as chat APIs have them",
    "running_summary": "the `summary` of the result of the call before",
    "records": "those that `export_memories` returned",
    "to": "the namespace to share to, as a text or a tuple; `/` is the root",
    "values": "metadata to set, by keyword",
    "idle_s": "end when nothing has happened for so long; left out: never",
    "process": "`process(query, hits)` returns the hits to go on with",
    "call": "a value of a class of `memoryd.client.protocol`, where no method fits",
}
# What a list is of.
_ITEMS = {
    "memories": "texts, or mappings of the fields that [add](#add) takes",
    "turns": "mappings of the fields of [`NewTurn`](#newturn)",
    "entries": "mappings of the fields of [`KeyedEntry`](#keyedentry)",
}
# What a result is a list of, for the lists that most programs read.
_OF_ITEMS = {"search": protocol.Hit, "list": protocol.Memory}
_SCOPES = (protocol.Scoped, protocol.Filtered)
_LIKE = {**dict.fromkeys(("related", "explain", "why_not"), "search"), "put": "add"}
_IDS = {"id", "ids", "other"}
_NOT_OF_ADD = {"memory", "idempotency_key"}  # fields of the call that the client's `add` does not take
_UNSEEN = "when no memory that you see has this id"
# When a method raises what is not said by its declaration; a test asks for what is not found.
_NOT_FOUND = {
    "undo": "there is no such operation, or none to undo",
    "trace": "no such trace is kept any more",
    "run_job": "there is no such job or plan",
    "pause_job": "there is no such job",
    "resume_job": "there is no such job",
    "revoke_token": "there is no such token",
    "graph_nodes": "there is no such node",
    "related": "no memory has this id",
    "get": "no memory that you see has this id or key",
    **dict.fromkeys(
        ("remember", "flush", "index_workspace", "remove_workspace", "workspaces"),
        "there is no such workspace",
    ),
}
_CONFLICT = {
    "undo": "what it did was changed again since, or was erased",
    "share": "a memory is superseded, or its key is another's there",
    "feedback": "it is a turn that is still in L0",
    "add": "the `id` that you give is another memory's",
    "related": "its vector is not made yet",
    "add_token": "the name is taken",
    "add_workspace": "the folder, or one around or in it, is a workspace already",
    "backup": "the file exists",
    "run_job": "it is under way, or the plan is of another job",
    "delete": "it is a part of a file",
    "update": "it is a part of a file",
}


def document() -> str:
    """Return the text of the page."""
    common = "".join(f"- `{name}`: {meaning}\n" for name, meaning in _COMMON.items())
    parts = [f"## Common arguments\nEntries leave these out if they mean just this.\n{common}\n"]
    for module, names in sort_methods().items():
        title, _, intro = cleandoc(import_module(module).__doc__ or "").partition(": ")
        parts += [f"## {title}\n{intro[:1].upper()}{intro[1:]}\n\n", *map(_write_entry, names)]
    values = ["## Values\nThose that programs write themselves or read most often.\n\n", *map(_write_value, VALUES)]
    return _ENTRIES.sub(lambda _: "".join([*parts, *values]), PAGE.read_text())


def sort_methods() -> dict[str, list[str]]:
    """Return the methods by the module of their calls, in the order of the contract."""
    names = sorted(list_methods() - NOT_FOR_PROGRAMS, key=lambda name: (METHODS.index(find_call(name)), name))
    return {module: list(part) for module, part in groupby(names, key=lambda name: find_call(name).__module__)}


def list_methods() -> set[str]:
    """Return the methods of a client that send a call."""
    return {name for name in dir(Client) if isinstance(_find(name), method) and _name_call(name) in _CALLS} | OWN.keys()


def find_call(name: str) -> type[protocol.Call[Any]]:
    """Return the call that a method sends."""
    return OWN[name] if name in OWN else _CALLS[_name_call(name)]


def _name_call(name: str) -> str:
    return str(signature(_find(name).build).return_annotation).rpartition(".")[2]


def list_errors(name: str) -> dict[type[MemorydError], str]:
    """Return what a method raises beside what all may raise, and when."""
    call, parameters = find_call(name), set(_list_parameters(name))
    declared, raised = DECLARED[call], dict[type[MemorydError], str]()
    if name in _NOT_FOUND or parameters & _IDS:
        raised[NotFound] = f"when {_NOT_FOUND[name]}" if name in _NOT_FOUND else _UNSEEN
    if name in _CONFLICT:
        raised[Conflict] = f"when {_CONFLICT[name]}"
    if declared.access == "owner":
        raised[Forbidden] = "for a client with a token: it is the owner's"
    if name == "use_model":
        raised[ModelUnavailable] = "when the model is not installed"
    return raised


def _find(name: str) -> Any:
    return next((vars(base)[name] for base in Client.__mro__ if name in vars(base)), None)


def _list_parameters(name: str) -> dict[str, Parameter]:
    found = _find(name)
    parameters = dict(signature(found.build if isinstance(found, method) else found).parameters)
    parameters.pop("self", None)
    return parameters


def _write_entry(name: str) -> str:
    call = find_call(name)
    owner = " (owner)" if DECLARED[call].access == "owner" else ""
    lines = [f"### {name}", f"`{name}({_format_signature(name)})`{owner}: {_read_docstring(name)}"]
    lines += [line for line in _describe_parameters(name, call) if line not in _list_known(name)]
    lines += _describe_result(name, call)
    raised = [
        f"`{error.__name__}` {when}"
        for error, when in list_errors(name).items()
        if error is not Forbidden and when != _UNSEEN
    ]
    lines += [f"- **Raises** {'; '.join(raised)}"] if raised else []
    return "\n".join([*lines, "", ""])


def _list_known(name: str) -> set[str]:
    """Return the lines of arguments that stand elsewhere: in the common list, or in the entry that this one names."""
    known = {f"- `{argument}`: {meaning}" for argument, meaning in _COMMON.items()}
    return known | (set(_describe_parameters(_LIKE[name], find_call(_LIKE[name]))) if name in _LIKE else set())


def _describe_result(name: str, call: type[protocol.Call[Any]]) -> Iterator[str]:
    result, of = protocol.result_type(call), _OF_ITEMS.get(name)
    if name == "subscribe":
        yield f"- **Iterates over** {_list_fields(protocol.Event)}"
    elif result is not protocol.Done:
        yield f"- **Returns** {_list_fields(result)}" + (f"; each item is a {_list_fields(of)}" if of else "")


def _list_fields(struct: type[Any]) -> str:
    if struct in VALUES:
        return f"[`{struct.__name__}`](#{struct.__name__.lower()})"
    fields = ", ".join(f"`{field}`" for field in struct.__struct_fields__)
    return f"`{struct.__name__}`: {fields}"


def _write_value(struct: type[Any]) -> str:
    """Return what each field of a value means; of a hit those that a memory does not have."""
    meanings = field_meanings(struct)
    lines = [f"### {struct.__name__}", cleandoc(docstring(struct)).replace("\n\n", "\n")]
    lines += ["- all fields of [`Memory`](#memory)"] * (struct is protocol.Hit)
    lines += [f"- `{field}`: {_put_in_python(text)}" for field, text in meanings.items()]
    return "\n".join([*lines, "", ""])


def _format_signature(name: str) -> str:
    """Return the arguments with their defaults and no types, which the meanings say."""
    words, is_named = [], False
    for parameter in _list_parameters(name).values():
        if parameter.kind is Parameter.KEYWORD_ONLY and not is_named:
            is_named = True
            if not any(word.startswith("*") for word in words):
                words.append("*")
        star = {Parameter.VAR_POSITIONAL: "*", Parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        default = "" if parameter.default is Parameter.empty else f"={_format_default(parameter.default)}"
        words.append(f"{star}{parameter.name}{default}")
    return ", ".join(words)


def _format_default(value: object) -> str:
    return "UNSET" if value is UNSET else repr(value).replace("'", '"')


def _read_docstring(name: str) -> str:
    """Return what a method does: its own docstring, and what that of its call says beside the same."""
    own = " ".join((_find(name).__doc__ or "").split())
    parts = [" ".join(part.split()) for part in docstring(find_call(name)).split("\n\n")]
    return "\n".join([own, *parts[1:]] if own == parts[0] or name in written_by_contract() else [own])


def written_by_contract() -> set[str]:
    """Return the methods that are generated from their calls."""
    return {name for name in dir(methods.DeclaredMethods) if not name.startswith("_")}


def _describe_parameters(name: str, call: type[protocol.Call[Any]]) -> Iterator[str]:
    parameters = _list_parameters(name)
    filters = set(protocol.Filtered.__struct_fields__) if issubclass(call, protocol.Filtered) else set()
    meanings = _read_meanings(name, call)
    for parameter in parameters:
        if parameter == "reach" or parameter in filters:
            continue
        if parameter == "fields":
            yield from _describe_fields(name, call, set(parameters), meanings)
            continue
        meaning = meanings.get(parameter) or _ARGUMENTS.get(parameter)
        if meaning and parameter in _ITEMS:
            meaning = f"{meaning}: {_ITEMS[parameter]}"
        assert meaning, f"say in _ARGUMENTS what {parameter} of {name} is"
        yield _describe(parameter, meaning, call)
    if filters and "fields" not in parameters:
        yield "- the [filters](#filters)"


def _describe_fields(
    name: str, call: type[protocol.Call[Any]], named: set[str], meanings: dict[str, str]
) -> Iterator[str]:
    """Yield what may be given by keyword beside the named arguments."""
    if name in _LIKE:
        yield f"- `**fields`: whatever [{_LIKE[name]}](#{_LIKE[name]}) takes"
        return
    filters = set(protocol.Filtered.__struct_fields__) if issubclass(call, protocol.Filtered) else set()
    if filters:
        yield "- `**fields`: the [filters](#filters)" + (", and by keyword:" if set(meanings) - filters - named else "")
    for field, meaning in meanings.items():
        if field not in filters | named | {"namespace", "reach"}:
            yield _describe(field, meaning, call)


def _describe(field: str, meaning: str, call: type[protocol.Call[Any]]) -> str:
    """Return the line of an argument: its meaning in Python's words, and which values there are."""
    described: list[Any] = [types.type_info(struct) for struct in (call, protocol.NewMemory)]
    info = next((one.type for struct in described for one in struct.fields if one.name == field), None)
    kinds = [info, *getattr(info, "types", ()), getattr(info, "item_type", None)]
    values = next((kind.values for kind in kinds if isinstance(kind, types.LiteralType)), ())
    listed = f" ({', '.join(f'`{value}`' for value in values)})" if values and f"`{values[0]}`" not in meaning else ""
    listed += next((f" ({kind.ge:,g} to {kind.le:,g})" for kind in kinds if _is_bounded(kind)), "")
    return f"- `{field}`: {_put_in_python(meaning)}{listed}"


def _put_in_python(meaning: str) -> str:
    return re.sub(r"\bnull\b", "`None`", re.sub(r"^(true|false):", lambda found: f"`{found[1].title()}`:", meaning))


def _is_bounded(kind: Any) -> bool:
    """Return whether a number has a limit that a caller may meet."""
    return getattr(kind, "ge", None) is not None and kind.le is not None and kind.le < protocol.MAX_SECONDS


def _read_meanings(name: str, call: type[protocol.Call[Any]]) -> dict[str, str]:
    """Return what each field means that a method takes: those of its call, and of the memory that it stores."""
    structs = [base for base in call.__mro__ if issubclass(base, protocol.Call) and base is not protocol.Call]
    own = [struct for struct in structs if struct.__module__ != protocol.Call.__module__ or struct in _SCOPES]
    stored = {"add": [protocol.NewMemory], "put": [protocol.NewMemory, protocol.KeyedEntry]}.get(name, [])
    meanings = {field: text for struct in (*stored, *own) for field, text in field_meanings(struct).items()}
    return {field: text for field, text in meanings.items() if name != "add" or field not in _NOT_OF_ADD}


if __name__ == "__main__":
    print(document(), end="")
