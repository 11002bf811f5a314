"""Bodies of notices, with examples."""

from typing import Annotated, Any, Final

from msgspec import Meta, Struct

from countersign.http.schemas import Timestamp
from countersign.notices.model import NoticeStatus, notice_digest, published_bytes
from countersign.notices.notice_file import parse_notice_file, shipped_notice_files


class Notice(Struct, frozen=True, kw_only=True):
    """A notice to show. Show every bullet in full; the buyer initials each one separately."""

    notice_id: str
    version: str
    title: str
    heading: str
    bullets: Annotated[
        list[str], Meta(description="The lines to initial; send one element of initials for each.")
    ]
    attestation_text: str
    source_law: str
    source_bill: str


class NoticeSummary(Struct, frozen=True, kw_only=True):
    """A notice of the registry, as seen by keys of this mode."""

    notice_id: str
    title: str
    jurisdiction: str
    language: str
    version: Annotated[
        str | None, Meta(description="The version in force; null: no version is in force.")
    ]
    versions: Annotated[int, Meta(description="The number of published versions.")]


class NoticeVersion(Struct, frozen=True, kw_only=True):
    """A published version and its status for keys of this mode."""

    notice_id: str
    version: str
    status: NoticeStatus
    digest: Annotated[str, Meta(description="Hex SHA-256 of the published bytes.")]
    lines: Annotated[int, Meta(description="The number of bullets to initial.")]
    effective_from: Annotated[str, Meta(extra_json_schema={"format": "date"})]
    published_at: Timestamp
    reviewed_at: Timestamp | None
    reviewed_against: Annotated[
        str | None,
        Meta(
            description="The official text that the version was compared with; null: not reviewed."
        ),
    ]
    source_url: str
    editorial: Annotated[
        list[str], Meta(description="Fields that are the operator's wording, not the law's.")
    ]
    text_gaps: Annotated[list[str], Meta(description="Known gaps in the text.")]


CONTENT: Final = parse_notice_file(next(iter(shipped_notice_files().values())))
DIGEST: Final = notice_digest(published_bytes(CONTENT))

NOTICE: Final[dict[str, Any]] = {
    "notice_id": CONTENT.id,
    "version": CONTENT.version,
    "title": CONTENT.title,
    "heading": CONTENT.heading,
    "bullets": [bullet.text for bullet in CONTENT.bullets],
    "attestation_text": CONTENT.attestation_text,
    "source_law": CONTENT.source_law,
    "source_bill": CONTENT.source_bill,
}
NOTICES: Final[dict[str, Any]] = {
    "data": [
        {
            "notice_id": CONTENT.id,
            "title": CONTENT.title,
            "jurisdiction": CONTENT.jurisdiction,
            "language": CONTENT.language,
            "version": CONTENT.version,
            "versions": 1,
        }
    ],
    "next_cursor": None,
}
VERSIONS: Final[dict[str, Any]] = {
    "data": [
        {
            "notice_id": CONTENT.id,
            "version": CONTENT.version,
            "status": "in_force",
            "digest": DIGEST,
            "lines": len(CONTENT.bullets),
            "effective_from": CONTENT.effective_from,
            "published_at": "2026-11-20T21:30:00Z",
            "reviewed_at": None,
            "reviewed_against": None,
            "source_url": CONTENT.source_url,
            "editorial": list(CONTENT.editorial),
            "text_gaps": list(CONTENT.text_gaps),
        }
    ],
    "next_cursor": None,
}
