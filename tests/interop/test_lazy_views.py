"""Arrays whose memory holds other values than they show, as torch's lazy conjugates do: refused on every way in."""

import cuwheel
import pytest


class Lazy:
    """An array that is conjugated or negated lazily, which its descriptions do not tell."""

    def __init__(self, array, ways, conjugated=False, negated=False):
        self.array, self.conjugated, self.negated = array, conjugated, negated
        self.ways = ways

    def __getattribute__(self, name):
        ways = {"__dlpack__", "__dlpack_device__", "__cuda_array_interface__"}
        if name not in ways:
            return super().__getattribute__(name)
        if name not in self.ways:
            raise AttributeError(name)
        return getattr(self.array, name)

    def is_conj(self):
        return self.conjugated

    def is_neg(self):
        return self.negated


WAYS = [{"__dlpack__", "__dlpack_device__"}, {"__cuda_array_interface__"}]


@pytest.mark.parametrize("ways", WAYS + [WAYS[0] | WAYS[1]], ids=["dlpack", "interface", "both"])
@pytest.mark.parametrize(
    ("array", "flags", "remedy"),
    [
        (lambda: cuwheel.zeros(4, "complex64"), {"conjugated": True}, "resolve_conj"),
        (lambda: cuwheel.zeros(4, "complex64").view("float32")[1::2], {"negated": True}, "resolve_neg"),
        (lambda: cuwheel.zeros(1, "float32"), {"negated": True}, "resolve_neg"),
    ],
    ids=["conjugate", "imaginary part of a conjugate", "one element of such a part"],
)
def test_lazy_views_are_refused_on_every_way(array, flags, remedy, ways):
    with pytest.raises(BufferError, match=remedy):
        cuwheel.from_dlpack(Lazy(array(), ways, **flags))
    assert cuwheel.from_dlpack(Lazy(array(), ways)).kind == "device"
