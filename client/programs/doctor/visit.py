"""Run the checks, apply the safe fixes if asked to, and report the findings."""

import os
import shlex
import subprocess
import sys
from argparse import Namespace

from memoryd.client.errors import Forbidden, MemorydError
from memoryd.client.programs.doctor.checks import AREAS, list_checks
from memoryd.client.programs.doctor.patient import Finding, Patient, Texts
from memoryd.client.programs.memctl.arguments import Usage
from memoryd.client.programs.memctl.link import client_for
from memoryd.client.programs.memctl.output import agrees, columns, make_printable, paint, print_note, show
from memoryd.client.programs.memctl.text_table import count_text, pad, wrap

STYLES = {"ok": "green", "warn": "yellow", "fail": "red"}
STATE = 6  # the width of a state and the gap after it
LINES = 6  # the most lines of one message
MEND_LIMIT_S = 900.0


def visit(args: Namespace) -> int:
    """Run `memctl doctor`; return the exit code, 1 if something does not work."""
    if args.yes and not args.fix:
        raise Usage("--yes needs --fix.")
    chosen = _choose_checks(args.checks)
    findings = _run_checks(args, chosen)
    if args.fix and any(finding.commands for finding in findings):
        findings = _fix_findings(args, findings, chosen)
    shown = [finding for finding in findings if not args.wrong or finding.state != "ok" or finding.mended]
    show(args, shown, lambda: _text(shown, findings))
    return int(any(finding.state == "fail" for finding in findings))


def _choose_checks(words: list[str]) -> list[str]:
    """Return the names of the checks that `words` select, by name or by area; all checks if there are no words."""
    names: list[str] = []
    for word in words:
        area = next((checks for name, checks in AREAS.items() if name.casefold() == word.casefold()), None)
        if area is None and word not in list_checks():
            named, areas = ", ".join(list_checks()), ", ".join(AREAS)
            raise Usage(f"{word!r} is not a check; there are: {named}; and areas: {areas}.")
        names += area or [word]
    return list(dict.fromkeys(names)) or list(list_checks())


def _run_checks(args: Namespace, names: list[str]) -> list[Finding]:
    with client_for(args, autostart=False) as client:
        patient = Patient(client)
        return [finding for name in names if (finding := _check(name, patient))]


def _check(name: str, patient: Patient) -> Finding | None:
    try:
        finding = list_checks()[name](patient)
    except Forbidden:
        finding = Finding("ok", "not checked: this is for the owner of the memory, without a token")
    except OSError as error:
        finding = Finding("fail", f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except MemorydError as error:
        finding = Finding("fail", error.message)
    if finding:
        finding.name = name
        finding.area = next(area for area, checks in AREAS.items() if name in checks)
    return finding


# Fixing --------------------------------------------------------------------------------------------------------------


def _confirm(args: Namespace, wrong: list[Finding]) -> bool:
    """List the commands that would run; return whether the user agrees."""
    for finding in wrong:
        print_note(f"{finding.name}: {finding.message}\n    {finding.fix}")
    if args.yes:
        return True
    return not args.json and agrees("Run these commands?")


def _fix_findings(args: Namespace, findings: list[Finding], names: list[str]) -> list[Finding]:
    """Run the safe commands if the user agrees; return the findings of a second run of the checks."""
    wrong = [finding for finding in findings if finding.commands]
    if not _confirm(args, wrong):
        print_note("memctl: nothing was changed; `memctl doctor --fix --yes` applies the fixes.")
        return findings
    outcomes = {finding.name: [_run_command(args, words) for words in finding.commands] for finding in wrong}
    after = {finding.name: finding for finding in _run_checks(args, names)}
    for finding in wrong:
        now = after.setdefault(finding.name, Finding("ok", "nothing is left of it", name=finding.name))
        now.area, now.mended = finding.area, all(outcomes[finding.name]) and now.state == "ok"
    return [after[name] for name in names if name in after]


def _run_command(args: Namespace, words: Texts) -> bool:
    """Run a command; return whether it succeeded."""
    command = (
        [sys.executable, "-P", "-m", "memoryd.client.programs.memctl", *words[1:]] if words[0] == "memctl" else words
    )
    environment = {**os.environ, "MEMORYD_SOCKET": args.socket} if args.socket else None
    watched = bool(sys.stderr and sys.stderr.isatty())  # then the command shows its progress bars and errors itself
    print_note(f"+ {shlex.join(words)}")
    try:
        done = subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=None if watched else subprocess.PIPE,
            timeout=MEND_LIMIT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        print_note(f"{' '.join(words)}: {error}")
        return False
    if done.returncode and not watched:
        print_note(make_printable(done.stderr.decode("utf-8", "replace").strip()) or f"{' '.join(words)} failed")
    return not done.returncode


# Text ----------------------------------------------------------------------------------------------------------------


def _text(shown: list[Finding], findings: list[Finding]) -> str:
    broadest = max((len(finding.name) for finding in shown), default=0)
    lines: list[str] = []
    for area in dict.fromkeys(finding.area for finding in shown):
        lines += [paint(area, "bold")]
        lines += [line for finding in shown if finding.area == area for line in _format_finding(finding, broadest)]
    return "\n".join([*lines, "", _sum_text(findings)] if lines else [_sum_text(findings)])


def _format_finding(finding: Finding, broadest: int) -> list[str]:
    indent = " " * (2 + broadest + 2 + STATE)
    first, *others = wrap(finding.message, columns() - len(indent), LINES)
    state = paint(pad(finding.state, STATE - 2), STYLES[finding.state])
    fixed = paint("  (fixed)", "green") if finding.mended else ""
    lines = [f"  {paint(pad(finding.name, broadest), 'dim')}  {state}  {first}", *(indent + line for line in others)]
    lines[-1] += fixed
    if finding.fix:  # not wrapped, so that it can be copied
        lines.append(f"{indent}fix it: {paint(make_printable(finding.fix), 'cyan')}")
    return lines


def _sum_text(findings: list[Finding]) -> str:
    wrong = sum(finding.state == "fail" for finding in findings)
    warnings = sum(finding.state == "warn" for finding in findings)
    safe = sum(bool(finding.commands) for finding in findings)
    if not wrong and not warnings:
        return f"All is well ({count_text(len(findings), 'check')})."
    parts = [count_text(wrong, "problem")] if wrong else []
    parts += [count_text(warnings, "warning")] if warnings else []
    advice = f" `memctl doctor --fix` can fix {safe} of them." if safe else ""
    return f"{', '.join(parts)} in {count_text(len(findings), 'check')}.{advice}"
