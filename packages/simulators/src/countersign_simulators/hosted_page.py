"""How a page of a simulated provider looks: plain HTML, one form, no script."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha256
from html import escape
from typing import Final

from countersign_simulators.base import Headers, Reply

_STYLE: Final = """
:root{color-scheme:light}
*{box-sizing:border-box}
body{margin:0;font:1rem/1.5 system-ui,sans-serif;color:#1b1b1b;background:#f4f4f2}
header{background:#4a1d6a;color:#fff;padding:.75rem 1rem}
header p{max-width:34rem;margin:0 auto}
main{max-width:34rem;margin:0 auto;padding:1rem;overflow-wrap:anywhere}
h1{font-size:1.5rem;line-height:1.25;margin:.5rem 0}
.step{margin:.5rem 0 0;color:#4d4d4d}
label{display:block;font-weight:600;margin-top:1rem}
.hint{margin:0;color:#4d4d4d}
.wrong{border:2px solid #a30000;border-radius:.5rem;padding:.75rem;background:#fff;color:#8a0000}
input,select,button,a.button{display:block;width:100%;min-height:3rem;font:inherit;
padding:.5rem .75rem;border:1px solid #5c5c5c;border-radius:.5rem;background:#fff;color:#1b1b1b}
button,a.button{margin-top:1.5rem;background:#4a1d6a;border-color:#4a1d6a;color:#fff;
font-weight:600;text-align:center;text-decoration:none}
:focus-visible{outline:3px solid #b35900;outline-offset:2px}
@media (min-width:40rem){main{margin-top:2rem;background:#fff;border-radius:1rem;padding:2rem}}
"""
_STYLE_HASH: Final = b64encode(sha256(_STYLE.encode()).digest()).decode()
_HEADERS: Final[Headers] = (
    ("Content-Type", "text/html; charset=utf-8"),
    ("Cache-Control", "no-store"),
    ("Referrer-Policy", "no-referrer"),
    ("X-Robots-Tag", "noindex"),
    # No form-action: browsers apply it to where a form's response redirects, too.
    (
        "Content-Security-Policy",
        f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; frame-ancestors 'none'",
    ),
)
_STEPS: Final[Mapping[str, tuple[str, str, str]]] = {
    "consent": (
        "Agree to the check",
        "A real provider would now ask for your consent. Choose a result, or go on.",
        "Agree and continue",
    ),
    "document": (
        "Show a document",
        "A real provider would now use the camera. Here, an invented driving licence is used.",
        "Use the invented licence",
    ),
    "address": (
        "Your address",
        "The invented person lives at the ZIP code that you type here.",
        "Continue",
    ),
    "selfie": (
        "Take a selfie",
        "A real provider would now look at your face. Here, nothing is recorded.",
        "Use an invented face",
    ),
    "result": ("Choose the result", "What the check finds is your choice.", "Finish"),
}
"""Heading, words and button of each step."""


def step_page(
    provider: str,
    step: str,
    fields: Mapping[str, str],
    choices: Mapping[str, Mapping[str, str]],
    *,
    wrong: bool = False,
) -> Reply:
    """The page of a step with its form; `wrong`: the input cannot be used.

    `fields` has the current `zip` and `who`, `choices` the words for each `outcome` and `who`.
    """
    title, words, button = _STEPS[step]
    inner = [
        f'<p class="step">Step {[*_STEPS].index(step) + 1} of {len(_STEPS)}</p>',
        f"<h1>{title}</h1>",
    ]
    if wrong:
        inner.append(
            '<p class="wrong" role="alert">Type a ZIP code of five digits, and choose one of the '
            "results in the list.</p>"
        )
    inner += [f"<p>{words}</p>", '<form method="post">']
    if step in {"consent", "address"}:
        inner.append(_zip_field(fields["zip"], wrong=wrong))
    if step in {"consent", "document"}:
        inner.append(_select("who", "Who is checked", choices["who"], fields["who"]))
    if step in {"consent", "result"}:
        every_step = {"": "Go through every step"} if step == "consent" else {}
        inner.append(_select("outcome", "Result", every_step | dict(choices["outcome"])))
    inner.append(f'<button type="submit">{button}</button></form>')
    return _page(400 if wrong else 200, provider, title, "".join(inner))


def ended_page(provider: str, address: str | None) -> Reply:
    """The page of an ended session, with the way back if there is one."""
    title = "This check is over"
    inner = f"<h1>{title}</h1><p>There is nothing left to do here. You can close this page.</p>"
    if address is not None:
        link = escape(address)
        inner = (
            f'<h1>{title}</h1><p>There is nothing left to do here.</p><p><a class="button" '
            f'href="{link}">Go back</a></p>'
        )
    return _page(200, provider, title, inner)


def missing_page(provider: str) -> Reply:
    """The page for an address that leads to no session."""
    title = "There is no such check"
    inner = f"<h1>{title}</h1><p>The address is wrong, or has been used up.</p>"
    return _page(404, provider, title, inner)


def _zip_field(zip_: str, *, wrong: bool) -> str:
    invalid = ' aria-invalid="true"' if wrong else ""
    return (
        '<label for="zip">ZIP code</label><p class="hint" id="zip-hint">Five digits: the code that '
        'the order ships to</p><input id="zip" name="zip" inputmode="numeric" autocomplete="off" '
        f'maxlength="5" aria-describedby="zip-hint"{invalid} value="{escape(zip_)}" required>'
    )


def _select(name: str, label: str, choices: Mapping[str, str], chosen: str = "") -> str:
    options = "".join(
        f'<option value="{escape(value)}"{" selected" if value == chosen else ""}>{escape(words)}'
        "</option>"
        for value, words in choices.items()
    )
    return (
        f'<label for="{name}">{label}</label><select id="{name}" name="{name}">{options}</select>'
    )


def _page(status: int, provider: str, title: str, inner: str) -> Reply:
    name = escape(provider)
    page = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title} - simulated '
        f'{name}</title><meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<style>{_STYLE}</style></head><body><header><p><strong>This is a simulator, not {name}."
        "</strong> All persons are invented. Type nothing about a real person.</p></header>"
        f"<main>{inner}</main></body></html>"
    )
    return Reply(status=status, body=page.encode(), headers=_HEADERS)
