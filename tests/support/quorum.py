"""A signed checkpoint against a policy, as a client checks it."""

from countersign_evidence.policy import CheckedCheckpoint, Policy


def checked(policy: Policy, note: bytes) -> CheckedCheckpoint:
    """The checkpoint, signed by a log of the policy and cosigned as its quorum asks."""
    found = policy.check_signature(note)
    policy.check_quorum(found)
    return found
