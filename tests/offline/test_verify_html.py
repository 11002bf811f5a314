"""verify.html in a real browser, opened from a file: same verdicts as the service, no requests."""

import json
import re
from base64 import b64encode
from collections.abc import Callable, Generator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, FilePayload, Page, expect

from countersign_evidence.verification import STEPS
from tests.offline import builder
from tests.support.browsers import running_browser
from tests.support.every import every

pytestmark = pytest.mark.long

GOOD = builder.good()
BROKEN = builder.broken()
STEPS_THAT_BREAK = sorted({step for step, _ in BROKEN.values()}, key=STEPS.index)
FINGERPRINT = sha256(builder.public_key(builder.LOG_SEED)).hexdigest()
RECORD = sha256(builder.material().record).hexdigest()


def inline(page_file: Path, tag: str) -> list[str]:
    return re.findall(rf"<{tag}>(.*?)</{tag}>", page_file.read_text(encoding="utf-8"), re.DOTALL)


def test_the_policy_of_the_page_allows_its_own_script_and_style_and_nothing_else(
    page_file: Path,
) -> None:
    """The digests in the content security policy are those of the script and style in the page."""

    def digest(tag: str) -> str:
        (content,) = inline(page_file, tag)
        return f"'sha256-{b64encode(sha256(content.encode()).digest()).decode()}'"

    found = re.search(
        r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">',
        page_file.read_text(encoding="utf-8"),
    )
    assert found
    assert found[1] == (
        f"default-src 'none'; script-src {digest('script')}; style-src {digest('style')}; "
        "connect-src https: http://127.0.0.1:* http://localhost:*; form-action 'none'; "
        "base-uri 'none'"
    )


def test_the_page_is_one_file_that_never_turns_text_into_markup(page_file: Path) -> None:
    """Nothing is loaded from elsewhere, and text of a file never becomes markup."""
    source = page_file.read_text(encoding="utf-8")
    assert not re.search(r"\b(?:src|href|action|style|on[a-z]+)\s*=\s*[\"']", source)
    for word in ("innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval("):
        assert word not in source
    # One place connects: to the log, when a test presses the button.
    assert source.count("fetch(") == 1
    assert not re.search(r"XMLHttpRequest|WebSocket|EventSource|sendBeacon|import\(", source)


@pytest.fixture(scope="module")
def browser() -> Generator[Browser]:
    """Run one Chromium for this module."""
    with running_browser() as chromium:
        yield chromium


@pytest.fixture(scope="module")
def shared(browser: Browser, page_file: Path) -> Generator[Page]:
    """Open the page once, for many files one after the other."""
    page = browser.new_page()
    page.goto(page_file.as_uri())
    yield page
    page.close()


@pytest.fixture
def open_page(browser: Browser, page_file: Path) -> Generator[Callable[..., Page]]:
    """Open the page, with a fragment, after a script, or in another kind of window.

    The page has no errors on its console, and requests only itself.
    """
    contexts = []
    requested: list[str] = []
    trouble: list[str] = []

    def opened(fragment: str = "", script: str = "", **options: Any) -> Page:  # noqa: ANN401 - Playwright's
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.on("request", lambda request: requested.append(request.url))
        page.on("pageerror", lambda error: trouble.append(str(error)))
        page.on("console", lambda message: trouble.append(message.text))
        if script:
            page.add_init_script(script)
        page.goto(page_file.as_uri() + fragment)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert {url.partition("#")[0] for url in requested} <= {page_file.as_uri()}
    assert trouble == []


def choose(page: Page, data: bytes, name: str = "dossier.zip") -> None:
    """Give the page a file, once it is ready."""
    page.locator("#file[data-ready=yes]").set_input_files(payload(data, name))


def payload(data: bytes, name: str) -> FilePayload:
    return FilePayload(name=name, mimeType="application/octet-stream", buffer=data)


def verdict(page: Page, begins: str = "OK|CONSISTENT|FAILED|COULD|Nothing was|This browser") -> str:
    """The verdict in one line, once there is one, with all details open."""
    said = page.locator("#line, #verdict").filter(has_text=re.compile(f"^({begins})"))
    expect(said).to_have_count(1)
    page.evaluate(OPEN)
    line = page.locator("#line")
    return (line if line.count() else page.locator("#verdict")).inner_text()


OPEN = "for (const one of document.querySelectorAll('#result details')) one.open = true"


@pytest.mark.browser
@every("name", GOOD)
def test_a_good_dossier_is_accepted(shared: Page, name: str) -> None:
    """From a file, with the key of the dossier itself, which the page says."""
    choose(shared, b"", "cleared")
    assert verdict(shared).startswith("FAILED at step 1 (container)")
    choose(shared, GOOD[name], f"{name}.zip")
    verdict(shared, "CONSISTENT")
    text = shared.locator("main").inner_text()
    assert "this dossier" in text
    assert "does not cover dossier.pdf" in text
    assert "shown the notice: the vendor asserts that" in text
    steps = shared.locator("h2:text-is('The steps') + ol > li").all_inner_texts()
    assert len(steps) == len(STEPS)
    assert all(" ok: " in step for step in steps)


