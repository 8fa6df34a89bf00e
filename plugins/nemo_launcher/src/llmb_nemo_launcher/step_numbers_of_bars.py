"""Bars that NeMo 1 draws several times a step."""

from __future__ import annotations

import re

import attrs

ROUNDED_STEP = re.compile(rb"global_step=[\d.]+e")
_EPOCH = re.compile(rb"\d{1,15}")


@attrs.frozen
class Bar:
    """Parts of a bar: the epoch, the 2/20 before the brackets, the fields between them and the text after them."""

    epoch: int
    place: bytes
    fields: bytes
    after: bytes

    @classmethod
    def find(cls, text: bytes) -> Bar | None:
        """Return the bar in a text. A bar without an end has no last field, because digits may be missing."""
        opened = text.find(b" [")
        if opened < 0:
            return None
        closed = text.find(b"]", opened)
        fields_end = closed if closed > 0 else text.rfind(b", ", opened)
        epoch = _EPOCH.match(text)
        return cls(
            epoch=int(epoch[0]) if epoch else 0,
            place=text[text.rfind(b" ", 0, opened) + 1 : opened],
            fields=text[text.find(b", ", opened) : fields_end],
            after=text[closed + 1 :] if closed > 0 else b"",
        )


@attrs.define
class DrawnBar:
    """Last bar of one rank, and the last step whose fields were new.

    A bar counts from 0 in each epoch, so ``before_epoch`` is the number of steps before its epoch.
    """

    place: bytes = b""
    fields: bytes = b""
    last_new: bytes = b""
    epoch: int = -1
    before_epoch: int = 0
    last_number: int = 0
    last_global_step: float | None = None

    def is_new_step(self, bar: Bar) -> bool:
        """Check whether the fields of the next bar belong to its own step.

        A bar is drawn two or three times a step: the first time with the fields of the step before, and at the end of
        training again with its old ones. Fields that did not change are old. Only if the step among them is rounded
        (3.1e+4), a second bar may have new fields that look the same.
        """
        unchanged, again = bar.fields == self.fields, bar.place == self.place
        self.place, self.fields = bar.place, bar.fields
        if unchanged and (bar.place == self.last_new or not (again and ROUNDED_STEP.search(bar.fields))):
            return False
        self.last_new = bar.place
        return True

    def number(self, epoch: int, count: int, global_step: float | None) -> int:
        """Return the number of a new step, the ``count``-th of its epoch. Bars may be missing at the end of an epoch.

        ``global_step`` is None if the bar does not have it, or rounded.
        """
        if epoch > self.epoch >= 0:
            last = self.last_global_step
            done = 0 if global_step is None or last is None else int(global_step - last)
            self.before_epoch = self.last_number + max(0, done - count)
        elif epoch != self.epoch:  # the log begins within a later epoch, or another run begins
            self.before_epoch = max(0, int(global_step) + 1 - count) if epoch and global_step is not None else 0
        self.epoch, self.last_global_step = epoch, global_step
        self.last_number = self.before_epoch + count
        return self.last_number
