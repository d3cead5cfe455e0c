"""Data URLs."""

from __future__ import annotations

import pytest
from specllama.errors import ArgumentError
from specllama.media.data_url import content


@pytest.mark.parametrize(
    "url",
    [
        "data:image/png;base64,aGk=",
        "data:image/png;base64,aGk",
        "DATA:image/svg+xml;charset=utf-8;BASE64,a\nGk =",
        "data:;base64,aGk=",
    ],
)
def test_the_bytes_of_a_data_url_are_returned(url: str) -> None:
    assert content("image", url) == b"hi"


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("data:image/png,hi", "must be a data URL"),
        ("data:" + ";a=b" * 1000 + ";base64,aGk=", "must be a data URL"),
        ("https://example.com/a.png", "must be a data URL"),
        ("file:///etc/passwd", "must be a data URL"),
        ("data:image/png;base64,a*k=", "not base64"),
        ("data:image/png;base64,\u00e9", "not base64"),
        ("data:image/png;base64,a", "not base64"),
    ],
)
def test_other_urls_than_data_urls_are_refused(url: str, said: str) -> None:
    with pytest.raises(ArgumentError, match=said) as caught:
        content("messages[0]", url)
    assert str(caught.value).startswith("messages[0] ")
