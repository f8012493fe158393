"""What every compiled kernel needs: Numba's settings, raw pointers, 16-bit floats and threads.

Importing this module imports Numba, so nothing imports it before a kernel is called. Numba notices
changes only in the file that defines a job: after a change here, delete the `__pycache__` folders
of the kernels (`make clean`).

A kernel consists of parts that work on arrays, and of a *job*, which C code calls: a function that
takes one address, where 64-bit integers tell it what to do. The first integer counts the pieces of
work that threads have taken; a job takes pieces until none are left. Tensors are passed as
addresses, because turning a tensor into an array would take time in every call.
"""

# mypy: ignore-errors
# ruff: noqa: ANN001, ANN202

import ctypes
import os
import struct
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, lru_cache

import numpy as np
from llvmlite import ir
from numba import carray, cfunc, njit, types
from numba.extending import intrinsic, overload

__all__ = [
    "array_at",
    "bits",
    "fast",
    "fence",
    "job",
    "narrow",
    "real",
    "run",
    "store_past_the_cache",
    "strict",
    "take",
    "widen",
]

# These flags let the compiler add in any order, multiply and add in one instruction, multiply by
# reciprocals instead of dividing, and ignore the sign of zero. Infinity and NaN work as usual.
ANY_ORDER = {"reassoc", "contract", "arcp", "nsz"}
OPTIONS = {"error_model": "numpy"}  # division by 0 gives infinity or NaN, not an error

fast = njit(fastmath=ANY_ORDER, **OPTIONS)
# Every operation stays as it's written, even when inlined. Without the False, a function would
# inherit the flags of its caller.
STRICT = {"fastmath": False, **OPTIONS}
strict = njit(**STRICT)


def job(function: Callable[[int], None]) -> Callable[[ctypes.Array], None]:
    """Compile a function that takes one address, or load it if it has been compiled before.

    The machine code is stored next to the source, or in the user's cache folder if that isn't
    writable. If neither is, it's compiled in every process.
    """
    options = {"fastmath": ANY_ORDER, **OPTIONS}
    try:
        compiled = cfunc("void(int64)", cache=True, **options)(function)
    except RuntimeError as error:
        if "cannot cache" not in str(error):
            raise
        compiled = cfunc("void(int64)", **options)(function)
    call = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(compiled.address)
    call.keep = compiled  # the machine code lives as long as this object
    return call


# Running a job


def run(call: Callable[[ctypes.Array], None], numbers: tuple[int, ...], threads: int) -> None:
    """Run a job in several threads at the same time. `numbers` starts with a 0, the counter.

    On Linux, the threads are those of torch's own pool: a pool of our own would compete with them,
    because torch's threads keep running for a few milliseconds after each operation.
    """
    memory = (ctypes.c_int64 * len(numbers))(*numbers)
    if threads == 1:
        call(memory)
    elif (openmp := _openmp()) is not None:
        openmp(call, memory, threads, 0)
    else:
        others = [_pool(os.getpid()).submit(call, memory) for _ in range(threads - 1)]
        call(memory)
        for other in others:
            other.result()


@cache
def _openmp() -> Callable[..., None] | None:
    """Return GNU OpenMP's function that runs another function in all threads, if torch has it."""
    if sys.platform != "linux":
        return None
    function = getattr(ctypes.CDLL(None), "GOMP_parallel", None)
    if function is not None:
        function.restype = None
        function.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint]
    return function


@cache
def _pool(process: int) -> ThreadPoolExecutor:
    """Return threads of our own: a child process doesn't inherit those of its parent."""
    return ThreadPoolExecutor(max(1, (os.cpu_count() or 1) - 1), f"lnbook-{process}")


@lru_cache
def bits(number: float) -> int:
    """Return the bits of a float64 as an integer; a job converts it back with `real`."""
    return struct.unpack("q", struct.pack("d", number))[0]


# Inside kernels


@intrinsic
def _pointer(typing, address, like):
    def generate(context, builder, signature, args):
        return builder.inttoptr(args[0], context.get_value_type(signature.return_type))

    return types.CPointer(like)(address, like), generate


@intrinsic
def _reinterpret(typing, value, like):
    """Return the bits of a value as another type, truncated because Numba widens integers."""

    def generate(context, builder, signature, args):
        (value, _), target = args, context.get_value_type(signature.return_type)
        width = ir.IntType(signature.return_type.bitwidth)
        if isinstance(value.type, ir.IntType) and value.type.width > width.width:
            value = builder.trunc(value, width)
        return builder.bitcast(value, target)

    return like(value, like), generate


@intrinsic
def take(typing, numbers):
    """Return the next piece of work that no thread has taken yet, and count it."""

    def generate(context, builder, signature, args):
        counter = context.make_array(signature.args[0])(context, builder, args[0]).data
        one = ir.Constant(ir.IntType(64), 1)
        return builder.atomic_rmw("add", counter, one, "seq_cst")

    return types.int64(numbers), generate


@strict
def array_at(address, shape, like):
    """Return the memory at an address as an array with the type of `like`."""
    return carray(_pointer(address, like), shape)


@strict
def real(integer):
    """Return the float64 with these bits."""
    return _reinterpret(integer, 0.0)


