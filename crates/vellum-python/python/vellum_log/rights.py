"""Whose the files of a new log are, and who may do what with them."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from typing import Optional, Union

_Name = Union[str, int, None]


class Rights:
    """What `VellumHandler` was given as `owner` and `chmod`."""

    def __init__(self, owner: Optional[tuple[_Name, _Name]], chmod: Optional[int]) -> None:
        if chmod is not None and not (isinstance(chmod, int) and 0 <= chmod <= 0o777):
            raise ValueError(f"chmod is {chmod!r}; it must be permission bits such as 0o640")
        if owner is not None and (isinstance(owner, str) or len(owner) != 2):
            raise ValueError(f"owner is {owner!r}; it must be a pair of a user and a group")
        self.mode = chmod
        self._owner = owner

    @contextlib.contextmanager
    def of_new_log(self, path: str) -> Iterator[None]:
        """A log that is made at `path` meanwhile has them, whatever the umask is."""
        if self._owner is not None:
            self._give_directory(path, *self._owner)
        umask = None if self.mode is None else os.umask(0)
        try:
            yield
        finally:
            if umask is not None:
                os.umask(umask)

    def _give_directory(self, path: str, user: _Name, group: _Name) -> None:
        """Makes the directory: a new log belongs to the owner of its directory. Others that make
        the same log do the same before, so the first one makes it in a directory that is given."""
        is_made = False
        with contextlib.suppress(FileExistsError):
            os.mkdir(path)
            is_made = True
        if os.path.isdir(path) and os.listdir(path):
            # Begun by another process, or no log.
            return
        try:
            if self.mode is not None:
                os.chmod(path, self.mode | (self.mode & 0o444) >> 2)
            if user is not None or group is not None:
                shutil.chown(path, user, group)  # type: ignore[arg-type]
        except BaseException:
            if is_made:
                os.rmdir(path)
            raise
