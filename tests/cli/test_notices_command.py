"""`notices`: check, publish, compare, sign off, withdraw."""

from pathlib import Path

import pytest

from countersign.core import notices
from tests.cli.conftest import Bench
from tests.cli.notice_files import LINES, write_notice
from tests.support.service import free_port

REVIEW = ("--by", "A. Counsel", "--against", "https://example.com/law")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write_notice(tmp_path / "notice.toml")


@pytest.fixture
def published(initialised: Bench, file: Path) -> Bench:
    """Give a deployment on which another notice is published."""
    initialised.run("notices", "publish", str(file))
    return initialised


def state(bench: Bench, version: str = "2026-03") -> tuple[str, str]:
    """The state of a version of the other notice for test and for live keys."""
    (listed,) = [
        n
        for n in bench.read("notices", "list")
        if (n["notice_id"], n["version"]) == ("storage-law", version)
    ]
    return listed["test"], listed["live"]


def test_the_shipped_notice_is_published_unreviewed_and_says_what_is_missing(
    initialised: Bench,
) -> None:
    (listed,) = initialised.read("notices", "list")
    assert (listed["test"], listed["live"]) == ("in_force", "not_reviewed")
    assert listed["text_gaps"]
    assert [event["type"] for event in listed["events"]] == ["published", "rule_published"]


def test_check_gives_the_digest_that_publishing_will_give(initialised: Bench, file: Path) -> None:
    checked = initialised.run("notices", "check", str(file))
    digest = checked.stdout.strip()
    assert len(digest) == 64
    assert len(initialised.read("notices", "list")) == 1
    assert initialised.run("notices", "publish", str(file)).stdout.strip() == digest
    assert initialised.read("notices", "show", "storage-law")["digest"] == digest


def test_check_needs_no_deployment(bench: Bench, file: Path) -> None:
    assert bench.run("notices", "check", str(file)).returncode == 0
    assert not bench.data_dir.exists()


def test_check_names_every_mistake_in_a_file(initialised: Bench, tmp_path: Path) -> None:
    wrong = write_notice(
        tmp_path / "wrong.toml", "No Capitals!", effective_from="soon", titel="?", lines=()
    )
    said = initialised.refused("notices", "check", str(wrong))
    for field in ("id:", "effective_from:", "titel:", "bullets:"):
        assert field in said
    assert "invalid_notice_file" in initialised.refused("notices", "publish", str(wrong))
    assert len(initialised.read("notices", "list")) == 1


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"id = ", b"[" * 5000])
def test_a_file_that_holds_no_notice_is_refused(
    initialised: Bench, tmp_path: Path, content: bytes
) -> None:
    file = tmp_path / "broken.toml"
    file.write_bytes(content)
    assert "invalid_notice_file" in initialised.refused("notices", "check", str(file))


def test_a_missing_file_is_a_mistake_in_the_command(initialised: Bench) -> None:
    done = initialised.run("notices", "publish", "nowhere.toml", check=False)
    assert done.returncode == 2


def test_publishing_the_same_words_again_is_harmless(
    published: Bench, file: Path, tmp_path: Path
) -> None:
    before = published.read("notices", "list")
    first = published.read("notices", "publish", str(file))
    assert first["new"] is False
    # The same words under other comments and another name are still the same words.
    copy = tmp_path / "copy.toml"
    copy.write_text("# a comment\n" + file.read_text())
    assert published.read("notices", "publish", str(copy)) == first
    assert published.read("notices", "list") == before


def test_a_published_version_cannot_be_published_with_other_words(
    published: Bench, file: Path
) -> None:
    before = published.read("notices", "show", "storage-law")
    for lines in (LINES[:2], (*LINES[:2], LINES[2] + " ")):
        write_notice(file, lines=lines)
        said = published.refused("notices", "publish", str(file))
        assert "notice_version_conflict" in said
        assert "new version" in said
    assert published.read("notices", "show", "storage-law") == before


