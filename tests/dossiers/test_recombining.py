"""Files of two orders, however they are mixed, make no dossier that verifies."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from countersign.core.dossiers.compare import compare_pdf
from countersign_evidence.dossier import TYPES
from countersign_evidence.errors import EvidenceError
from countersign_evidence.verification import verify_file
from tests.dossiers.orders import Orders, files_of, packed, said
from tests.support.depth import drawn

ENDINGS = (".json", ".disclosures.json", ".tlog-proof")


# A file is judged: no engine takes part.
pytestmark = pytest.mark.one_engine


@pytest.fixture(scope="module")
def two(orders: Orders) -> tuple[bytes, bytes]:
    """Two orders of one vendor, and one buyer in both, under one checkpoint."""
    who = orders.vendor()
    first, second = orders.order(who), orders.order(who)
    size = said(orders.dossier(who, second.clearance_id)).size
    return (
        orders.dossier(who, first.clearance_id, size=size),
        orders.dossier(who, second.clearance_id, size=size),
    )


@pytest.mark.later
@given(data=st.data())
@settings(
    max_examples=drawn(300),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_no_recombination_of_two_orders_verifies(
    two: tuple[bytes, bytes], data: st.DataObject
) -> None:
    """Any records of both, any file in place of any other of its kind, with new sums."""
    both = [said(one) for one in two]
    orders = [{record.id for record in one.records} for one in both]
    known = {record.id: record for one in both for record in one.records}
    files = files_of(two[0]) | files_of(two[1])
    chosen = data.draw(st.sets(st.sampled_from(sorted(known)), min_size=1), label="records")
    placed = sorted(chosen, key=lambda id_: (TYPES.index(known[id_].type), known[id_].position))
    swaps = data.draw(
        st.dictionaries(
            st.tuples(st.sampled_from(placed), st.sampled_from(ENDINGS)),
            st.sampled_from(sorted(known)),
            max_size=2,
        ),
        label="swaps",
    )
    made = {
        f"records/{id_}{ending}": files[f"records/{swaps.get((id_, ending), id_)}{ending}"]
        for id_ in placed
        for ending in ENDINGS
    }
    rest = files_of(two[data.draw(st.integers(0, 1), label="rest")])
    made |= {name: content for name, content in rest.items() if not name.startswith("records/")}
    if not any(id_.startswith("ack_") for id_ in placed):
        del made["notice.json"]
    mixed = packed(made)
    verdict = verify_file(mixed)
    if verdict.dossier is None:
        return
    assert any(chosen <= order for order in orders)
    for id_ in chosen:
        assert dict(verdict.dossier.records[placed.index(id_)].record) == known[id_].record
    if mixed not in two:
        # Then a record or a field is withheld, and the PDF, which shows it, is another's.
        with pytest.raises(EvidenceError, match="differs"):
            compare_pdf(mixed, verdict.dossier)


def test_the_records_of_both_orders_do_not_verify(two: tuple[bytes, bytes]) -> None:
    """The plainest case: the check of the other order in place of the own one."""
    first, second = (said(one) for one in two)
    own, other = (one.of("verification")[0].id for one in (first, second))
    files = files_of(two[0])
    theirs = files_of(two[1])
    mixed = {
        name.replace(own, other): theirs[name.replace(own, other)] if own in name else content
        for name, content in files.items()
    }
    verdict = verify_file(packed(mixed))
    assert (verdict.step, verdict.name) == (8, "joins")