@pytest.mark.browser
@every("name", STEPS_THAT_BREAK)
def test_a_broken_dossier_fails_by_the_name_of_its_step(shared: Page, name: str) -> None:
    """One for each step; nothing of the record, or of an earlier file, is shown as valid."""
    data = next(data for step, data in BROKEN.values() if step == name)
    choose(shared, GOOD["full"], "good.zip")
    verdict(shared, "CONSISTENT")
    choose(shared, data, f"{name}.zip")
    verdict(shared, f"FAILED at step {STEPS.index(name) + 1} \\({name}\\): ")
    assert "J.D." not in shared.locator("main").inner_text()


@pytest.mark.browser
def test_it_shows_what_was_acknowledged_as_text(open_page: Callable[..., Page]) -> None:
    """Lines, initials, times, capture and fingerprint; markup in a notice stays text."""
    page = open_page()
    choose(page, GOOD["full"])
    assert verdict(page).startswith("CONSISTENT")
    text = page.locator("main").inner_text()
    for expected in (
        *builder.LINES,
        *builder.INITIALS,
        FINGERPRINT,
        "2026-11-20T21:31:00.123Z",
        "the vendor asserts what the buyer did",
        "sess_1",
        "does not prove who typed the initials",
        "2026-11-20T",
    ):
        assert expected in text, expected
    assert page.locator("#result b", has_text="zwei").count() == 0
    assert "version 2026-01-01 (asserted: the request named the version that was shown)" in text
    assert "acct_01kdtvz9n8f6ywn3x2qk4c7r5a" in text
    assert "I understand." in text
    assert page.locator("#verdict").get_attribute("class") == "verdict caution"


@pytest.mark.browser
def test_a_page_that_a_deployment_serves_judges_by_its_own_policies(
    browser: Browser, page_file: Path, tmp_path: Path
) -> None:
    """Forged with the names of its log, evidence fails there without anybody pasting a key."""
    origin = builder.ORIGIN.replace("/live/", "/test/")
    policies = {
        "live": builder.material().policy,
        "test": f"log {builder.vkey(origin)}\nquorum none\n",
    }
    encoded = {mode: b64encode(text.encode()).decode() for mode, text in policies.items()}
    served = tmp_path / "verify.html"
    source = page_file.read_text(encoding="utf-8")
    assert source.count('id="policies">{}<') == 1
    served.write_text(
        source.replace('id="policies">{}<', f'id="policies">{json.dumps(encoded)}<'),
        encoding="utf-8",
    )
    page = browser.new_page()
    page.goto(served.as_uri())
    of_test = replace(
        builder.material(),
        record=builder.material(mode="test").record,
        extra=builder.material(mode="test").record,
        origin=origin,
    )
    forged = replace(
        builder.material(),
        log_seed=builder.OTHER_SEED,
        policy=f"log {builder.vkey(builder.ORIGIN, seed=builder.OTHER_SEED)}\nquorum none\n",
    )
    for made, begins, says in (
        (builder.material(), "OK: ", "Checked against the live policy of this site"),
        (of_test, "OK: ", "Checked against the test policy of this site"),
        (forged, "FAILED at step 2 (signature)", "FAILED"),
    ):
        choose(page, made.dossier())
        verdict(page, re.escape(begins))
        expect(page.locator("#result")).to_contain_text(says)
    page.close()


@pytest.mark.browser
def test_a_certificate_alone_is_reported_as_no_evidence(open_page: Callable[..., Page]) -> None:
    """People usually have the certificate: the page names the dossier to ask for."""
    page = open_page()
    choose(page, b"%PDF-1.7 ... ack_01m7xdxbmvex7t29vh2x05yyyq ...", "certificate.pdf")
    said = verdict(page)
    assert said.startswith("Nothing was checked: this is a PDF, perhaps a certificate")
    assert "ack_01m7xdxbmvex7t29vh2x05yyyq.zip" in said


@pytest.mark.browser
def test_a_verdict_ends_in_one_punctuation_mark(open_page: Callable[..., Page]) -> None:
    """Also a verdict that asks whether this is the right policy."""
    page = open_page()
    of_test = replace(builder.material(), origin=builder.ORIGIN.replace("/live/", "/test/"))
    choose(page, of_test.dossier())
    assert verdict(page).endswith("is this the live policy?")


@pytest.mark.browser
def test_a_proof_alone_needs_keys_that_the_reader_gives(open_page: Callable[..., Page]) -> None:
    """Without them nothing is claimed; with a pasted key steps 1 to 5 are done."""
    page = open_page()
    proof = builder.material().proof()
    choose(page, proof, "ack.tlog-proof")
    assert verdict(page).startswith("FAILED at step 2 (signature)")
    page.get_by_text("Check against keys that you trust").click()
    page.locator("#keys").fill(builder.vkey(builder.ORIGIN))
    page.locator("#keys").blur()
    verdict(page, "OK")
    steps = page.locator("ol.steps li").all_inner_texts()
    assert ["not checked" in step for step in steps] == [False] * 5 + [True] * 5
    assert "this dossier" not in page.locator("#result").inner_text()


