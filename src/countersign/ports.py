"""What the services need from outside."""

from typing import Protocol


class KeyEncryption(Protocol):
    """Wraps and unwraps data keys with a key-encryption key that is kept elsewhere."""

    @property
    def current_id(self) -> bytes:
        """The id of the key that wraps: the first bytes of whatever `wrap` gives, after a 0x01."""
        ...

    def read_again(self) -> None:
        """Read the keys anew from where they are kept.

        Raises:
            StorageUnavailable: they cannot be had at the moment.
        """
        ...

    def wrap(self, key: bytes, context: bytes) -> bytes:
        """Encrypt a key for this context.

        Raises:
            StorageUnavailable: the keys cannot be had at the moment.
        """
        ...

    def unwrap(self, wrapped: bytes, context: bytes) -> bytes:
        """Decrypt a key.

        Raises:
            WrongKeyEncryptionKey: none of the keys opens it.
            StorageUnavailable: the keys cannot be had at the moment.
        """
        ...
