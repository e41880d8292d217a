"""Checks messages of Sluice: is this one signed with our key, and is it fresh?

Run as a program it reads a body from standard input: verify.py SIGNATURE < body, with the key in WEBHOOK_KEY.
"""
import hashlib
import hmac
import os
import sys
import time

WINDOW = 300  # seconds; an older message, however well signed, may be a repeat by somebody who listened


def verify(key: bytes, signature: str, body: bytes, now: float) -> bool:
    """signature is the header Sluice-Signature; body the bytes as they came, before any JSON is read."""
    parts = dict(p.split("=", 1) for p in signature.split(",") if "=" in p)
    at, got = parts.get("t", ""), parts.get("v1", "")
    if not at.isascii() or not at.isdigit() or abs(now - int(at)) > WINDOW:
        return False
    want = hmac.new(key, at.encode() + b"." + body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(want.encode(), got.encode())


if __name__ == "__main__":
    good = verify(os.environ["WEBHOOK_KEY"].encode(), sys.argv[1], sys.stdin.buffer.read(), time.time())
    print("good" if good else "bad")
    sys.exit(0 if good else 1)
