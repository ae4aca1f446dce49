"""The pages of accounts: sign in and up, the account itself, invitations."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, FastAPI, Form, Request
from starlette.responses import RedirectResponse, Response

from ensue.platform.accounts import SESSION_DAYS_AT_MOST, User
from ensue.platform.database.schema import ROLES
from ensue.platform.refusals import Forbidden, Refusal, TooMany
from ensue.platform.service import Platform
from ensue.platform.web import security
from ensue.platform.web.identity import Caller, MaybeCaller, Organiser, ThePlatform
from ensue.platform.web.rendering import render

router = APIRouter(include_in_schema=False)
Text = Annotated[str, Form()]


def install(app: FastAPI, platform: Platform) -> None:
    app.include_router(router)


# Sessions


@router.get("/sign-in")
def sign_in_page(request: Request, next: str = "/") -> Response:
    return render(request, "sign_in.html.j2", words="", email="", next=_local(next))


@router.post("/sign-in")
def sign_in(
    request: Request, platform: ThePlatform, email: Text = "", password: Text = "", next: Text = "/"
) -> Response:
    try:
        security.limit_sign_in(request, email)
        cookie = platform.accounts.sign_in(email, password, agent=request.headers.get("user-agent", ""))
    except TooMany:
        raise
    except Refusal as refusal:
        page = {"words": str(refusal), "email": email[:254], "next": _local(next)}
        return render(request, "sign_in.html.j2", status=refusal.status, **page)
    return _begin(request, cookie, _local(next))


@router.get("/sign-up")
def sign_up_page(request: Request) -> Response:
    return _sign_up_page(request)


@router.post("/sign-up")
def sign_up(
    request: Request,
    platform: ThePlatform,
    email: Text = "",
    password: Text = "",
    name: Text = "",
    invitation: Text = "",
) -> Response:
    request.app.state.rates.take("sign-up", security.address(request))
    accounts = platform.accounts
    try:
        if not platform.settings.open_sign_up and not invitation:
            raise Forbidden("Accounts here are by invitation; ask whoever runs this server for one.")
        user = accounts.sign_up(email, password, name=name, invitation=invitation)
    except Refusal as refusal:
        return _sign_up_page(request, refusal, email=email[:254], name=name[:200], invitation=invitation)
    cookie = accounts.begin_session(user.id, agent=request.headers.get("user-agent", ""))
    return _begin(request, cookie, "/")


def _sign_up_page(
    request: Request, refusal: Refusal | None = None, email: str = "", name: str = "", invitation: str = ""
) -> Response:
    role = ""
    if invitation:
        try:
            found = request.app.state.platform.accounts.invitations.find(invitation)
            role, email = found.role, email or found.email or ""
        except Refusal:
            invitation = ""
    facts = {"email": email, "name": name, "invitation": invitation, "role": role}
    status = refusal.status if refusal else 200
    return render(request, "sign_up.html.j2", status=status, words=str(refusal or ""), **facts)


@router.post("/sign-out")
def sign_out(request: Request, platform: ThePlatform) -> Response:
    if cookie := request.cookies.get(security.SESSION_COOKIE):
        platform.accounts.sign_out(cookie)
    return _end()


@router.post("/sign-out/everywhere")
def sign_out_everywhere(platform: ThePlatform, user: Caller, tokens: Text = "") -> Response:
    platform.accounts.sign_out_everywhere(user.id, revoke_tokens=bool(tokens))
    return _end()


# The account


@router.get("/account")
def account_page(request: Request, user: MaybeCaller, done: str = "") -> Response:
    if user is None:
        return RedirectResponse("/sign-in?next=/account", 303)
    return _account_page(request, user.id, done=_DONE.get(done, ""))


def _account_page(
    request: Request, user_id: str, *, status: int = 200, words: str = "", done: str = "", new_token: str = ""
) -> Response:
    accounts = request.app.state.platform.accounts
    facts = {"tokens": accounts.tokens(user_id), "sessions": accounts.sessions(user_id)}
    said = {"words": words, "done": done, "new_token": new_token}
    return render(request, "account.html.j2", status=status, **facts, **said)


@router.post("/account")
def change(
    request: Request, platform: ThePlatform, user: Caller, name: Text = "", affiliation: Text = ""
) -> Response:
    try:
        platform.accounts.change(user.id, name=name, affiliation=affiliation)
    except Refusal as refusal:
        return _account_page(request, user.id, status=refusal.status, words=str(refusal))
    return RedirectResponse("/account?done=saved", 303)


@router.post("/account/password")
def change_password(
    request: Request, platform: ThePlatform, user: Caller, current: Text = "", password: Text = ""
) -> Response:
    security.limit_sign_in(request, user.email)
    cookie = request.cookies.get(security.SESSION_COOKIE, "")
    try:
        platform.accounts.check_password(user.id, current)
        platform.accounts.set_password(user.id, password, keep=cookie)
    except Refusal as refusal:
        return _account_page(request, user.id, status=refusal.status, words=str(refusal))
    return RedirectResponse("/account?done=password", 303)


@router.post("/account/tokens")
def add_token(
    request: Request, platform: ThePlatform, user: Caller, name: Text = "", days: Text = ""
) -> Response:
    try:
        token = platform.accounts.add_token(user.id, name, days=_DAYS.get(days, 90.0))
    except Refusal as refusal:
        return _account_page(request, user.id, status=refusal.status, words=str(refusal))
    # Shown in the answer itself: an address with the token in it would be kept by the browser.
    return _account_page(request, user.id, new_token=token)


@router.post("/account/tokens/{token}/revoke")
def revoke_token(platform: ThePlatform, user: Caller, token: str) -> Response:
    platform.accounts.revoke_token(user.id, token)
    return RedirectResponse("/account?done=revoked", 303)


@router.post("/account/delete")
def delete_account(
    request: Request, platform: ThePlatform, user: Caller, confirmation: Text = ""
) -> Response:
    security.limit_sign_in(request, user.email)
    try:
        platform.accounts.check_password(user.id, confirmation)
    except Refusal as refusal:
        return _account_page(request, user.id, status=refusal.status, words=str(refusal))
    platform.accounts.delete(user.id)
    return _end()


# Invitations


@router.get("/invitations")
def invitations_page(request: Request, user: Organiser, done: str = "") -> Response:
    return _invitations_page(request, user, done=_DONE.get(done, ""))


@router.post("/invitations")
def invite(
    request: Request, platform: ThePlatform, user: Organiser, role: Text, email: Text = "", note: Text = ""
) -> Response:
    request.app.state.rates.take("invitation", user.id)
    try:
        secret = platform.accounts.invitations.make(role, by=user, email=email, note=note)
    except Refusal as refusal:
        return _invitations_page(request, user, status=refusal.status, words=str(refusal))
    base = platform.settings.public_url.rstrip("/") or str(request.base_url).rstrip("/")
    return _invitations_page(request, user, link=f"{base}/invitations/{secret}")


def _invitations_page(
    request: Request, user: User, *, status: int = 200, words: str = "", link: str = "", done: str = ""
) -> Response:
    roles = ROLES if user.may("admin") else ROLES[:2]
    made = request.app.state.platform.accounts.invitations.open_of(user)
    facts = {"words": words, "link": link, "done": done, "roles": roles, "made": made}
    return render(request, "invitations.html.j2", status=status, **facts)


@router.post("/invitations/{invitation}/revoke")
def revoke_invitation(platform: ThePlatform, user: Organiser, invitation: str) -> Response:
    platform.accounts.invitations.revoke(user, invitation)
    return RedirectResponse("/invitations?done=ended", 303)


@router.post("/invitations/accept")
def accept(platform: ThePlatform, user: Caller, invitation: Text = "") -> Response:
    platform.accounts.invitations.accept(user, invitation)
    return RedirectResponse("/account?done=accepted", 303)


@router.get("/invitations/{secret}")
def invited_page(request: Request, platform: ThePlatform, user: MaybeCaller, secret: str) -> Response:
    found = platform.accounts.invitations.find(secret)
    if user is None:
        return _sign_up_page(request, invitation=secret)
    return render(request, "invited.html.j2", invitation=secret, role=found.role)


_DAYS = {"90": 90.0, "365": 365.0, "": None}
_DONE = {
    "saved": "Saved.",
    "password": "The password is changed, and all other sessions are over.",
    "revoked": "The token is revoked.",
    "accepted": "You have accepted the invitation.",
    "ended": "The link can be used no more.",
}


def _local(path: str) -> str:
    """Return where to go next, on this server alone."""
    return path if path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable() else "/"


def _begin(request: Request, cookie: str, path: str) -> Response:
    response = RedirectResponse(path, 303)
    security.set_cookie(request, response, security.SESSION_COOKIE, cookie, SESSION_DAYS_AT_MOST)
    response.delete_cookie(security.VISITOR_COOKIE, path="/")
    return response


def _end() -> Response:
    response = RedirectResponse("/", 303)
    response.delete_cookie(security.SESSION_COOKIE, path="/")
    response.headers["Clear-Site-Data"] = '"cache"'
    return response