def test_show_prints_the_words_and_the_history(published: Bench) -> None:
    published.run("notices", "review", "storage-law", "--version", "2026-03", *REVIEW)
    shown = published.read("notices", "show", "storage-law", "--version", "2026-03")
    assert [bullet["text"] for bullet in shown["content"]["bullets"]] == list(LINES)
    assert [event["type"] for event in shown["events"]] == ["published", "reviewed"]
    details = shown["events"][1]["details"]
    assert details["by"] == "A. Counsel"
    assert details["against"] == "https://example.com/law"
    assert details["digest"] == shown["digest"]
    text = published.run("notices", "show", "storage-law").stdout
    for words in (*LINES, shown["digest"], "A. Counsel", "reviewed"):
        assert words in text


def test_show_gives_every_field_in_words_and_not_in_those_of_a_programming_language(
    initialised: Bench, tmp_path: Path
) -> None:
    """A list has a line for each element, and a table is JSON."""
    file = write_notice(
        tmp_path / "listed.toml", editorial=["title", "heading"], text_gaps=["(E) is missing"]
    )
    file.write_text(file.read_text() + '[[obligations]]\ntype = "adult_signature"\n')
    initialised.run("notices", "publish", str(file))
    lines = initialised.run("notices", "show", "storage-law").stdout.splitlines()
    for line in (
        "editorial: title",
        "editorial: heading",
        "text_gaps: (E) is missing",
        'obligations: {"type": "adult_signature"}',
    ):
        assert line in lines


def test_diff_compares_versions_and_files(published: Bench, tmp_path: Path) -> None:
    later = write_notice(tmp_path / "later.toml", version="2027-01", lines=(*LINES[:2], "New."))
    compared = published.run("notices", "diff", "storage-law", "2026-03", str(later)).stdout
    assert f"-bullet L3: {LINES[2]}" in compared
    assert "+bullet L3: New." in compared
    assert LINES[0] not in compared
    published.run("notices", "publish", str(later))
    between = published.read("notices", "diff", "storage-law", "2026-03", "2027-01")
    assert (between["old"], between["new"]) == ("2026-03", "2027-01")
    assert {"part": "bullet L3", "before": LINES[2], "after": "New."} in between["differences"]
    same = published.read("notices", "diff", "storage-law", "2026-03", "2026-03")
    assert same["differences"] == []


def test_a_later_version_takes_over(published: Bench, tmp_path: Path) -> None:
    dates = {"2026-06": "2026-06-01", "2099-01": "2099-01-01"}
    for version, effective in dates.items():
        file = tmp_path / f"{version}.toml"
        write_notice(file, version=version, effective_from=effective)
        published.run("notices", "publish", str(file))
    assert state(published) == ("superseded", "not_reviewed")
    assert state(published, "2026-06") == ("in_force", "not_reviewed")
    assert state(published, "2099-01") == ("scheduled", "not_reviewed")
    published.run("notices", "review", "storage-law", "--version", "2026-03", *REVIEW)
    assert state(published) == ("superseded", "in_force")


@pytest.mark.parametrize(
    ("by", "against"),
    [("", "https://example.com"), (" ", "https://example.com"), ("me", ""), ("me", "the book")],
)
def test_a_review_names_the_reviewer_and_the_source(
    published: Bench, by: str, against: str
) -> None:
    arguments = ("--version", "2026-03", "--by", by, "--against", against)
    assert "error (invalid_" in published.refused("notices", "review", "storage-law", *arguments)
    assert state(published) == ("in_force", "not_reviewed")


@pytest.mark.parametrize("typed", ["", "n\n", "\n"])
def test_withdrawing_asks_unless_the_answer_is_given(published: Bench, typed: str) -> None:
    withdraw = ("notices", "withdraw", "storage-law", "--version", "2026-03")
    assert "permanently" in published.refused(*withdraw, typed=typed)
    assert state(published) == ("in_force", "not_reviewed")


@pytest.mark.parametrize(
    ("options", "typed", "status"),
    [
        (("--yes",), "", "withdrawn"),
        ((), "y\n", "withdrawn"),
        (("--enjoined", "--yes"), "", "enjoined"),
    ],
)
def test_a_withdrawn_version_is_out_of_force_for_good(
    published: Bench, file: Path, options: tuple[str, ...], typed: str, status: str
) -> None:
    done = published.run(
        *("notices", "withdraw", "storage-law", "--version", "2026-03", "--reason", "court"),
        *options,
        typed=typed,
    )
    assert done.stdout.startswith("nev_")
    assert state(published) == (status, status)
    last = published.read("notices", "show", "storage-law")["events"][-1]
    assert (last["type"], last["details"]["reason"]) == (status, "court")
    published.run("notices", "review", "storage-law", "--version", "2026-03", *REVIEW)
    published.run("notices", "publish", str(file))
    assert state(published) == (status, status)


