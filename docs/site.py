"""For mkdocs: the pages of the checkout's root are on the site too, and links between both kinds lead there."""

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
ROOT_PAGES = {path.name for path in ROOT.glob("*.md")} - {"README.md"}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of the root."""
    for name in sorted(ROOT_PAGES):
        files.append(File.generated(config, name, abs_src_path=str(ROOT / name)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn links between the two folders into links within one."""
    return markdown.replace("](docs/", "](") if page.file.src_uri in ROOT_PAGES else markdown.replace("](../", "](")
