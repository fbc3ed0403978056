"""Imports structlog without `rich`, which it would load for coloured tracebacks wherever that is installed.

`rich` alone would take a fifth of the time to start, for renderers that are not
ours. An entry of None in `sys.modules` is Python's own way to say that a module
is not there; it is taken back at once.
"""

import sys
from typing import Any, Final, cast

_UNWANTED: Final = "rich"

_modules = cast("dict[str, Any]", sys.modules)
_is_hidden = _UNWANTED not in _modules and "structlog" not in _modules
if _is_hidden:
    _modules[_UNWANTED] = None
try:
    import structlog as structlog  # noqa: PLC0414 - that it can be imported from here is the point
finally:
    if _is_hidden:
        del _modules[_UNWANTED]
