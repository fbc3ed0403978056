"""The modern Python client with its own OAuth: discovers, registers, logs in, comes back with a token.

The browser is a request of ours that follows the login page's redirect to nowhere.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

import aiohttp
import httpx2
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider, TokenStorage
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from mcp_types import ElicitResult
from pydantic import AnyUrl

_CALLBACK = "http://localhost:1/callback"


class Kept(TokenStorage):
    """What the client would keep on disk."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


@asynccontextmanager
async def logging_in(url: str, kept: Kept) -> AsyncIterator[Client]:
    """A client that logs in when it is told to; elicitations are accepted as Ann."""
    landed: dict[str, list[str]] = {}

    async def browse(address: str) -> None:
        async with aiohttp.ClientSession() as http, http.get(address, allow_redirects=False) as response:
            landed.update(parse_qs(urlsplit(response.headers["Location"]).query))

    async def come_back() -> AuthorizationCodeResult:
        return AuthorizationCodeResult(code=landed["code"][0], state=landed["state"][0], iss=landed["iss"][0])

    async def elicited(context: Any, params: Any) -> ElicitResult:
        return ElicitResult(action="accept", content={"name": "Ann"})

    provider = OAuthClientProvider(
        server_url=url,
        client_metadata=OAuthClientMetadata(
            client_name="test", redirect_uris=[AnyUrl(_CALLBACK)], token_endpoint_auth_method="none"
        ),
        storage=kept,
        redirect_handler=browse,
        callback_handler=come_back,
    )
    async with (
        httpx2.AsyncClient(auth=provider, timeout=20, trust_env=False) as http,
        Client(streamable_http_client(url, http_client=http), elicitation_callback=elicited) as client,
    ):
        yield client
