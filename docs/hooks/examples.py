"""An extension of griffe: a docstring's "Example:" is shown as code.

Google's style has the section "Examples:"; ours mostly have one.
"""

from __future__ import annotations

from typing import Any

import griffe


class Examples(griffe.Extension):
    """Gives the section of the example the name that griffe knows."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring:
            obj.docstring.value = obj.docstring.value.replace("\nExample:\n", "\nExamples:\n")
