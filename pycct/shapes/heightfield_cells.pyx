# cython: language_level=3
"""Triangles of a grid of heights. See the header."""
from libc.math cimport fabs, floor
from libc.stdlib cimport free, malloc

from pycct.geometry.closest cimport triangle_normal
from pycct.spatial.bvh cimport box32, box32_around, bvh_build, bvh_node
from pycct.geometry.types cimport STATUS_NO_MEMORY
from pycct.geometry.vec cimport box_of, box_union, v3, v3_lex, v3_max, v3_min

# A cell counts as near within this margin, in shares of a cell, because the division by the step
# may round either way.
cdef double CELL_MARGIN = 1e-6


cdef vec3 field_point(const field_data* f, int32_t i, int32_t j) noexcept nogil:
    cdef double h = f.heights[<Py_ssize_t>i * f.columns + j]
    if f.rows_along_y:
        return v3(j * f.column_step, i * f.row_step, h)
    return v3(i * f.row_step, j * f.column_step, h)


cdef inline bint _inside(const field_data* f, double height) noexcept nogil:
    return f.bounds.lo.z <= height <= f.bounds.hi.z


cdef bint field_check_tile(const void* field, int32_t place) noexcept nogil:
    cdef const field_data* f = <const field_data*>field
    return 0 <= f.tree.order[place] < f.tree.n_items


cdef bint field_triangle(const field_data* f, int32_t i, int32_t j, int which, vec3* a, vec3* b,
                         vec3* c) noexcept nogil:
    cdef uint8_t cell = f.diagonal if f.cells == NULL else f.cells[<Py_ssize_t>i * (f.columns - 1) + j]
    cdef vec3 p, q, r, t
    if cell & 2:
        return False
    # Counter-clockwise from above if rows run along x and columns along y.
    if cell & 1:
        if which == 0:
            p, q, r = field_point(f, i, j), field_point(f, i + 1, j), field_point(f, i, j + 1)
        else:
            p, q, r = field_point(f, i + 1, j), field_point(f, i + 1, j + 1), field_point(f, i, j + 1)
    elif which == 0:
        p, q, r = field_point(f, i, j), field_point(f, i + 1, j), field_point(f, i + 1, j + 1)
    else:
        p, q, r = field_point(f, i, j), field_point(f, i + 1, j + 1), field_point(f, i, j + 1)
    if f.checked and not (_inside(f, p.z) and _inside(f, q.z) and _inside(f, r.z)):
        return False
    if f.rows_along_y:
        t = q
        q = r
        r = t
    if v3_lex(q, p) < 0 and v3_lex(q, r) <= 0:
        t = p
        p = q
        q = r
        r = t
    elif v3_lex(r, p) < 0:
        t = r
        r = q
        q = p
        p = t
    a[0], b[0], c[0] = p, q, r
    return True


cdef inline int32_t _cell_at(double x, double step, int32_t cells) noexcept nogil:
    """The last cell that begins at or below x, which is within the cells."""
    cdef int32_t i = <int32_t>(x / step)
    while i > 0 and i * step > x:
        i -= 1
    while i < cells and (i + 1) * step <= x:
        i += 1
    return i if i < cells else cells - 1


cdef bint field_sample(const field_data* f, double x, double y, double* height, vec3* normal) noexcept nogil:
    cdef double row = y if f.rows_along_y else x, column = x if f.rows_along_y else y, u, v, h00, h01, h10, h11
    cdef const double* h
    cdef int32_t i, j
    cdef uint8_t cell
    cdef int which
    cdef vec3 a, b, c
    if not (0.0 <= row <= (f.rows - 1) * f.row_step and 0.0 <= column <= (f.columns - 1) * f.column_step):
        return False
    i, j = _cell_at(row, f.row_step, f.rows - 1), _cell_at(column, f.column_step, f.columns - 1)
    u, v = (row - i * f.row_step) / f.row_step, (column - j * f.column_step) / f.column_step
    cell = f.diagonal if f.cells == NULL else f.cells[<Py_ssize_t>i * (f.columns - 1) + j]
    which = (1 if u + v > 1.0 else 0) if cell & 1 else (0 if u >= v else 1)
    if not field_triangle(f, i, j, which, &a, &b, &c):
        return False
    h = f.heights + <Py_ssize_t>i * f.columns + j
    h00, h01, h10, h11 = h[0], h[1], h[f.columns], h[f.columns + 1]
    if cell & 1:
        if which == 0:
            height[0] = h00 + u * (h10 - h00) + v * (h01 - h00)
        else:
            height[0] = h11 + (1.0 - u) * (h01 - h11) + (1.0 - v) * (h10 - h11)
    elif which == 0:
        height[0] = h00 + u * (h10 - h00) + v * (h11 - h10)
    else:
        height[0] = h00 + v * (h01 - h00) + u * (h11 - h01)
    normal[0] = triangle_normal(a, b, c)
    return True


cdef inline bint _range(double lo, double hi, double step, int32_t cells, int32_t* first, int32_t* last) noexcept nogil:
    cdef double x = floor(lo / step - CELL_MARGIN), y = floor(hi / step + CELL_MARGIN)
    if not (y >= 0.0 and x < cells):
        return False
    first[0] = <int32_t>x if x > 0.0 else 0
    last[0] = <int32_t>y if y < cells - 1 else cells - 1
    return True


