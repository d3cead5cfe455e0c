"""Addresses that images may be downloaded from."""

from __future__ import annotations

import pytest
from specllama.server.error import ApiError
from specllama.server.media.addresses import is_public
from specllama.server.media.image_url import ImageUrl


@pytest.mark.parametrize(
    "address", ["1.1.1.1", "93.184.216.34", "2606:4700::1111", "::ffff:1.1.1.1"]
)
def test_addresses_of_the_public_internet_are_allowed(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "127.8.8.8", "0.0.0.0", "10.0.0.1", "172.16.0.1", "192.168.1.1",
        "169.254.169.254", "100.64.0.1", "100.100.100.200", "168.63.129.16", "192.0.0.192",
        "224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255", "198.18.0.1",
        "::1", "::", "fe80::1", "fe80::1%eth0", "fc00::1", "fd00:ec2::254", "ff02::1",
        "::ffff:127.0.0.1", "::ffff:169.254.169.254", "::127.0.0.1", "64:ff9b::a9fe:a9fe",
        "64:ff9b::7f00:1", "2002:7f00:1::", "2001:0:1::1", "2001:db8::1", "localhost", "",
    ],
)  # fmt: skip
def test_all_other_addresses_are_refused(address: str) -> None:
    assert not is_public(address)


def test_a_url_is_split_into_its_parts() -> None:
    url = ImageUrl.parse("image", "https://Example.com:444/a b/\u00e9.png?x=1&y=%20#part")
    assert (url.scheme, url.host, url.port) == ("https", "example.com", 444)
    assert url.target == "/a%20b/%C3%A9.png?x=1&y=%20"
    assert ImageUrl.parse("image", "http://b\u00fccher.example").host == "xn--bcher-kva.example"
    assert ImageUrl.parse("image", "http://[2606:4700::1111]").host == "2606:4700::1111"


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd", "ftp://example.com/a.png", "gopher://example.com", "/a.png", "a.png",
        "//example.com/a.png", "http://", "http:///a.png", "https://user:key@example.com/a.png",
        "https://user@example.com/", "http://example.com:0/", "http://example.com:99999/",
        "http://example.com:a/", "http://[::1", "http://exa mple.com/",
        "http://example.com/\r\nX: y",
        "http://" + "a" * 5000, "http://" + "a" * 70 + ".com", "",
    ],
)  # fmt: skip
def test_urls_other_than_http_are_refused(url: str) -> None:
    with pytest.raises(ApiError) as caught:
        ImageUrl.parse("messages[0].image_url", url)
    assert caught.value.status == 400
    assert caught.value.param == "messages[0].image_url"
    assert "must be a data URL or an address" in str(caught.value)


def test_a_redirect_to_an_invalid_url_is_refused() -> None:
    url = ImageUrl.parse("image", "https://example.com/a/b.png")
    assert url.joined("image", "../c.png").url == "https://example.com/c.png"
    with pytest.raises(ApiError, match="image redirects to an invalid URL"):
        url.joined("image", "http://[")
