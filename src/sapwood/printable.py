r"""Text that a terminal, a browser or a log shows as it is: nothing in it is a command or hides.

In: text that others wrote, such as the name of a column or a file. Out: the same text, with visible escapes such as
``\x1b`` in the place of characters that move the cursor, change the order of the text around them, or take no room.
"""

import re

_CONTROLS = "\x00-\x1f\x7f-\x9f"
_LINES = "\u2028\u2029"
_DIRECTIONS = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
# The joiners U+200C and U+200D are not among these: Persian, the scripts of India and
# emoji are written with them.
_WITHOUT_WIDTH = (
    "\xad\u180e\u200b\u2060-\u2065\u206a-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"
)
_LONE_SURROGATES = "\ud800-\udfff"
_ALL = _CONTROLS + _LINES + _DIRECTIONS + _WITHOUT_WIDTH + _LONE_SURROGATES

HIDDEN = re.compile(f"[{_ALL}]")
HIDDEN_IN_LINES = re.compile(f"(?![\n\t])[{_ALL}]")
SURROGATE = re.compile(f"[{_LONE_SURROGATES}]")


def printable(text: str, lines: bool = False) -> str:
    """The text with visible escapes; a newline and a tab remain where it is meant to
    have several `lines`.
    """
    if text.isprintable():
        return text
    pattern = HIDDEN_IN_LINES if lines else HIDDEN
    return pattern.sub(_escape, text)


def encodable(text: str) -> str:
    """The text with visible escapes for lone surrogates, which no encoding and no
    standard of JSON has.
    """
    return SURROGATE.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    return ascii(match[0])[1:-1]
