"""What the README promises is there; its blocks are run by test_verbatim.py."""

import re

from documents import ROOT

README = ROOT / "README.md"


def test_what_the_readme_links_to_is_there() -> None:
    links = re.findall(r"\]\((?!https?://|#)([^)#]+)", README.read_text())
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []
