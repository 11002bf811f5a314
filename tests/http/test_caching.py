"""Responses that caches may store, and others."""

from __future__ import annotations

import re

import httpx2
import pytest

from tests.http.backstage import Vendor
from tests.http.calls import SHIPPED_NOTICE, acknowledge, refusal, verify
from tests.http.conftest import LIVE_NOTICE

pytestmark = pytest.mark.one_engine

PATH = f"/v1/notices/{SHIPPED_NOTICE}"


def test_a_notice_has_a_strong_etag(client: httpx2.Client) -> None:
    first, second = client.get(PATH), client.get(PATH)
    assert re.fullmatch(r'"[!#-~]+"', first.headers["ETag"])
    assert first.headers["ETag"] == second.headers["ETag"]


def test_other_words_have_another_etag(configured_vendor: Vendor) -> None:
    path = "/v1/notices/amended"
    found = {
        configured_vendor.live.get(path, params={"version": version}).headers["ETag"]
        for version in ("1", "2", "9-later")
    }
    found.add(configured_vendor.live.get(f"/v1/notices/{LIVE_NOTICE}").headers["ETag"])
    assert len(found) == 4


@pytest.mark.parametrize("form", ["{}", "W/{}", '"other", {}', '{},W/"x"', "*", '"a" , {} ,"b"'])
def test_a_reader_that_has_the_notice_already_gets_304(client: httpx2.Client, form: str) -> None:
    etag = client.get(PATH).headers["ETag"]
    answer = client.get(PATH, headers={"If-None-Match": form.format(etag)})
    assert (answer.status_code, answer.content) == (304, b"")
    assert answer.headers["ETag"] == etag
    assert "Cache-Control" in answer.headers
    assert "X-Request-Id" in answer.headers


@pytest.mark.parametrize("form", ['"other"', "{}x", "", "nonsense"])
def test_a_reader_with_another_text_gets_the_notice(client: httpx2.Client, form: str) -> None:
    etag = client.get(PATH).headers["ETag"]
    answer = client.get(PATH, headers={"If-None-Match": form.format(etag.strip('"'))})
    assert answer.status_code == 200
    assert answer.json()["notice_id"] == SHIPPED_NOTICE


def test_an_etag_opens_no_notice_that_the_key_may_not_see(vendor: Vendor) -> None:
    etag = vendor.test.get(PATH).headers["ETag"]
    for condition in (etag, "*"):
        answer = vendor.live.get(PATH, headers={"If-None-Match": condition})
        assert refusal(answer) == (409, "notice_not_reviewed")


def test_the_notice_in_force_is_revalidated_at_every_use(client: httpx2.Client) -> None:
    """It may change at any moment, and differs between keys."""
    assert client.get(PATH).headers["Cache-Control"] == "private, no-cache"


def test_a_version_by_name_never_changes(client: httpx2.Client) -> None:
    notice = client.get(PATH)
    named = client.get(PATH, params={"version": notice.json()["version"]})
    assert "immutable" in named.headers["Cache-Control"]
    assert "private" in named.headers["Cache-Control"]
    assert (named.content, named.headers["ETag"]) == (notice.content, notice.headers["ETag"])


def test_personal_data_is_never_stored_by_a_cache(client: httpx2.Client) -> None:
    headers = {"Idempotency-Key": "k1"}
    made = acknowledge(client, headers=headers)
    verified = verify(client)
    answers = [
        made,
        verified,
        acknowledge(client, headers=headers),
        client.get(f"/v1/acknowledgments/{made.json()['ack_id']}"),
        client.get("/v1/acknowledgments"),
        client.get(f"/v1/buyers/{verified.json()['cbid']}/status"),
    ]
    for answer in answers:
        assert answer.status_code == 200
        assert answer.headers["Cache-Control"] == "no-store", answer.request.url


def test_failures_are_never_stored_by_a_cache(client: httpx2.Client) -> None:
    for path in ("/v1/notices/unknown", "/v1/buyers/unknown/status", "/nowhere"):
        answer = client.get(path)
        assert refusal(answer)[0] == 404
        assert answer.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize(
    "path",
    [PATH, "/v1/notices", "/v1/acknowledgments", "/healthz", "/docs", "/openapi.json", "/nowhere"],
)
def test_head_has_the_headers_of_get_and_no_body(client: httpx2.Client, path: str) -> None:
    got, headed = client.get(path), client.head(path)
    assert (headed.status_code, headed.content) == (got.status_code, b"")
    own = {"x-request-id", "date"}
    assert {k: v for k, v in headed.headers.items() if k not in own} == {
        k: v for k, v in got.headers.items() if k not in own
    }


def test_every_answer_has_a_request_id_of_its_own(client: httpx2.Client) -> None:
    paths = [PATH, PATH, "/v1/acknowledgments", "/healthz", "/docs", "/nowhere"]
    found = [client.get(path).headers["X-Request-Id"] for path in paths]
    assert len(set(found)) == len(paths)
    assert all(re.fullmatch(r"req_[0-9a-z]{15,}", request_id) for request_id in found)
    # They have nothing in common, so none shows how many others there were.
    assert len({request_id[:12] for request_id in found}) == len(paths)


def test_no_answer_is_to_be_sniffed(client: httpx2.Client) -> None:
    for path in (PATH, "/healthz", "/docs", "/nowhere"):
        assert client.get(path).headers["X-Content-Type-Options"] == "nosniff"
