"""Write docs/api.md from the docstrings of the public names: python docs/make_api.py."""

from __future__ import annotations

import inspect
from pathlib import Path

import ensue
from ensue.lazy import load

HEAD = """# From Python

`import ensue` is instant: a name is imported when it is first used. The command line calls these functions. Every
example on this page is run by the tests. This page is written by `python docs/make_api.py` from the docstrings.
"""


def page() -> str:
    """Return the page: a heading, the signature and the docstring of every public name."""
    parts = [HEAD]
    for name in sorted(ensue.__all__, key=str.lower):
        if name == "__version__":
            continue
        found = load(ensue.HOMES[name]) if name in ensue.HOMES else getattr(ensue, name)
        text = inspect.cleandoc(found.__doc__ or "")
        words, _, example = text.partition("\n>>> ")
        parts.append(f"## ensue.{name}\n")
        if inspect.isfunction(found):
            parts.append(f"```python\n{_signature(name, found)}\n```\n")
        parts.append(words.strip() + "\n")
        if example:
            parts.append(f"```pycon\n>>> {example.strip()}\n```\n")
        if inspect.isclass(found) and name == "Run":
            parts.append(_members(found))
    return "\n".join(parts)


def _signature(name: str, function: object) -> str:
    """Return the signature, one parameter a line."""
    signature = inspect.signature(function)  # type: ignore[arg-type]
    lines, keyword_only = [], False
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not keyword_only:
            lines.append("*")
            keyword_only = True
        keyword_only = keyword_only or parameter.kind is parameter.VAR_POSITIONAL
        annotation = str(parameter.annotation).replace("'", "")
        lines.append(str(parameter.replace(annotation=parameter.empty)).replace("=", f": {annotation} = ", 1))
        if "=" not in lines[-1]:
            lines[-1] += f": {annotation}"
    back = str(signature.return_annotation).replace("'", "")
    return f"ensue.{name}(\n" + "".join(f"    {line},\n" for line in lines) + f") -> {back}"


def _members(kind: type) -> str:
    found = []
    for name, member in vars(kind).items():
        if name.startswith("_") or not (inspect.isfunction(member) or hasattr(member, "func")):
            continue
        call = "()" if inspect.isfunction(member) else ""
        found.append(f"- `.{name}{call}`: {inspect.cleandoc(member.__doc__).splitlines()[0]}\n")
    return "".join(found)


if __name__ == "__main__":
    Path(__file__).with_name("api.md").write_text(page(), "utf-8")
