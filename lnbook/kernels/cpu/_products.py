"""Small matrix products in Numba, for use inside a time loop.

A recurrent layer multiplies a few rows by the same matrix at every step. A library rearranges the
matrix for each product; here that's done once, and then every step reads it in order. There's no
call out of compiled code between the steps, and threads with different rows don't have to wait for
each other.

The matrix is cut into *panels*, each a few vectors wide. The innermost loop keeps a tile of the
result in registers, some rows high and one panel wide. For each `k`, it loads one line of the panel
and adds it, times one number of the left matrix, to every row of the tile. The method is Goto and
van de Geijn's (Anatomy of High-Performance Matrix Multiplication, 2008).
"""

# mypy: ignore-errors
# ruff: noqa: ANN001, ANN202

import platform

from llvmlite import binding, ir
from numba import types
from numba.extending import intrinsic, overload

from lnbook.kernels.cpu._compile import fast

__all__ = ["panel_width", "product", "width_in_bytes"]

_FEATURES = binding.get_host_cpu_features()
# Each register holds this many bytes, and there are enough of them for a tile of this many rows.
if _FEATURES.get("avx512f"):
    BYTES, ROWS = 64, 8
elif _FEATURES.get("avx2"):
    BYTES, ROWS = 32, 4
else:
    BYTES, ROWS = 16, 8 if platform.machine() in ("arm64", "aarch64") else 4
VECTORS = 2  # per row of a tile


def width_in_bytes() -> int:
    """Return how many bytes a line of a panel takes."""
    return VECTORS * BYTES


def panel_width(like):
    """Return how many numbers a line of a panel has."""
    raise NotImplementedError("only for compiled code")


@overload(panel_width)
def _panel_width(like):
    width = VECTORS * BYTES * 8 // like.bitwidth
    return lambda like: width


def _tile_of(rows):
    """Return a function for compiled code that computes a tile with this many rows.

    It computes `c[i, j] = sum over k of a[i, k] * b[k, j]`, or adds this to `c`.
    """

    @intrinsic
    def tile(typing, a, a_start, a_row, b, b_start, depth, c, c_start, c_row, adds):
        element, integer = a.dtype, types.int64

        def generate(context, builder, signature, args):
            number = context.get_value_type(element)
            lanes = BYTES * 8 // element.bitwidth
            vector = ir.VectorType(number, lanes)
            index, places = ir.IntType(64), range(VECTORS)

            def pointer(argument, start):
                array = context.make_array(signature.args[argument])(
                    context, builder, args[argument]
                )
                return builder.gep(array.data, [args[start]])

            def vector_at(base, offset):
                address = builder.gep(base, [offset])
                return builder.bitcast(address, vector.as_pointer())

            def load(base, offset):
                return builder.load(vector_at(base, offset), align=element.bitwidth // 8)

            left, panel, result = pointer(0, 1), pointer(3, 4), pointer(6, 7)
            a_row, depth, c_row, adds = args[2], args[5], args[8], args[9]
            left_rows = [builder.gep(left, [builder.mul(a_row, index(i))]) for i in range(rows)]
            result_rows = [builder.gep(result, [builder.mul(c_row, index(i))]) for i in range(rows)]
            before = builder.block
            loop, adding, storing = (
                builder.append_basic_block(name) for name in ("loop", "adding", "storing")
            )
            builder.branch(loop)

            builder.position_at_end(loop)
            zero = ir.Constant(vector, [ir.Constant(number, 0.0)] * lanes)
            k = builder.phi(index)
            k.add_incoming(index(0), before)
            sums = [[builder.phi(vector) for _ in places] for _ in range(rows)]
            line = builder.mul(k, index(VECTORS * lanes))
            factors = [load(panel, builder.add(line, index(j * lanes))) for j in places]
            multiply_add = builder.module.globals.get(
                name := f"llvm.fmuladd.v{lanes}f{element.bitwidth}"
            )
            if multiply_add is None:
                kind = ir.FunctionType(vector, [vector] * 3)
                multiply_add = ir.Function(builder.module, kind, name)
            everywhere = ir.Constant(ir.VectorType(ir.IntType(32), lanes), [0] * lanes)
            new = []
            for i in range(rows):
                one = builder.load(builder.gep(left_rows[i], [k]))
                spread = builder.insert_element(zero, one, ir.IntType(32)(0))
                spread = builder.shuffle_vector(spread, zero, everywhere)
                new.append(
                    [builder.call(multiply_add, [spread, factors[j], sums[i][j]]) for j in places]
                )
            following = builder.add(k, index(1))
            k.add_incoming(following, loop)
            for i in range(rows):
                for j in places:
                    sums[i][j].add_incoming(zero, before)
                    sums[i][j].add_incoming(new[i][j], loop)
            after = builder.append_basic_block("after")
            builder.cbranch(builder.icmp_signed("<", following, depth), loop, after)

            # These loads come last, so that the next tile doesn't have to wait for them.
            builder.position_at_end(after)
            builder.cbranch(adds, adding, storing)
            builder.position_at_end(adding)
            totals = [
                [builder.fadd(new[i][j], load(result_rows[i], index(j * lanes))) for j in places]
                for i in range(rows)
            ]
            builder.branch(storing)

            builder.position_at_end(storing)
            for i in range(rows):
                for j in places:
                    total = builder.phi(vector)
                    total.add_incoming(new[i][j], after)
                    total.add_incoming(totals[i][j], adding)
                    new[i][j] = total
            for i in range(rows):
                for j in places:
                    target = vector_at(result_rows[i], index(j * lanes))
                    builder.store(new[i][j], target, align=element.bitwidth // 8)
            return context.get_dummy_value()

        given = (a, integer, integer, b, integer, integer, c, integer, integer)
        return types.void(*given, types.boolean), generate

    return tile


_tile_8, _tile_4, _tile_2, _tile_1 = (_tile_of(rows) for rows in (8, 4, 2, 1))


@fast
def product(a, start, row, rows, b, depth, c, c_start, c_row, columns, adds):
    """Multiply a few rows by a matrix in panels; all arrays are vectors in memory.

    The left matrix is `a[start + i * row + k]`, with `rows` rows and `depth` columns, at least 1;
    the result is `c[c_start + i * c_row + j]`, with `columns` columns, a multiple of the panel's
    width. If `adds`, the product is added to what's already in the result.
    """
    for j in range(0, columns, panel_width(a[0])):
        given = (row, b, j * depth, depth, c)
        i = 0
        if ROWS == 8:
            while i + 8 <= rows:
                _tile_8(a, start + i * row, *given, c_start + i * c_row + j, c_row, adds)
                i += 8
        while i + 4 <= rows:
            _tile_4(a, start + i * row, *given, c_start + i * c_row + j, c_row, adds)
            i += 4
        if i + 2 <= rows:
            _tile_2(a, start + i * row, *given, c_start + i * c_row + j, c_row, adds)
            i += 2
        if i < rows:
            _tile_1(a, start + i * row, *given, c_start + i * c_row + j, c_row, adds)