@pytest.mark.parametrize(
    "arguments",
    [
        ("show", "no-such-law"),
        ("show", "storage-law", "--version", "1"),
        ("diff", "storage-law", "2026-03", "1"),
        ("review", "storage-law", "--version", "1", *REVIEW),
        ("review", "no-such-law", "--version", "2026-03", *REVIEW),
        ("withdraw", "storage-law", "--version", "1", "--yes"),
        ("reinstate", "storage-law", "--version", "1", *REVIEW),
    ],
)
def test_an_unknown_version_is_refused(published: Bench, arguments: tuple[str, ...]) -> None:
    said = published.refused("notices", *arguments)
    assert "notice_not_found" in said
    assert "see the list" in said or "countersign notices list" in said


def test_an_incomplete_text_cannot_be_signed_off(initialised: Bench) -> None:
    """It is not proposed either: live keys are refused until the complete text is a new version."""
    (shipped,) = initialised.read("notices", "list")
    (file,) = notices.__path__
    again = initialised.run("notices", "publish", str(Path(file, "ab1263-2026-01-01.toml"))).stderr
    assert "notices review" not in again
    assert "publish a new version" in again
    version = ("--version", shipped["version"])
    said = initialised.refused("notices", "review", shipped["notice_id"], *version, *REVIEW)
    assert "notice_incomplete" in said
    assert shipped["text_gaps"][0] in said
    assert "publish it as a new version" in said
    assert initialised.read("notices", "list") == [shipped]


GAP = "(E) and later items are missing"
SAME_LINES = "are those of version 2026-01-incomplete, which lacks text"


@pytest.fixture
def incomplete(initialised: Bench, tmp_path: Path) -> Bench:
    """A notice with an incomplete published version."""
    file = write_notice(tmp_path / "gap.toml", version="2026-01-incomplete", text_gaps=[GAP])
    initialised.run("notices", "publish", str(file))
    return initialised


@pytest.mark.parametrize("lines", [LINES, LINES[:2], (LINES[0], f" {LINES[1].upper()}  ")])
def test_a_gap_deleted_without_new_lines_is_not_published(
    incomplete: Bench, tmp_path: Path, lines: tuple[str, ...]
) -> None:
    """The message names the version with the same lines, and its gap."""
    file = write_notice(tmp_path / "filled.toml", version="2026-02", lines=lines)
    said = incomplete.refused("notices", "publish", str(file)).replace("\n", " ")
    assert "notice_incomplete" in said
    assert SAME_LINES in said
    assert GAP in said
    assert "gap-closed" in said
    more = write_notice(tmp_path / "more.toml", version="2026-02", lines=[*lines, "(E) New."])
    incomplete.run("notices", "publish", str(more))
    incomplete.run("notices", "review", "storage-law", "--version", "2026-02", *REVIEW)


def test_a_deleted_gap_is_named_by_publisher_and_reviewer(
    incomplete: Bench, tmp_path: Path
) -> None:
    """Each says why nothing is missing; the history shows both reasons."""
    file = write_notice(tmp_path / "filled.toml", version="2026-02")
    why = ("--gap-closed", "The bill was cut: (E) was struck.")
    assert "gap-closed" in incomplete.refused("notices", "publish", str(file), "--gap-closed", " ")
    incomplete.run("notices", "publish", str(file), *why)
    incomplete.run("notices", "publish", str(file))  # the same words again: harmless
    review = ("notices", "review", "storage-law", "--version", "2026-02", *REVIEW)
    assert SAME_LINES in incomplete.refused(*review).replace("\n", " ")
    incomplete.run(*review, *why)
    events = incomplete.read("notices", "show", "storage-law", "--version", "2026-02")["events"]
    assert [event["details"]["gap_closed"] for event in events] == [why[1]] * 2
    incomplete.run(
        "notices", "withdraw", "storage-law", "--version", "2026-02", "--reason", "r", "--enjoined",
        "--yes",
    )  # fmt: skip
    incomplete.run("notices", "reinstate", "storage-law", "--version", "2026-02", *REVIEW)


