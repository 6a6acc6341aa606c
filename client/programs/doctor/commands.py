"""The command `doctor`."""

from argparse import ArgumentParser, Namespace

from memoryd.client.programs.memctl.commands import Command


def _declare(parser: ArgumentParser) -> None:
    parser.add_argument("checks", nargs="*", metavar="CHECK", help="only these, by name or area (default: all)")
    parser.add_argument("--wrong", action="store_true", help="show only problems")
    parser.add_argument("--fix", action="store_true", help="run the safe commands for what is wrong; asks first")
    parser.add_argument("--yes", action="store_true", help="with --fix: do not ask")


def _doctor(args: Namespace) -> int:
    from memoryd.client.programs.doctor import visit

    return visit.visit(args)


COMMANDS = {
    "doctor": Command(
        _declare,
        _doctor,
        "  memctl doctor\n  memctl doctor --wrong\n  memctl doctor disk database\n  memctl doctor --fix --yes\n"
        "  memctl doctor --json",
    )
}