@pytest.mark.browser
def test_the_policy_of_the_reader_counts(open_page: Callable[..., Page]) -> None:
    """A wrong one fails the dossier, the right one does not, an unreadable one claims nothing."""
    page = open_page()
    choose(page, GOOD["full"])
    assert verdict(page).startswith("CONSISTENT, KEY NOT CHECKED")
    page.get_by_text("Check against keys that you trust").click()
    other = f"log {builder.vkey(builder.ORIGIN, seed=builder.OTHER_SEED)}\nquorum none\n"
    page.locator("#policy").set_input_files(payload(other.encode(), "other.txt"))
    verdict(page, r"FAILED at step 2 \(signature\)")
    page.locator("#policy").set_input_files(payload(builder.material().policy.encode(), "p.txt"))
    verdict(page, "OK")
    page.locator("#policy").set_input_files(payload(b"log x\nquorum none\n", "broken.txt"))
    expect(page.locator("#verdict")).to_have_text(re.compile("^Nothing was checked"))
    assert page.locator("#result").inner_text() == ""


@pytest.mark.browser
def test_a_code_stands_for_one_record(open_page: Callable[..., Page]) -> None:
    """The page says which, and whether the file is about that one."""
    page = open_page(f"#record={RECORD}")
    expect(page.locator("#wanted")).to_contain_text(RECORD)
    choose(page, GOOD["full"])
    expect(page.locator("#match")).to_contain_text("contains the record that the QR code names")
    choose(page, GOOD["test-mode"], "other.zip")
    expect(page.locator("#match")).to_contain_text("ANOTHER record")
    unasked = open_page("#record=<b>no</b>")
    assert "no</b>" not in unasked.locator("main").inner_text()


@pytest.mark.browser
@pytest.mark.parametrize(
    "script",
    [
        "crypto.subtle.importKey = () => Promise.reject(new Error('not supported'))",
        "Object.defineProperty(crypto, 'subtle', {value: undefined})",
        "crypto.subtle.verify = () => Promise.resolve(true)",
    ],
)
def test_a_browser_that_cannot_check_signatures_gives_no_verdict(
    open_page: Callable[..., Page], script: str
) -> None:
    """It says so at once, and takes no file; one that calls everything good is not believed."""
    page = open_page(script=script)
    assert "cannot check Ed25519" in verdict(page)
    expect(page.locator("#file")).to_be_disabled()


@pytest.mark.browser
def test_a_file_can_be_dropped(open_page: Callable[..., Page]) -> None:
    """On the zone it is checked; outside it nothing happens, and the page stays."""
    page = open_page()
    page.locator("#file[data-ready=yes]").wait_for()
    transfer = page.evaluate_handle(
        """encoded => {
          const transfer = new DataTransfer();
          const bytes = Uint8Array.from(atob(encoded), c => c.charCodeAt(0));
          transfer.items.add(new File([bytes], "dossier.zip"));
          return transfer;
        }""",
        b64encode(GOOD["full"]).decode(),
    )
    page.locator("#drop").dispatch_event("drop", {"dataTransfer": transfer})
    verdict(page, "CONSISTENT")


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_can_be_used_by_keyboard_on_a_narrow_screen_and_be_read(
    open_page: Callable[..., Page], scheme: str
) -> None:
    """320 pixels wide without scrolling sideways, labelled, announced, contrast 4.5 to 1."""
    page = open_page(viewport={"width": 320, "height": 640}, color_scheme=scheme)
    choose(page, GOOD["full"])
    assert verdict(page).startswith("CONSISTENT")
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    page.locator("#file").focus()
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.tagName") == "SUMMARY"
    assert page.evaluate(outline) != "none"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "policy"
    unnamed = "[...document.querySelectorAll('input, textarea')].filter(e => !e.labels.length)"
    assert page.evaluate(f"{unnamed}.length") == 0
    assert page.locator("[aria-live=polite], [role=status]").count() >= 1
    assert page.evaluate(CONTRAST) == []


# Every element with text of its own whose colour is too close to the page's background.
CONTRAST = """() => {
  const luminance = colour => {
    const [r, g, b] = colour.match(/[\\d.]+/g).slice(0, 3).map(Number).map(v => v / 255)
      .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = luminance(getComputedStyle(document.body).backgroundColor);
  return [...document.querySelectorAll("main, main *")]
    .filter(e => [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim()))
    .filter(e => {
      const own = luminance(getComputedStyle(e).color);
      return (Math.max(own, behind) + 0.05) / (Math.min(own, behind) + 0.05) < 4.5;
    })
    .map(e => e.outerHTML.slice(0, 80));
}"""
