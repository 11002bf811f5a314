"""The plugin's words for translators, and what WordPress loads of their translations.

    python -m tools.translations

It writes `languages/*.pot` from the code, brings each `.po` in line with it, and writes the `.mo`
and the `.l10n.php` (which WordPress 6.5 and later read first) of each. Python is enough.
"""

from __future__ import annotations

import ast
import re
import struct
from pathlib import Path
from typing import Final, NamedTuple

PLUGIN: Final = Path(__file__).resolve().parent.parent / "integrations" / "woocommerce"
DOMAIN: Final = "countersign-woocommerce"
_STRING: Final = r"'((?:[^'\\]|\\.)*)'"
_CALL: Final = re.compile(
    rf"(?:/\* translators: (?P<hint>.*?) \*/(?:(?!/\* translators)[^;])*?)?"
    rf"\b(?:(?:esc_html|esc_attr)?_{{1,2}}e?|_n)\( {_STRING}, (?:{_STRING}, )?"
    rf"(?:\$?\w+, )?'{DOMAIN}' \)",
    re.DOTALL,
)
_ENTRY: Final = re.compile(
    r'^(msgid|msgid_plural|msgstr(?:\[\d\])?) (".*"(?:\n".*")*)$', re.MULTILINE
)


class Message(NamedTuple):
    """A text, and its plural."""

    one: str
    several: str
    hint: str
    places: tuple[str, ...]


def messages(plugin: Path = PLUGIN) -> list[Message]:
    """The words of the code, in the order of its files."""
    found: dict[str, Message] = {}
    for path in sorted(plugin.rglob("*.php"), key=lambda path: path.relative_to(plugin).as_posix()):
        place = path.relative_to(plugin).as_posix()
        if place.startswith("languages/"):
            continue
        for call in _CALL.finditer(path.read_text("utf-8")):
            one, several = (re.sub(r"\\(.)", r"\1", part or "") for part in call.group(2, 3))
            before = found.get(one, Message(one, several, "", ()))
            places = (*before.places, place) if place not in before.places else before.places
            hint = before.hint or call["hint"] or ""
            found[one] = Message(one, before.several or several, hint, places)
    return list(found.values())


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def read_po(text: str) -> dict[str, list[str]]:
    """Translations by their source text; the first is the file's head."""
    found: dict[str, list[str]] = {}
    key = ""
    for name, quoted in _ENTRY.findall(text):
        value = "".join(ast.literal_eval(line) for line in quoted.splitlines())
        if name == "msgid":
            key = value
            found[key] = []
        elif name != "msgid_plural":
            found[key].append(value)
    return found


def write_po(head: str, translated: dict[str, list[str]], plugin: Path = PLUGIN) -> str:
    """A `.po` with all texts of the code; untranslated ones are empty."""
    lines = ['msgid ""', 'msgstr ""', *(_quoted(f"{line}\n") for line in head.splitlines()), ""]
    for one in messages(plugin):
        lines += [f"#. translators: {one.hint}"] if one.hint else []
        lines += [f"#: {place}" for place in one.places]
        lines += [f"msgid {_quoted(one.one)}"]
        given = translated.get(one.one) or ["", ""]
        if one.several:
            lines += [f"msgid_plural {_quoted(one.several)}"]
            lines += [f"msgstr[{number}] {_quoted(text)}" for number, text in enumerate(given)]
        else:
            lines += [f"msgstr {_quoted(given[0])}"]
        lines += [""]
    return "\n".join(lines)


def compiled(
    head: str, translated: dict[str, list[str]], plugin: Path = PLUGIN
) -> tuple[bytes, str]:
    """The `.mo` and the `.l10n.php`."""
    pairs = {"": f"{head}\n"}
    for one in messages(plugin):
        given = translated.get(one.one, [])
        if any(given):
            key = f"{one.one}\0{one.several}" if one.several else one.one
            pairs[key] = "\0".join(given)
    keys = sorted(pairs, key=lambda key: key.encode())
    texts = [key.encode() for key in keys], [pairs[key].encode() for key in keys]
    at = 28 + 16 * len(keys)
    tables, body = [], b""
    for column in texts:
        for text in column:
            tables += [len(text), at + len(body)]
            body += text + b"\0"
    count = len(keys)
    made = struct.pack(
        f"<7I{len(tables)}I", 0x950412DE, 0, count, 28, 28 + 8 * count, 0, at, *tables
    )
    fields = dict(line.split(": ", 1) for line in head.splitlines())
    rows = {name.lower(): value for name, value in fields.items()}
    items = [f"{_php(name)}=>{_php(value)}" for name, value in rows.items()]
    words = ",".join(f"{_php(key.partition(chr(0))[0])}=>{_php(pairs[key])}" for key in keys if key)
    return made + body, f"<?php\nreturn [{','.join(items)},'messages'=>[{words}]];\n"


def _php(text: str) -> str:
    quoted = text.replace("\\", "\\\\").replace("'", "\\'")
    return "'" + quoted.replace("\0", "' . \"\\0\" . '") + "'"


def files(plugin: Path = PLUGIN) -> dict[Path, bytes]:
    """All written files, by path."""
    languages = plugin / "languages"
    version = re.search(
        r"^ \* Version: +(\S+)$", (plugin / f"{DOMAIN}.php").read_text("utf-8"), re.MULTILINE
    )
    if version is None:
        raise ValueError("the plugin's header has no version")
    head = (
        f"Project-Id-Version: Countersign for WooCommerce {version[1]}\n"
        "MIME-Version: 1.0\nContent-Type: text/plain; charset=UTF-8\n"
        f"Content-Transfer-Encoding: 8bit\nX-Domain: {DOMAIN}"
    )
    made = {languages / f"{DOMAIN}.pot": write_po(head, {}, plugin).encode()}
    for path in sorted(languages.glob("*.po")):
        translated = read_po(path.read_text("utf-8"))
        language = path.stem.removeprefix(f"{DOMAIN}-")
        own = f"{head}\nLanguage: {language}\nPlural-Forms: nplurals=2; plural=(n != 1);"
        mo, php = compiled(own, translated, plugin)
        made[path] = write_po(own, translated, plugin).encode()
        made[path.with_suffix(".mo")] = mo
        made[path.with_suffix(".l10n.php")] = php.encode()
    return made


if __name__ == "__main__":
    for target, content in files().items():
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(content)
