"""The one type that marks a value as private.

A value inside `Private` depends on private edges. **A value that is not wrapped is public.** Wrapping is free for
everybody; opening is `gcon.privacy.opening`, which only the modules listed in the import rules may import.

A traceback keeps every frame that it went through, and a collector of errors records their local names. So where a function takes
bare edges, and only there, an error of ours loses its frames, and is raised once the arguments are let go (`without_frames`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Generic, NoReturn, ParamSpec, TypeVar, final

from gcon.errors import AnswersWarning, BoundaryError, GconError, PromiseWarning, UnsettledWarning

T_co = TypeVar("T_co", covariant=True)


@final
class Private(Generic[T_co]):
    """A value that depends on private edges, and refuses every quiet way out.

    Printing shows the description only. Length, iteration, indexing, comparison, hashing, truth value, number and
    array conversion, pickling and copying raise `BoundaryError`.

    Args:
        value: the private value.
        description: public words for it, shown when it is printed.
        run: where the value is on other machines, what sends them a whole computation and returns its result.
        check: likewise, what raises if they are not there; asked before anything is charged.

    Example:
        >>> from gcon.privacy.boundary import Private
        >>> Private([1, 2, 3], "three numbers")
        <private: three numbers>

    Privacy:
        Holds the value; reveals the description, which must therefore be public.
    """

    __slots__ = ("__check", "__description", "__run", "__value")
    __check: Callable[[], None] | None
    __description: str
    __run: Callable[[Callable[[Any], Any]], Any] | None
    __value: T_co

    def __init__(
        self,
        value: T_co,
        description: str,
        *,
        run: Callable[[Callable[[Any], Any]], Any] | None = None,
        check: Callable[[], None] | None = None,
    ) -> None:
        if hasattr(self, "_Private__description"):
            self._refuse()  # a private value is never exchanged
        object.__setattr__(self, "_Private__value", value)
        object.__setattr__(self, "_Private__description", description)
        object.__setattr__(self, "_Private__run", run)
        object.__setattr__(self, "_Private__check", check)

    def __repr__(self) -> str:
        return f"<private: {self.__description}>"

    __str__ = __repr__

    def __format__(self, format_spec: str) -> str:
        return repr(self)

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise BoundaryError(
            f"{self!r} depends on private edges and cannot be measured, compared, converted, copied or stored. "
            "It leaves only through a gate that pays the ledger: see gcon.privacy.account."
        )

    # Size, content and order.
    __len__ = __iter__ = __getitem__ = __contains__ = __reversed__ = __length_hint__ = _refuse
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __hash__ = _refuse
    # Truth and numbers.
    __bool__ = __int__ = __float__ = __complex__ = __index__ = __round__ = __bytes__ = _refuse
    # Arrays.
    __array__ = __array_ufunc__ = __array_function__ = __dlpack__ = __dlpack_device__ = _refuse
    __array_interface__ = __array_struct__ = __cuda_array_interface__ = property(_refuse)
    # Arithmetic: a sum with a known number would be as good as the value.
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refuse
    __matmul__ = __rmatmul__ = __neg__ = __abs__ = __pow__ = _refuse
    # Storage.
    __reduce__ = __reduce_ex__ = __getstate__ = __copy__ = __deepcopy__ = _refuse
    # A private value is never changed in place.
    __delattr__ = _refuse

    def __setattr__(self, name: str, value: object) -> None:
        if name != "__orig_class__":  # typing notes the type argument of Private[T](...) here; there is no slot for it
            self._refuse()

    @classmethod
    def __torch_function__(cls, *_: object, **__: object) -> NoReturn:
        raise BoundaryError(
            "A private value was passed to a torch function. It leaves only through a gate: see gcon.privacy.account."
        )


P = ParamSpec("P")
R = TypeVar("R")


def without_frames(function: Callable[P, R]) -> Callable[P, R]:
    """The function; what gcon raises in it on purpose brings no frame of it, of what it called, or of earlier errors.

    Privacy:
        Hides local values, not words: the message must not depend on edges in the first place.
    """

    @wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except (GconError, PromiseWarning, AnswersWarning, UnsettledWarning) as error:  # warnings may be errors
            failure = error.with_traceback(None)
        failure.__cause__ = failure.__context__ = None
        del args, kwargs
        raise failure

    return checked
