"""For mkdocs: the pages of the checkout's root are on the site too, and links between both kinds lead there."""

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
README = "memoryd.md"  # its name on the site: README.md is the list of guides there
ROOT_PAGES = {README if path.name == "README.md" else path.name: path for path in sorted(ROOT.glob("*.md"))}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of the root."""
    for name, path in ROOT_PAGES.items():
        files.append(File.generated(config, name, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn links between the two folders into links within one."""
    if page.file.src_uri in ROOT_PAGES:
        return markdown.replace("](README.md", f"]({README}").replace("](docs/", "](")
    return markdown.replace("](../README.md", f"]({README}").replace("](../", "](")
