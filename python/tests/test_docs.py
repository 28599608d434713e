"""The blocks of docs/reference/python.md do what the page says: each prints what stands below it."""

import contextlib
import io
import re

import pytest

from conftest import ROOT

PAGE = ROOT / "docs/reference/python.md"
BLOCK = re.compile(r"```python\n(.*?)```\n\n```text\n(.*?)```", re.DOTALL)


def test_the_page_prints_what_it_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    text = PAGE.read_text()
    blocks = BLOCK.findall(text)
    assert len(blocks) == text.count("```python") >= 4
    names: dict[str, object] = {}
    for code, shown in blocks:
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(code, names)
        assert printed.getvalue() == shown