# 16-bit floats: NumPy has no bfloat16, and Numba can't compute with either type, so a kernel sees
# their bits, as uint16 for bfloat16 and int16 for float16.


def widen(value):
    """Return an element as a number to compute with: float32 for the bits of a 16-bit float."""


def narrow(value, like):
    """Return a number as an element with the type of `like`, rounded to the nearest."""


@overload(widen, jit_options=STRICT)
def _widen(value):
    if value == types.uint16:
        return lambda value: _reinterpret(np.uint32(value) << np.uint32(16), np.float32(0))
    return _float16_to_float32 if value == types.int16 else lambda value: value


def _float16_to_float32(value):
    given = np.uint32(np.uint16(value))
    magnitude = (given & np.uint32(0x7FFF)) << np.uint32(13)
    finite = _reinterpret(magnitude, np.float32(0)) * np.float32(2.0**112)  # exponent biases differ
    infinite = (given & np.uint32(0x7C00)) == np.uint32(0x7C00)
    wide = magnitude | np.uint32(0x7F800000) if infinite else _reinterpret(finite, np.uint32(0))
    return _reinterpret(wide | (given & np.uint32(0x8000)) << np.uint32(16), np.float32(0))


@overload(narrow, jit_options=STRICT)
def _narrow(value, like):
    if like == types.uint16:
        return _float32_to_bfloat16
    return _float32_to_float16 if like == types.int16 else lambda value, like: value


def _float32_to_bfloat16(value, like):
    given = _reinterpret(value, np.uint32(0))
    even = (given >> np.uint32(16)) & np.uint32(1)  # a tie goes to the even neighbor
    rounded = (given + np.uint32(0x7FFF) + even) >> np.uint32(16)
    is_nan = (given & np.uint32(0x7FFFFFFF)) > np.uint32(0x7F800000)
    return np.uint16(np.uint32(0x7FC0) if is_nan else rounded)


def _float32_to_float16(value, like):
    given = _reinterpret(value, np.uint32(0))
    magnitude = given & np.uint32(0x7FFFFFFF)
    even = (magnitude >> np.uint32(13)) & np.uint32(1)
    normal = (magnitude - np.uint32(0x38000000) + np.uint32(0xFFF) + even) >> np.uint32(13)
    # Adding a half rounds to multiples of 2 ** -24, the smallest float16.
    shifted = _reinterpret(magnitude, np.float32(0)) + np.float32(0.5)
    small = _reinterpret(shifted, np.uint32(0)) - np.uint32(0x3F000000)
    finite = normal if magnitude >= np.uint32(0x38800000) else small
    large = finite if magnitude < np.uint32(0x477FF000) else np.uint32(0x7C00)
    result = large if magnitude <= np.uint32(0x7F800000) else np.uint32(0x7E00)
    return np.int16(np.uint16(result | ((given >> np.uint32(16)) & np.uint32(0x8000))))


# Stores that bypass the cache. On many processors, an ordinary store first reads the line that it
# writes to, which doubles the traffic, and evicts another line. These stores do neither, which pays
# off for arrays that are larger than the cache.

LINE = 64  # bytes


@intrinsic
def _store_line(typing, target, source):
    """Copy 64 bytes to another address, a multiple of 64, bypassing the cache."""

    def generate(context, builder, signature, args):
        pointer = ir.VectorType(ir.IntType(64), LINE // 8).as_pointer()
        target, source = (builder.inttoptr(address, pointer) for address in args)
        line = builder.load(source, align=8)
        store = builder.store(line, target, align=LINE)
        one = ir.Constant(ir.IntType(32), 1)
        store.set_metadata("nontemporal", builder.module.add_metadata([one]))
        return context.get_dummy_value()

    return types.void(target, source), generate


@intrinsic
def _fetch_line(typing, address):
    """Start to load 64 bytes into the cache, without waiting for them. Any address is allowed."""

    def generate(context, builder, signature, args):
        byte, flag = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, flag, flag, flag])
        prefetch = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        for_reading, nearest_cache, data = (ir.Constant(flag, value) for value in (0, 3, 1))
        address = builder.inttoptr(args[0], byte)
        builder.call(prefetch, [address, for_reading, nearest_cache, data])
        return context.get_dummy_value()

    return types.void(address), generate


@intrinsic
def fence(typing):
    """Make what this thread stored visible to all threads. Call it after `store_past_the_cache`."""

    def generate(context, builder, signature, args):
        builder.fence("seq_cst")
        return context.get_dummy_value()

    return types.void(), generate


@strict
def store_past_the_cache(source, target, following):
    """Copy one vector to another without caching the copy, and meanwhile load a third one.

    All have the same length and dtype. The third one is the input's next row: storing keeps the
    processor busy, so it wouldn't ask for that row until it's done.
    """
    count, size, start = len(target), target.itemsize, target.ctypes.data
    stop = start + count * size
    first = min((start + LINE - 1) // LINE * LINE, stop)
    lines = (stop - first) // LINE
    head, tail = (first - start) // size, (first + lines * LINE - start) // size
    for i in range(head):
        target[i] = source[i]
    offset, ahead = source.ctypes.data - start, following.ctypes.data - start
    for line in range(lines):
        address = first + line * LINE
        _store_line(address, address + offset)
        _fetch_line(address + ahead)
    for i in range(tail, count):
        target[i] = source[i]
