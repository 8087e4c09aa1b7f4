"""Builds SVG: elements as text, with their attributes in the order of the arguments."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final
from xml.sax.saxutils import escape, quoteattr

FONT: Final = "ui-monospace, SFMono-Regular, Menlo, Consolas, monospace"
GLYPH_WIDTH: Final = 7.25
"""The width of a letter of the font at 12 pixels, rounded up, since it cannot be measured here."""

COLOURS: Final = (
    "#2f6feb", "#d1570c", "#1a7f37", "#8250df", "#bf3989", "#9a6700", "#0b7285", "#6e7781",
)  # fmt: skip
"""Distinguishable on white and on black."""

_STYLE: Final = (
    "text{font:12px " + FONT + ";fill:#1f2328}"
    ".dim{fill:#656d76}.strong{font-weight:600}.light{fill:#ffffff}"
    "path.line{fill:none;stroke-width:1.6}"
    "rect.box{fill:#ffffff}"
)


def element(name: str, content: str | None = None, **attributes: object) -> str:
    """One element; a trailing underscore of an attribute's name is removed (`class_`).

    >>> element("text", "a < b", x=1.5, class_="dim")
    '<text x="1.5" class="dim">a &lt; b</text>'
    """
    attribute_text = "".join(
        f" {name.strip('_').replace('_', '-')}={quoteattr(_format_value(value))}"
        for name, value in attributes.items()
    )
    return (
        f"<{name}{attribute_text}/>"
        if content is None
        else f"<{name}{attribute_text}>{_text(content)}</{name}>"
    )


def document(width: float, height: float, elements: Iterable[str], *, title: str) -> str:
    """A whole picture."""
    size = f'width="{_format_value(width)}" height="{_format_value(height)}"'
    box = f'viewBox="0 0 {_format_value(width)} {_format_value(height)}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} {box} role="img">',
        element("title", title),
        element("style", _STYLE),
        element("rect", width="100%", height="100%", fill="#ffffff"),
        *elements,
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def text_width(text: str) -> float:
    """The width of a text in pixels."""
    return len(text) * GLYPH_WIDTH


def _format_value(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.1f}".removesuffix(".0")
    return _clean(str(value))


def _text(content: str) -> str:
    return escape(_clean(content))


def _clean(text: str) -> str:
    """Text without characters that XML cannot represent."""
    return "".join(character if character.isprintable() else " " for character in text)
