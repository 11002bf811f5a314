"""The usual pick: the same three endpoints as most competent teams would first write them.

FastAPI, pydantic models, one SQLAlchemy async session and one commit per request. The database has
the settings of Countersign (SQLite: WAL and ``synchronous=FULL``). Keys are cached for a few
seconds, the notice is held in memory, and there is no middleware, so that only the design itself
costs time.
"""

import hashlib
import os
import secrets
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Final

from fastapi import Depends, FastAPI, Request
from fastapi.responses import JSONResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel, ConfigDict, Field, IPvAnyAddress
from sqlalchemy import JSON, DateTime, String, event, select
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.ext.asyncio import (
    AsyncEngine,
    AsyncSession,
    async_sessionmaker,
    create_async_engine,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

URL_VARIABLE: Final = "BENCH_USUAL_PICK_DATABASE_URL"
ACCOUNT: Final = "acct_bench"
KEY_CACHE_SECONDS: Final = 5.0
POOL_SIZE: Final = 10


class Base(DeclarativeBase):
    """The tables of the usual pick."""


class ApiKey(Base):
    """An account's key; only its digest is stored."""

    __tablename__ = "api_keys"

    digest: Mapped[str] = mapped_column(String(64), primary_key=True)
    account_id: Mapped[str] = mapped_column(String(40))
    mode: Mapped[str] = mapped_column(String(4))
    revoked_at: Mapped[datetime | None] = mapped_column(DateTime(timezone=True))


class Buyer(Base):
    """A buyer who was verified."""

    __tablename__ = "buyers"

    cbid: Mapped[str] = mapped_column(String(64), primary_key=True)
    mode: Mapped[str] = mapped_column(String(4))
    status: Mapped[str] = mapped_column(String(16))
    verified_at: Mapped[datetime] = mapped_column(DateTime(timezone=True))
    expires_at: Mapped[datetime] = mapped_column(DateTime(timezone=True))


class Acknowledgment(Base):
    """One acknowledgment, personal fields and all, in one row."""

    __tablename__ = "acknowledgments"

    ack_id: Mapped[str] = mapped_column(String(40), primary_key=True)
    account_id: Mapped[str] = mapped_column(String(40))
    mode: Mapped[str] = mapped_column(String(4))
    notice_id: Mapped[str] = mapped_column(String(64))
    notice_version: Mapped[str] = mapped_column(String(32))
    initials_per_line: Mapped[list[str]] = mapped_column(JSON)
    session_id: Mapped[str | None] = mapped_column(String(255))
    cbid: Mapped[str | None] = mapped_column(String(255))
    ip: Mapped[str | None] = mapped_column(String(45))
    user_agent: Mapped[str | None] = mapped_column(String(1024))
    accepted_at: Mapped[datetime] = mapped_column(DateTime(timezone=True))


class NoticeOut(BaseModel):
    """A notice as it is answered."""

    notice_id: str
    version: str
    title: str
    heading: str
    bullets: list[str]
    attestation_text: str
    source_law: str
    source_bill: str


class AcknowledgeIn(BaseModel):
    """The body of an acknowledgment."""

    model_config = ConfigDict(extra="forbid")

    initials_per_line: list[str]
    session_id: str | None = Field(default=None, max_length=255)
    cbid: str | None = Field(default=None, max_length=255)
    ip: IPvAnyAddress | None = None
    user_agent: str | None = Field(default=None, max_length=1024)


class AcknowledgeOut(BaseModel):
    """The receipt of an acknowledgment."""

    ack_id: str
    notice_id: str
    notice_version: str


class StatusOut(BaseModel):
    """The stored data of a buyer."""

    cbid: str
    status: str
    verified_at: datetime
    expires_at: datetime


class ApiError(Exception):
    """An error with its HTTP status and the body that the interface wants."""

    def __init__(self, status: int, code: str, message: str) -> None:
        """Keep what the handler needs."""
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller."""

    account_id: str
    mode: str


# Stand-in wording of a realistic length: this application is measured, never shown to a buyer.
_LINE: Final = (
    "Stand-in wording for one line of a notice, about as long as a line of a statute is, so that "
    "the answer has a size like that of a real one and costs about as much to write and to send."
)
NOTICES: Final = {
    "ab1263": NoticeOut(
        notice_id="ab1263",
        version="1",
        title="Stand-in notice",
        heading="Stand-in heading of a notice that a buyer reads before a regulated purchase",
        bullets=[f"({letter}) {_LINE}" for letter in "ABCD"],
        attestation_text="Stand-in attestation: by initialing each line I confirm that I read it.",
        source_law="Stand-in citation of the law",
        source_bill="Stand-in citation of the bill",
    ),
}


def make_engine(url: str) -> AsyncEngine:
    """Create the engine; on SQLite with the settings that Countersign has too.

    The pool has a fixed size. With the default one, the connections of its overflow are opened
    and closed again for almost every request as soon as more requests than its size are waiting.
    """
    if not url.startswith("sqlite"):
        return create_async_engine(url, pool_size=POOL_SIZE, max_overflow=0)
    engine = create_async_engine(
        url, pool_size=POOL_SIZE, max_overflow=0, connect_args={"timeout": 30}
    )

    @event.listens_for(engine.sync_engine, "connect")
    def set_pragmas(connection: DBAPIConnection, _record: object) -> None:
        cursor = connection.cursor()
        cursor.execute("PRAGMA journal_mode=WAL")
        cursor.execute("PRAGMA synchronous=FULL")
        cursor.execute("PRAGMA foreign_keys=ON")
        cursor.close()

    return engine


def digest_of(key: str) -> str:
    """Return the digest that identifies a key."""
    return hashlib.sha256(key.encode()).hexdigest()


async def seed(url: str, key: str, cbids: Sequence[str]) -> None:
    """Create the tables, one key and the buyers."""
    engine = make_engine(url)
    now = datetime.now(UTC)
    try:
        async with engine.begin() as connection:
            await connection.run_sync(Base.metadata.create_all)
        async with AsyncSession(engine) as session:
            session.add(ApiKey(digest=digest_of(key), account_id=ACCOUNT, mode="test"))
            session.add_all(
                Buyer(
                    cbid=cbid,
                    mode="test",
                    status="verified",
                    verified_at=now,
                    expires_at=now + timedelta(days=365),
                )
                for cbid in cbids
            )
            await session.commit()
    finally:
        await engine.dispose()


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Open the database for as long as the application runs."""
    engine = make_engine(os.environ[URL_VARIABLE])
    app.state.sessions = async_sessionmaker(engine, expire_on_commit=False)
    app.state.callers = {}
    yield
    await engine.dispose()


app = FastAPI(title="The usual pick", lifespan=lifespan)
bearer = HTTPBearer(auto_error=False)


@app.exception_handler(ApiError)
async def answer_error(_request: Request, error: ApiError) -> JSONResponse:
    """Answer an error in the shape of the interface."""
    body = {"error": {"code": error.code, "message": error.message}}
    return JSONResponse(body, status_code=error.status)


async def open_session(request: Request) -> AsyncIterator[AsyncSession]:
    """Open one session per request."""
    async with request.app.state.sessions() as session:
        yield session


Session = Annotated[AsyncSession, Depends(open_session)]


async def authenticate(
    request: Request,
    credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)],
) -> Caller:
    """Look the key up by its digest; remember the answer for a few seconds."""
    if credentials is None:
        raise ApiError(401, "unauthorized", "A Bearer key is needed.")
    digest = digest_of(credentials.credentials)
    callers: dict[str, tuple[Caller, float]] = request.app.state.callers
    known = callers.get(digest)
    if known is not None and known[1] > time.monotonic():
        return known[0]
    async with request.app.state.sessions() as session:
        key = await session.get(ApiKey, digest)
    if key is None or key.revoked_at is not None:
        raise ApiError(401, "invalid_api_key", "The key is unknown or no longer valid.")
    caller = Caller(key.account_id, key.mode)
    callers[digest] = (caller, time.monotonic() + KEY_CACHE_SECONDS)
    return caller


