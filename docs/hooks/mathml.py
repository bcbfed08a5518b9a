"""A hook of mkdocs: equations become MathML when the pages are built.

Browsers draw MathML themselves, so no page needs a script or a font from a network.
"""

from __future__ import annotations

import html
import re
from typing import Any

from latex2mathml.converter import convert

# What pymdownx.arithmatex leaves of $...$ and $$...$$.
_EQUATION = re.compile(
    r'<(?P<tag>span|div) class="arithmatex">\\[(\[](?P<latex>.*?)\\[)\]]</(?P=tag)>', re.DOTALL
)


def on_page_content(content: str, **_: Any) -> str:
    """Return a page with its equations as MathML."""
    return _EQUATION.sub(_as_mathml, content)


def _as_mathml(match: re.Match[str]) -> str:
    display = "block" if match["tag"] == "div" else "inline"
    return convert(html.unescape(match["latex"]), display=display)
