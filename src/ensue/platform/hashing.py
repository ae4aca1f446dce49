"""Secrets as the database has them: passwords hashed with argon2, random secrets by their SHA-256."""

from __future__ import annotations

import hashlib
import threading

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from ensue.platform.refusals import Invalid

SHORTEST_PASSWORD = 10
LONGEST_PASSWORD = 200

# 19 MiB and two passes: what OWASP asks for at least, and little enough for a small server.
_HASHER = PasswordHasher(time_cost=2, memory_cost=19 * 1024, parallelism=1)
_HASHING = threading.Semaphore(2)
# The hash of a password that nobody knows.
_NOBODY = "$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"


def hash_password(password: str) -> str:
    """Return the argon2 hash of a password that is long enough."""
    if len(password) < SHORTEST_PASSWORD:
        raise Invalid(f"The password is too short; give at least {SHORTEST_PASSWORD} characters.")
    if len(password) > LONGEST_PASSWORD:
        raise Invalid(f"The password is too long; give at most {LONGEST_PASSWORD} characters.")
    with _HASHING:
        return _HASHER.hash(_bytes(password))


def password_matches(hashed: str | None, password: str) -> bool:
    """Return whether a password fits a hash; without a hash, no, after as much work."""
    with _HASHING:
        try:
            fits = _HASHER.verify(hashed or _NOBODY, _bytes(password[: LONGEST_PASSWORD + 1]))
        except (VerificationError, InvalidHashError):
            return False
    return fits and hashed is not None


def _bytes(password: str) -> bytes:
    # An unpaired surrogate, which JSON can carry, is as good a password as any.
    return password.encode("utf-8", "surrogatepass")


def hash_secret(secret: str) -> str:
    """Return the SHA-256 of a secret that is random, and so needs no slower hash."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
