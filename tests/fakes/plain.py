"""Clients that speak plain HTTP to this machine and load no certificates for it."""

from __future__ import annotations

import ssl

NO_CERTIFICATES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
