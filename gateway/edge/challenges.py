"""What a client without a good credential is told: `WWW-Authenticate`, and where the metadata is. Pure.

RFC 6750 (bearer tokens), RFC 9728 (protected-resource metadata, section 5.1).
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from gateway.wire.headers import WELL_KNOWN

_HOST: Final = re.compile(r"(?:[A-Za-z0-9._~-]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?", re.ASCII)
_METADATA: Final = re.compile(r'(?i)(resource_metadata\s*=\s*)(?:"([^"\\]*)"|([^\s,"]+))')


@dataclass(frozen=True, slots=True)
class Addresses:
    """How clients know one endpoint."""

    path: str
    public_url: str | None = None
    """Without the path. None: clients know us by the Host that they call."""
    scheme: str = "http"

    def resource(self, host: str | None) -> str:
        """The endpoint's own URL, which is what tokens are for (RFC 8707)."""
        return f"{self._root(host)}{'' if self.path == '/' else self.path}"

    def metadata(self, host: str | None) -> str:
        """Where the endpoint's metadata is: the well-known path goes before the endpoint's (RFC 9728, 3.1)."""
        root = self._root(host)
        parts = urlsplit(root)
        suffix = f"{parts.path}{'' if self.path == '/' else self.path}"
        return f"{parts.scheme}://{parts.netloc}{WELL_KNOWN}{suffix}"

    def metadata_paths(self) -> list[str]:
        """Under which paths of this listener it is served.

        Where the public URL has a path, whoever stands before us may have taken it away or left it.
        """
        own = "" if self.path == "/" else self.path
        outer = urlsplit(self.public_url or "").path.rstrip("/")
        return list(dict.fromkeys([f"{WELL_KNOWN}{outer}{own}", f"{WELL_KNOWN}{own}"]))

    def _root(self, host: str | None) -> str:
        if self.public_url is not None:
            return self.public_url.rstrip("/")
        # What is no host name is nothing to build a URL from; a client that sends it gets nowhere with it.
        name = host if host is not None and _HOST.fullmatch(host) else "localhost"
        return f"{self.scheme}://{name}"


def bearer(
    *,
    metadata: str | None = None,
    scopes: Sequence[str] = (),
    error: str | None = None,
    text: str | None = None,
) -> str:
    """A bearer challenge. `text` is ours and quotes nothing of the request."""
    parts = [
        *([] if error is None else [f'error="{error}"']),
        *([] if text is None else [f'error_description="{text}"']),
        *([f'scope="{" ".join(scopes)}"'] if scopes else []),
        *([] if metadata is None else [f'resource_metadata="{metadata}"']),
    ]
    return "Bearer " + ", ".join(parts) if parts else "Bearer"


def readdressed(challenge: str, own: str, is_theirs: Callable[[str], bool]) -> str:
    """An upstream's challenge, with the address of its metadata replaced by ours where it is the upstream's own.

    Clients hold the metadata's `resource` against the URL that they called, so
    what an upstream says of its own address is of no use to them. Another
    address is somebody's public one, and stays.
    """

    def change(found: re.Match[str]) -> str:
        theirs = found[2] if found[2] is not None else found[3]
        return f'{found[1]}"{own}"' if is_theirs(theirs) else found[0]

    return _METADATA.sub(change, challenge)
