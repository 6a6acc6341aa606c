"""Which files a walk finds, and what it says of those that it leaves out."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from each import each
from memoryd.client.errors import Invalid, NotFound
from memoryd.daemon.workspaces.documents.globs import Globs
from memoryd.daemon.workspaces.documents.walking import scan


def write(root: Path, *names: str, text: str = "x\n") -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def found(root: Path, *globs: str) -> list[str]:
    return [file.path for file in (scan(root, globs) if globs else scan(root)).files]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


def test_by_default_memory_md_and_everything_below_memory_is_found(root: Path) -> None:
    write(root, "MEMORY.md", "README.md", "memory/a.md", "memory/b.txt", "memory/sub/deep/c.md", "docs/d.md")
    assert found(root) == ["MEMORY.md", "memory/a.md", "memory/sub/deep/c.md"]
    assert list(scan(root).folders) == ["", "memory", "memory/sub", "memory/sub/deep"]


@each(
    ("pattern", "names"),
    [
        ("*.md", ["a.md"]),
        ("**/*.md", ["a.md", "docs/b.md", "docs/in/c.md"]),
        ("docs/*.md", ["docs/b.md"]),
        ("docs/**", ["docs/b.md", "docs/in/c.md", "docs/t.txt"]),
        ("**/in/*.md", ["docs/in/c.md"]),
        ("./docs//b.md", ["docs/b.md"]),
        ("d?cs/[ab].md", ["docs/b.md"]),
        (".notes/*.md", [".notes/h.md"]),
        ("A.md", []),
    ],
)
def test_patterns_match_as_in_a_shell(root: Path, pattern: str, names: list[str]) -> None:
    write(root, "a.md", "docs/b.md", "docs/in/c.md", "docs/t.txt", ".notes/h.md", ".h.md", "docs/.h.md", ".git/x.md")
    assert found(root, pattern) == names


@each("pattern", ["", "  ", "/etc/*.md", "~/x.md", "../*.md", "a/../../b.md", "docs/", "a\0b"])
def test_a_pattern_that_leaves_the_folder_is_refused(root: Path, pattern: str) -> None:
    with pytest.raises(Invalid, match="pattern"):
        scan(root, [pattern])


def test_no_pattern_at_all_is_refused() -> None:
    with pytest.raises(Invalid, match="at least one"):
        Globs([])


def test_a_root_that_is_missing_or_no_folder_is_an_error(root: Path) -> None:
    with pytest.raises(NotFound, match="does not exist"):
        scan(root / "none")
    write(root, "file")
    with pytest.raises(Invalid, match="not a folder"):
        scan(root / "file")


# What is left out ----------------------------------------------------------------------------------------------------


def test_symbolic_links_are_not_followed_and_those_that_leave_say_so(root: Path, tmp_path: Path) -> None:
    write(tmp_path, "outside/secret.md")
    write(root, "memory/real.md", "other/inside.md")
    (root / "memory/out.md").symlink_to(tmp_path / "outside/secret.md")
    (root / "memory/folder").symlink_to(tmp_path / "outside")
    (root / "memory/in.md").symlink_to(root / "other/inside.md")
    (root / "memory/loop").symlink_to(root / "memory")
    (root / "memory/self.md").symlink_to(root / "memory/self.md")
    (root / "memory/gone.md").symlink_to(root / "nowhere.md")
    (root / "memory/image.png").symlink_to(tmp_path / "outside/secret.md")
    result = scan(root)
    assert [file.path for file in result.files] == ["memory/real.md"]
    leaving = {path for path, problem in result.problems.items() if "leaves the workspace" in problem}
    assert leaving == {"memory/out.md", "memory/folder"}
    assert set(result.problems) - leaving == {"memory/in.md", "memory/loop", "memory/self.md", "memory/gone.md"}


def test_pipes_and_folders_with_a_matching_name_are_not_files(root: Path) -> None:
    (root / "memory/folder.md").mkdir(parents=True)
    os.mkfifo(root / "memory/pipe.md")
    result = scan(root)
    assert result.files == []
    assert "regular file" in result.problems["memory/pipe.md"]


def test_a_name_that_is_not_utf8_is_a_problem(root: Path) -> None:
    (root / "memory").mkdir()
    with open(os.fsencode(root / "memory") + b"/caf\xe9.md", "wb"):
        pass
    assert scan(root).problems == {"memory/caf\\xe9.md": "Its name is not UTF-8, so it is not read."}


@pytest.fixture
def locked(root: Path) -> Iterator[Path]:
    write(root, "memory/locked/a.md", "memory/b.md")
    (root / "memory/locked").chmod(0)
    yield root
    (root / "memory/locked").chmod(0o700)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_without_permission_is_a_problem_and_the_rest_is_found(locked: Path) -> None:
    result = scan(locked)
    assert [file.path for file in result.files] == ["memory/b.md"]
    assert "Permission denied" in result.problems["memory/locked"]


# .gitignore ----------------------------------------------------------------------------------------------------------


def test_gitignore_of_root_and_folders_is_respected_and_counted(root: Path) -> None:
    write(root, "memory/a.md", "memory/draft-b.md", "memory/private/c.md", "memory/sub/d.md", "memory/sub/e.md")
    write(root, ".gitignore", text="draft-*\nprivate/\n# comment\n\n!\n")
    write(root, "memory/sub/.gitignore", text="/d.md\r\n")
    result = scan(root)
    assert [file.path for file in result.files] == ["memory/a.md", "memory/sub/e.md"]
    assert result.ignored == 3


def test_gitignore_around_the_root_counts_up_to_the_checkout(tmp_path: Path) -> None:
    root = tmp_path / "repo/docs"
    write(tmp_path, "repo/docs/a.md", "repo/docs/tmp/b.md", "repo/docs/c.md")
    write(tmp_path, ".gitignore", text="c.md\n")
    write(tmp_path, "repo/.gitignore", text="/docs/tmp\n/a.md\n")
    (tmp_path / "repo/.git").mkdir()
    assert found(root, "**/*.md") == ["a.md", "c.md"]


def test_a_workspace_in_an_ignored_folder_is_indexed_all_the_same(tmp_path: Path) -> None:
    write(tmp_path, "repo/.notes/team/a.md")
    write(tmp_path, "repo/.gitignore", text=".notes/\n*.md\n")
    (tmp_path / "repo/.git").mkdir()
    assert found(tmp_path / "repo/.notes/team", "*.md") == ["a.md"]


def test_what_git_says_is_what_a_walk_finds(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same files as `git ls-files`, over patterns that are easily read wrong, and from each place that has some."""
    git = shutil.which("git")
    if not git:
        pytest.skip("git is not installed")
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    names = "a.md b.md docs/a.md docs/in/a.md docs/in/b.md foo/bar/a.md foo/baz.md x y.md/z.md logs/1.md".split()
    names += ["excluded.md", "foo/in-own.md", "foo/in-all.md", "docs/in/kept.md", "docs/in/in-all.md"]
    write(root, *(name if name.endswith(".md") else f"{name}.md" for name in names))
    text = "/a.md\ndocs/*\n!docs/in/\nfoo/**/a.md\n*.md/\n**/logs\n[xz].md\n\\#a\nb.md \n!docs/in/in-all.md\n"
    write(root, ".gitignore", text=text)
    subprocess.run([git, "init", "-q", str(root)], check=True, capture_output=True)

    def list_files() -> list[str]:
        command = [git, "-C", str(root), "ls-files", "-o", "--exclude-standard", "*.md"]
        listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
        assert found(root, "**/*.md") == sorted(listed)
        assert found(root / "foo", "**/*.md") == sorted(one[4:] for one in listed if one.startswith("foo/"))
        return listed

    before = list_files()
    write(root, ".git/info/exclude", text="/excluded.md\nkept.md\n")
    write(home, ".config/git/ignore", text="in-all.md\n")
    assert set(before) - set(list_files()) == {"excluded.md", "docs/in/kept.md", "foo/in-all.md"}
    write(home, ".config/git/config", text="[core]\n\texcludesFile = /nowhere\n")
    write(home, ".gitconfig", text='[user]\n\tname = x\n[core]\n\tExcludesfile = "~/own" # mine\n')
    (home / "own").symlink_to(home / "dotfile")
    write(home, "dotfile", text="in-own.md\n")
    assert set(before) - set(list_files()) == {"excluded.md", "docs/in/kept.md", "foo/in-own.md"}


def test_a_linked_worktree_has_the_excludes_of_its_repository(tmp_path: Path) -> None:
    write(tmp_path, "repo/.git/worktrees/tree/commondir", text="../..\n")
    write(tmp_path, "repo/.git/info/exclude", text="draft.md\n")
    write(tmp_path, "tree/.git", text=f"gitdir: {tmp_path}/repo/.git/worktrees/tree\n")
    write(tmp_path, "tree/draft.md", "tree/docs/draft.md", "tree/docs/a.md")
    assert found(tmp_path / "tree", "**/*.md") == ["docs/a.md"]
    assert found(tmp_path / "tree/docs", "*.md") == ["a.md"]


def test_a_workspace_that_the_user_ignores_everywhere_is_indexed_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    write(tmp_path, "config/git/ignore", text=".claude/\n")
    write(tmp_path, "repo/.git/HEAD", "repo/.claude/memory/MEMORY.md", "repo/.claude/memory/cache.md")
    assert found(tmp_path / "repo/.claude/memory", "**/*.md") == ["MEMORY.md", "cache.md"]
