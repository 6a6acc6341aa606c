"""Links of the pages lead somewhere: to a file of the checkout, and to a heading of it."""

import re
from functools import cache
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote, urlsplit

from markdown_it import MarkdownIt

from each import each

CHECKOUT = Path(__file__).parents[2]
PAGES = sorted([*CHECKOUT.glob("*.md"), *(CHECKOUT / "docs").glob("*.md")])
_PARSER = MarkdownIt("commonmark").enable("table")


def list_links(page: Path) -> list[str]:
    """Return where the links and pictures of a page lead."""
    inline = [token for token in _PARSER.parse(page.read_text()) if token.type == "inline"]
    parts = [part for token in inline for part in token.children or ()]
    return [
        str(part.attrs.get("href") or part.attrs.get("src")) for part in parts if part.type in ("link_open", "image")
    ]


@cache
def list_anchors(page: Path) -> set[str]:
    """Return the names of a page's headings, as GitHub makes them."""
    tokens = _PARSER.parse(page.read_text())
    headings = [after.content for token, after in pairwise(tokens) if token.type == "heading_open"]
    return {re.sub(r"[\s]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower()) for heading in headings}


@each("page", PAGES)
def test_each_link_leads_to_a_file_and_a_heading_that_are_there(page: Path) -> None:
    for link in list_links(page):
        parts = urlsplit(link)
        if parts.scheme:
            continue
        target = (page.parent / unquote(parts.path)) if parts.path else page
        assert target.exists(), f"{page.name} links to {link}"
        if parts.fragment:
            assert parts.fragment in list_anchors(target), f"{page.name} links to {link}: there is no such heading"


def test_every_guide_is_in_the_list_of_guides() -> None:
    listed = set(list_links(CHECKOUT / "docs" / "README.md"))
    assert {page.name for page in PAGES if page.parent == CHECKOUT / "docs"} - listed == {"README.md"}