Authenticated = Annotated[Caller, Depends(authenticate)]


def find_notice(notice_id: str) -> NoticeOut:
    """Return a notice or raise the error of the interface."""
    notice = NOTICES.get(notice_id)
    if notice is None:
        raise ApiError(404, "notice_not_found", "The notice was not found.")
    return notice


@app.get("/v1/notices/{notice_id}")
async def get_notice(notice_id: str, _caller: Authenticated) -> NoticeOut:
    """Answer a notice."""
    return find_notice(notice_id)


@app.post("/v1/notices/{notice_id}/acknowledge")
async def acknowledge(
    notice_id: str,
    body: AcknowledgeIn,
    request: Request,
    caller: Authenticated,
    session: Session,
) -> AcknowledgeOut:
    """Store the initials, then answer with the receipt."""
    notice = find_notice(notice_id)
    if len(body.initials_per_line) != len(notice.bullets):
        raise ApiError(422, "initials_count_mismatch", "Wrong number of initials.")
    if any(not initials.strip() for initials in body.initials_per_line):
        raise ApiError(422, "empty_initials", "Initials must not be blank.")
    ip = str(body.ip) if body.ip else request.headers.get("x-forwarded-for")
    ack = Acknowledgment(
        ack_id="ack_" + secrets.token_hex(16),
        account_id=caller.account_id,
        mode=caller.mode,
        notice_id=notice.notice_id,
        notice_version=notice.version,
        initials_per_line=body.initials_per_line,
        session_id=body.session_id,
        cbid=body.cbid,
        ip=ip,
        user_agent=body.user_agent or request.headers.get("user-agent"),
        accepted_at=datetime.now(UTC),
    )
    session.add(ack)
    await session.commit()
    return AcknowledgeOut(
        ack_id=ack.ack_id, notice_id=ack.notice_id, notice_version=ack.notice_version
    )


@app.get("/v1/buyers/{cbid}/status")
async def get_status(cbid: str, caller: Authenticated, session: Session) -> StatusOut:
    """Return a buyer's status."""
    found = await session.execute(
        select(Buyer).where(Buyer.cbid == cbid, Buyer.mode == caller.mode)
    )
    buyer = found.scalar_one_or_none()
    if buyer is None:
        raise ApiError(404, "not_found", "The buyer identifier was not found.")
    # SQLite hands the time back without its zone.
    expires_at = buyer.expires_at.replace(tzinfo=UTC)
    expired = buyer.status == "verified" and expires_at <= datetime.now(UTC)
    return StatusOut(
        cbid=buyer.cbid,
        status="expired" if expired else buyer.status,
        verified_at=buyer.verified_at.replace(tzinfo=UTC),
        expires_at=expires_at,
    )
