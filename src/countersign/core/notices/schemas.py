"""Bodies of notices, with examples."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, Final

from msgspec import Meta, Struct, to_builtins

from countersign.base.http.schemas import Timestamp, page_of, view
from countersign.base.values import parse_rfc3339
from countersign.core.notices.model import (
    LifecycleEvent,
    NoticeContent,
    NoticeEdition,
    NoticeEvent,
    NoticeStatus,
    notice_digest,
    published_bytes,
    rule_details,
)
from countersign.core.notices.notice_file import parse_notice_file, shipped_notice_files


class Notice(Struct, frozen=True, kw_only=True):
    """A notice to show. Show every bullet in full; the buyer initials each one separately."""

    notice_id: str
    version: str
    title: str
    heading: str
    bullets: list[str]
    """The lines to initial; send one element of initials for each."""
    bullet_ids: Annotated[list[str], Meta(examples=[["A", "B"]])]
    """What the law calls each of the bullets: show it with it, such as (A)."""
    attestation_text: str
    source_law: str
    source_bill: str


class NoticeSummary(Struct, frozen=True, kw_only=True):
    """A notice of the registry, as seen by keys of this mode."""

    notice_id: str
    title: str
    jurisdiction: str
    language: str
    version: str | None
    """The version in force; null: no version is in force."""
    versions: int
    """The number of published versions."""


class NoticeVersion(Struct, frozen=True, kw_only=True):
    """A published version and its status for keys of this mode."""

    notice_id: str
    version: str
    status: NoticeStatus
    digest: str
    """Hex SHA-256 of the published bytes."""
    lines: int
    """The number of bullets to initial."""
    effective_from: Annotated[str, Meta(extra_json_schema={"format": "date"})]
    published_at: Timestamp
    reviewed_at: Timestamp | None
    reviewed_against: str | None
    """The official text that the version was compared with; null: not reviewed."""
    source_url: str
    editorial: list[str]
    """Fields that are the operator's wording, not the law's."""
    text_gaps: list[str]
    """Known gaps in the text."""


def notice_of(content: NoticeContent) -> Notice:
    bullets, ids = [b.text for b in content.bullets], [b.id for b in content.bullets]
    return view(Notice, content, notice_id=content.id, bullets=bullets, bullet_ids=ids)


def summary_of(versions: Sequence[NoticeEdition], current: NoticeEdition | None) -> NoticeSummary:
    """A notice by the words in force, or else by the latest."""
    words = (current or versions[-1]).content
    now = current.content.version if current else None
    return view(NoticeSummary, words, notice_id=words.id, version=now, versions=len(versions))


def version_of(version: NoticeEdition, status: NoticeStatus) -> NoticeVersion:
    content, review = version.content, version.review
    return view(
        NoticeVersion,
        content,
        version,
        notice_id=content.id,
        status=status,
        lines=len(content.bullets),
        reviewed_at=review.at if review else None,
        reviewed_against=review.details.get("against") if review else None,
    )


CONTENT: Final = parse_notice_file(next(iter(shipped_notice_files().values())))
DIGEST: Final = notice_digest(published_bytes(CONTENT))
_PUBLISHED: Final = NoticeEvent(
    id="",
    notice_id=CONTENT.id,
    version=CONTENT.version,
    type=LifecycleEvent.PUBLISHED,
    at=parse_rfc3339("2026-11-20T21:30:00Z"),
    details={},
)
_RULE: Final = replace(
    _PUBLISHED, type=LifecycleEvent.RULE_PUBLISHED, details=rule_details(CONTENT.applies_to)
)
EXAMPLE: Final = NoticeEdition(
    content=CONTENT,
    digest=DIGEST,
    effective_at=_PUBLISHED.at,
    events=(_PUBLISHED, _RULE),
)
NOTICE: Final[Any] = to_builtins(notice_of(CONTENT))
NOTICES: Final[Any] = to_builtins(page_of([summary_of([EXAMPLE], EXAMPLE)], 1, str))
VERSIONS: Final[Any] = to_builtins(page_of([version_of(EXAMPLE, NoticeStatus.IN_FORCE)], 1, str))