@pytest.mark.parametrize(
    ("address", "warned"),
    [
        ("https://leginfo.legislature.ca.gov/", True),
        ("https://leginfo.legislature.ca.gov", True),
        ("https://leginfo.legislature.ca.gov/faces/billTextClient.xhtml?bill_id=1", False),
        ("https://law.example.com/?id=7", False),
    ],
)
def test_a_review_against_a_home_page_is_warned_of(
    published: Bench, address: str, *, warned: bool
) -> None:
    """Others cannot compare with it; the review counts nevertheless."""
    words = ("--version", "2026-03", "--by", "X", "--against", address)
    done = published.run("notices", "review", "storage-law", *words)
    assert ("is the address of a home page" in done.stderr) is warned


@pytest.fixture
def two_versions(published: Bench, tmp_path: Path) -> Bench:
    """Give a notice with two reviewed versions, the second in force."""
    later = write_notice(tmp_path / "later.toml", version="2026-06", effective_from="2026-06-01")
    published.run("notices", "publish", str(later))
    for version in ("2026-03", "2026-06"):
        published.run("notices", "review", "storage-law", "--version", version, *REVIEW)
    assert state(published, "2026-06") == ("in_force", "in_force")
    return published


def withdraw(bench: Bench, version: str, *options: str) -> str:
    """The command's messages to the operator."""
    arguments = ("--version", version, *options, "--yes")
    return bench.run("notices", "withdraw", "storage-law", *arguments).stderr


def test_withdrawing_prints_the_version_now_in_force_for_each_mode(two_versions: Bench) -> None:
    said = withdraw(two_versions, "2026-06")
    for keys in ("Test", "Live"):
        assert f"{keys} keys get storage-law version 2026-03." in said
    said = withdraw(two_versions, "2026-03")
    for keys in ("Test", "Live"):
        assert f"{keys} keys are refused: no version of storage-law is in force." in said


def test_an_injunction_stops_the_notice_for_live_keys_until_a_version_is_reinstated(
    two_versions: Bench,
) -> None:
    """No earlier text returns to live buyers by itself."""
    said = withdraw(two_versions, "2026-06", "--enjoined")
    assert "Test keys get storage-law version 2026-03." in said
    assert "Live keys are refused: no version of storage-law is in force." in said
    assert state(two_versions, "2026-03") == ("in_force", "enjoined")
    reinstate = ("notices", "reinstate", "storage-law", "--version", "2026-03", *REVIEW)
    done = two_versions.run(*reinstate)
    assert "Live keys get storage-law version 2026-03." in done.stderr
    assert state(two_versions, "2026-03") == ("in_force", "in_force")
    assert state(two_versions, "2026-06") == ("enjoined", "enjoined")
    last = two_versions.read("notices", "show", "storage-law", "--version", "2026-03")["events"][-1]
    assert (last["event_id"], last["type"]) == (done.stdout.strip(), "reinstated")
    assert last["details"]["by"] == "A. Counsel"
    assert "invalid_argument" in two_versions.refused(*reinstate)
    traces = two_versions.read("audit", "storage-law")[-2:]
    assert [(one["action"], one["details"]) for one in traces] == [
        ("notice_enjoined", {"version": "2026-06"}),
        ("notice_reinstated", {"version": "2026-03"}),
    ]


def test_the_enjoined_version_itself_can_be_reinstated(two_versions: Bench) -> None:
    """An injunction may be lifted; a new one stops the notice again."""
    for _ in range(2):
        withdraw(two_versions, "2026-06", "--enjoined")
        assert state(two_versions, "2026-06") == ("enjoined", "enjoined")
        two_versions.run("notices", "reinstate", "storage-law", "--version", "2026-06", *REVIEW)
        assert state(two_versions, "2026-06") == ("in_force", "in_force")
        assert state(two_versions, "2026-03") == ("superseded", "superseded")


