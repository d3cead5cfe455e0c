"""Chat files that the server's page imports."""

from __future__ import annotations

import json
from typing import Any

from browser import Page

FORMAT = "specllama chats 1"


def turn(name: str, parent: str | None, role: str, text: str, **more: Any) -> dict[str, Any]:
    """Return a turn of a chat. Its name is one letter; turns are in alphabetical order."""
    parts = [[text, False]]
    return {"id": name, "parent": parent, "role": role, "time": ord(name), "parts": parts, **more}


def import_chats(page: Page, chats: Any, name: str = "chats.json") -> None:
    """Import a file as if the user had chosen it."""
    text = chats if isinstance(chats, str) else json.dumps(chats)
    page.run(f"""
      const files = new DataTransfer();
      files.items.add(new File([{text!r}], "{name}"));
      at("import-file").files = files.files;
      at("import-file").dispatchEvent(new Event("change"));""")