cdef bint field_cells(const field_data* f, aabb box, int32_t* i0, int32_t* i1, int32_t* j0,
                      int32_t* j1) noexcept nogil:
    if box.lo.z > f.bounds.hi.z or box.hi.z < f.bounds.lo.z:
        return False
    if f.rows_along_y:
        return (_range(box.lo.y, box.hi.y, f.row_step, f.rows - 1, i0, i1)
                and _range(box.lo.x, box.hi.x, f.column_step, f.columns - 1, j0, j1))
    return (_range(box.lo.x, box.hi.x, f.row_step, f.rows - 1, i0, i1)
            and _range(box.lo.y, box.hi.y, f.column_step, f.columns - 1, j0, j1))


cdef void field_tile(const field_data* f, int32_t tile, int32_t* i0, int32_t* i1, int32_t* j0,
                     int32_t* j1) noexcept nogil:
    i0[0] = tile // f.tile_columns * FIELD_TILE
    j0[0] = tile % f.tile_columns * FIELD_TILE
    i1[0] = i0[0] + FIELD_TILE - 1
    j1[0] = j0[0] + FIELD_TILE - 1
    if i1[0] > f.rows - 2:
        i1[0] = f.rows - 2
    if j1[0] > f.columns - 2:
        j1[0] = f.columns - 2


cdef inline float _low(double x) noexcept nogil:
    """A float below x: walks need many, and exact rounding takes longer than the tests of boxes."""
    return <float>(x - fabs(x) * 1.2e-7 - 1e-37)


cdef inline float _high(double x) noexcept nogil:
    return <float>(x + fabs(x) * 1.2e-7 + 1e-37)


cdef void field_tile_boxes(const field_data* f, int32_t i0, int32_t i1, int32_t j0, int32_t j1,
                           bvh_node* boxes) noexcept nogil:
    cdef float[FIELD_TILE + 1] lo           # of the samples of two rows, column by column
    cdef float[FIELD_TILE + 1] hi
    cdef int row_axis = 1 if f.rows_along_y else 0, column_axis = 0 if f.rows_along_y else 1
    cdef int32_t i, j, lane
    cdef const double* h
    cdef const double* g
    cdef float x, y
    cdef bvh_node* node
    for i in range(FIELD_TILE):
        node = &boxes[i // 2]
        lane = i % 2 * FIELD_TILE
        if i0 + i > i1:
            for j in range(FIELD_TILE):
                node.lo[2][lane + j] = <float>3e38
                node.hi[2][lane + j] = <float>-3e38
                node.lo[0][lane + j] = node.lo[1][lane + j] = <float>3e38
                node.hi[0][lane + j] = node.hi[1][lane + j] = <float>-3e38
            continue
        h = f.heights + <Py_ssize_t>(i0 + i) * f.columns + j0
        g = h + f.columns
        for j in range(j1 - j0 + 2):
            lo[j] = _low(h[j] if h[j] < g[j] else g[j])
            hi[j] = _high(h[j] if h[j] > g[j] else g[j])
        x = _low((i0 + i) * f.row_step)
        y = _high((i0 + i + 1) * f.row_step)
        for j in range(FIELD_TILE):
            if j0 + j > j1:
                node.lo[0][lane + j] = node.lo[1][lane + j] = node.lo[2][lane + j] = <float>3e38
                node.hi[0][lane + j] = node.hi[1][lane + j] = node.hi[2][lane + j] = <float>-3e38
                continue
            node.lo[row_axis][lane + j] = x
            node.hi[row_axis][lane + j] = y
            node.lo[column_axis][lane + j] = _low((j0 + j) * f.column_step)
            node.hi[column_axis][lane + j] = _high((j0 + j + 1) * f.column_step)
            node.lo[2][lane + j] = lo[j] if lo[j] < lo[j + 1] else lo[j + 1]
            node.hi[2][lane + j] = hi[j] if hi[j] > hi[j + 1] else hi[j + 1]


cdef int field_build(field_data* f) noexcept nogil:
    cdef int32_t tile_rows = field_tile_columns(f.rows)
    cdef int32_t n, tile, i, j, i0, i1, j0, j1
    cdef box32* boxes
    cdef aabb box
    cdef vec3 p
    cdef int status
    f.tile_columns = field_tile_columns(f.columns)
    f.checked = False
    n = tile_rows * f.tile_columns
    boxes = <box32*>malloc(<size_t>n * sizeof(box32))
    if boxes == NULL:
        return STATUS_NO_MEMORY
    f.bounds = box_of(field_point(f, 0, 0), field_point(f, f.rows - 1, f.columns - 1))
    f.bounds = box_of(v3_min(f.bounds.lo, f.bounds.hi), v3_max(f.bounds.lo, f.bounds.hi))
    for tile in range(n):
        field_tile(f, tile, &i0, &i1, &j0, &j1)
        p = field_point(f, i0, j0)
        box = box_of(p, p)
        for i in range(i0, i1 + 2):
            for j in range(j0, j1 + 2):
                p = field_point(f, i, j)
                box = box_union(box, box_of(p, p))
        f.bounds = box_union(f.bounds, box)
        boxes[tile] = box32_around(box)
    status = bvh_build(&f.tree, boxes, n)
    free(boxes)
    return status