def test_only_a_version_that_would_be_in_force_is_reinstated(
    two_versions: Bench, tmp_path: Path
) -> None:
    """Not an incomplete one, a withdrawn one, or a superseded one."""
    incomplete = write_notice(tmp_path / "gaps.toml", version="gaps", text_gaps=["(E)"])
    two_versions.run("notices", "publish", str(incomplete))
    reinstate = ("notices", "reinstate", "storage-law", *REVIEW, "--version")
    withdraw(two_versions, "2026-03", "--enjoined")
    assert "notice_incomplete" in two_versions.refused(*reinstate, "gaps")
    said = two_versions.refused(*reinstate, "2026-03")
    assert "version 2026-06 would be in force" in said
    withdraw(two_versions, "2026-06")
    assert "no version would be in force" in two_versions.refused(*reinstate, "2026-06")
    assert state(two_versions) == ("enjoined", "enjoined")


RULE = """
[applies_to]
version = "1"
source = "Example Code § 1"
product_classes = ["accessory"]
delivered_to = ["CA"]
residents_of = []
identity_checks = []
"""
ELSEWHERE = ("--product-class", "accessory", "--state", "NV")


def needed(bench: Bench, *options: str) -> tuple[str, bool]:
    """Whether an order to another state needs the other notice, and if its rule is reviewed."""
    found = bench.read("notices", "requirements", *ELSEWHERE, *options)["notices"]
    (notice,) = [n for n in found if n["notice_id"] == "storage-law"]
    return notice["required"], notice["reviewed"]


def test_a_rule_is_published_under_a_text_that_is_published(published: Bench, file: Path) -> None:
    """The text and its digest stay; a review of the text alone reviews no rule."""
    assert needed(published, "--mode", "test") == ("unknown", False)
    file.write_text(file.read_text() + RULE)
    done = published.run("notices", "publish", str(file))
    assert "rule 1 is published" in done.stderr
    assert published.read("notices", "publish", str(file))["new"] is False
    shown = published.read("notices", "show", "storage-law")
    assert [event["type"] for event in shown["events"]] == ["published", "rule_published"]
    assert published.read("audit", "storage-law")[-1]["details"] == {
        "rule": "1",
        "version": "2026-03",
    }
    assert needed(published, "--mode", "test") == ("not_required", False)
    review = ("notices", "review", "storage-law", "--version", "2026-03", *REVIEW)
    assert "no rule '2'" in published.refused(*review, "--rule", "2")
    published.run(*review)
    assert needed(published) == ("unknown", False)
    published.run(*review, "--rule", "1")
    assert needed(published) == ("not_required", True)


def test_a_published_rule_cannot_change(published: Bench, file: Path, tmp_path: Path) -> None:
    """Under the same text, and under another version of it; a new rule has a new version."""
    words = file.read_text()
    file.write_text(words + RULE)
    published.run("notices", "publish", str(file))
    changed = RULE.replace('"CA"', '"CA", "NV"')
    other = tmp_path / "other.toml"
    for text in (words, words.replace('2026-03"', '2026-04"', 1)):
        other.write_text(text + changed)
        said = published.refused("notices", "publish", str(other))
        assert "notice_version_conflict" in said
        assert "applies_to" in said
        assert len(published.read("notices", "list")) == 2
    other.write_text(words + changed.replace('version = "1"', 'version = "2"'))
    published.run("notices", "publish", str(other))
    assert needed(published, "--mode", "test") == ("required", False)
    # The file that the rule is from says the same, or the server does not start.
    file.write_text(words + changed)
    said = published.but(PORT=str(free_port())).refused("serve")
    assert "notice_file_changed" in said
    assert str(file) in said


def test_requirements_are_shown_in_words(initialised: Bench) -> None:
    cart = ("--product-class", "barrel", "--state", "CA", "--zip", "94105", "--residence", "CA")
    text = initialised.run("notices", "requirements", *cart, "--mode", "test").stdout
    for words in ("decision: required", "identity: required", "not reviewed", "not_sufficient"):
        assert words in text
    assert "invalid_request" in initialised.refused(
        "notices", "requirements", "--product-class", "barrel", "--state", "ca"
    )
