"""Visible escapes: what they replace, and what they leave."""

import unicodedata

import pytest

from sapwood.errors import DataError, SapwoodError, warn
from sapwood.printable import encodable, printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred", r"\x1b[31mred"),
        ("a\rb\bc\x00", r"a\rb\x08c\x00"),
        ("a\nb\tc", r"a\nb\tc"),
        ("\x9b31m\x7f", r"\x9b31m\x7f"),
        ("\u202eexe.txt", r"\u202eexe.txt"),
        ("a\u2028b\u200bc\ufeff", r"a\u2028b\u200bc\ufeff"),
        ("\ud800", r"\ud800"),
        ("\U000e0041", r"\U000e0041"),
    ],
)
def test_characters_that_hide_are_shown_as_escapes(text: str, shown: str) -> None:
    assert printable(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "größe",
        "可爱",
        "e\u0301",
        "\U0001f468\u200d\U0001f469",
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
        "a b\xa0c",
    ],
)
def test_characters_that_are_seen_remain(text: str) -> None:
    assert printable(text) == text


def test_newlines_and_tabs_remain_in_text_of_several_lines_and_no_other_control() -> (
    None
):
    assert printable("a\n\tb\r\x1b", lines=True) == "a\n\tb\\r\\x1b"


def test_every_control_character_of_unicode_is_shown_as_an_escape() -> None:
    controls = [
        chr(code)
        for code in range(0x110000)
        if unicodedata.category(chr(code)) in ("Cc", "Cs", "Zl", "Zp")
    ]
    assert not [one for one in controls if one in printable(one)]


def test_an_escape_is_not_escaped_again() -> None:
    assert printable(printable("\x1b\ud800")) == r"\x1b\ud800"


def test_text_can_be_encoded_and_keeps_its_other_controls() -> None:
    assert encodable("\ud800\x1b") == "\\ud800\x1b"


def test_an_error_shows_no_control_character_and_keeps_the_text_it_was_given() -> None:
    error = DataError("column \x1b[31m")
    assert str(error) == r"column \x1b[31m"
    assert error.args == ("column \x1b[31m",)


def test_only_the_arguments_of_an_error_make_lines() -> None:
    assert str(SapwoodError("first\nline", "second")) == "first\\nline\nsecond"


def test_a_warning_shows_no_control_character() -> None:
    with pytest.warns(UserWarning, match=r"^column \\x1b\[2J\\n$"):
        warn("column \x1b[2J\n")
