"""What programs may ask of their own account."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, FastAPI
from pydantic import BaseModel, Field
from starlette.responses import Response

from ensue.platform.service import Platform
from ensue.platform.web.identity import Caller, ThePlatform

router = APIRouter(prefix="/api/v1", tags=["account"])


class Problem(BaseModel):
    """Why something was not done."""

    error: str


class Me(BaseModel):
    """The account that a token or session belongs to."""

    id: str
    email: str
    name: str
    affiliation: str
    role: str


class NewToken(BaseModel):
    """What a token is to be called, and how long it is valid; without `days`, until revoked."""

    name: str = Field("", max_length=100)
    days: float | None = Field(None, gt=0, le=3650)


class MadeToken(BaseModel):
    """A token, shown this once."""

    token: str


class TokenFacts(BaseModel):
    """A token without what it is; times in UTC."""

    id: str
    name: str
    start: str
    created_at: str
    expires_at: str | None
    used_at: str | None


REFUSALS: dict[int | str, dict[str, Any]] = {
    401: {"model": Problem},
    403: {"model": Problem},
    422: {"model": Problem},
    429: {"model": Problem},
}


def install(app: FastAPI, platform: Platform) -> None:
    app.include_router(router)


@router.get("/me", responses={401: {"model": Problem}})
def me(user: Caller) -> Me:
    """Return the caller's account."""
    return Me(id=user.id, email=user.email, name=user.name, affiliation=user.affiliation, role=user.role)


@router.get("/me/tokens", responses={401: {"model": Problem}})
def list_tokens(platform: ThePlatform, user: Caller) -> list[TokenFacts]:
    """List the caller's API tokens, without what they are."""
    return [
        TokenFacts(
            id=row.id,
            name=row.name,
            start=row.start,
            created_at=row.created_at.isoformat(),
            expires_at=row.expires_at and row.expires_at.isoformat(),
            used_at=row.used_at and row.used_at.isoformat(),
        )
        for row in platform.accounts.tokens(user.id)
    ]


@router.post("/me/tokens", status_code=201, responses={**REFUSALS, 409: {"model": Problem}})
def add_token(platform: ThePlatform, user: Caller, wanted: NewToken) -> MadeToken:
    """Make an API token."""
    return MadeToken(token=platform.accounts.add_token(user.id, wanted.name, days=wanted.days))


@router.delete("/me/tokens/{token}", status_code=204, responses={**REFUSALS, 404: {"model": Problem}})
def revoke_token(platform: ThePlatform, user: Caller, token: str) -> Response:
    """Revoke an API token of the caller."""
    platform.accounts.revoke_token(user.id, token)
    return Response(status_code=204)
