/* The walks of wide8.h for one instruction set: W8_V is the type of eight floats, W8_F names what is
   of this set, W8_TARGET is what the compiler must be told. No include guard: included once a set. */

/* What a box can lose to the rounding of its slabs, as a factor. */
#define W8_LOOSE 1.000001f

/* Which children the moving box touches by ``limit``, and when. */
W8_INLINE W8_TARGET unsigned W8_F(touched)(const w8_walk *w, const w8_node *n, float limit, float *when) {
    W8_V enter = W8_F(set)(0.0f), leave = W8_F(set)(limit);
    int k;
    for (k = 0; k < 3; k++) {
        W8_V inverse = W8_F(set)(w->inverse[k]);
        const float *from = w->negative[k] ? n->hi[k] : n->lo[k], *to = w->negative[k] ? n->lo[k] : n->hi[k];
        W8_V a = W8_F(mul)(W8_F(sub)(W8_F(load)(from), W8_F(set)(w->enter[k])), inverse);
        W8_V b = W8_F(mul)(W8_F(sub)(W8_F(load)(to), W8_F(set)(w->leave[k])), inverse);
        enter = W8_F(max)(enter, a);
        leave = W8_F(min)(leave, b);
    }
    W8_F(store)(when, enter);
    return W8_F(le)(enter, W8_F(mul)(leave, W8_F(set)(W8_LOOSE)));
}

/* Which children are no farther away than the root of ``limit``, and how far, squared. */
W8_INLINE W8_TARGET unsigned W8_F(close)(const w8_walk *w, const w8_node *n, float limit, float *when) {
    W8_V sum = W8_F(set)(0.0f), zero = sum;
    int k;
    for (k = 0; k < 3; k++) {
        W8_V a = W8_F(sub)(W8_F(load)(n->lo[k]), W8_F(set)(w->enter[k]));
        W8_V b = W8_F(sub)(W8_F(set)(w->leave[k]), W8_F(load)(n->hi[k]));
        W8_V gap = W8_F(max)(W8_F(max)(a, b), zero);
        sum = W8_F(add)(sum, W8_F(mul)(gap, gap));
    }
    sum = W8_F(mul)(sum, W8_F(set)(1.0f / W8_LOOSE));
    W8_F(store)(when, sum);
    return W8_F(le)(sum, W8_F(set)(limit));
}

/* What a walk reads in every node, in registers: the planes where the box enters and leaves. */
typedef struct {
    W8_V enter[3], leave[3], inverse[3];
    int from[3], to[3];         /* the near and the far plane of each axis, in floats from the node */
} W8_F(slabs);

W8_INLINE W8_TARGET void W8_F(slabs_of)(W8_F(slabs) *s, const w8_walk *w) {
    int k;
    for (k = 0; k < 3; k++) {
        s->enter[k] = W8_F(set)(w->enter[k]);
        s->leave[k] = W8_F(set)(w->leave[k]);
        s->inverse[k] = W8_F(set)(w->inverse[k]);
        s->from[k] = W8_LANES * (w->negative[k] ? 3 + k : k);
        s->to[k] = W8_LANES * (w->negative[k] ? k : 3 + k);
    }
}

/* `touched` with the numbers of the walk in registers. */
W8_INLINE W8_TARGET unsigned W8_F(touched_by)(const W8_F(slabs) *s, const w8_node *n, float limit, float *when) {
    const float *planes = (const float *)n;
    W8_V enter = W8_F(set)(0.0f), leave = W8_F(set)(limit);
    int k;
    for (k = 0; k < 3; k++) {
        enter = W8_F(max)(enter, W8_F(mul)(W8_F(sub)(W8_F(load)(planes + s->from[k]), s->enter[k]), s->inverse[k]));
        leave = W8_F(min)(leave, W8_F(mul)(W8_F(sub)(W8_F(load)(planes + s->to[k]), s->leave[k]), s->inverse[k]));
    }
    W8_F(store)(when, enter);
    return W8_F(le)(enter, W8_F(mul)(leave, W8_F(set)(W8_LOOSE)));
}

/* The next leaf: its places, all of them inside the tree. ``limit`` as float32 (squared for near walks);
   ``blocks``: those of the leaves, which are fetched early, or NULL. */
W8_INLINE W8_TARGET int W8_F(leaf)(w8_walk *w, float limit, int32_t *first, int32_t *last, const w8_block *blocks,
                                   int checked, int near) {
    float when[W8_LANES];
    W8_F(slabs) slabs;
    if (!near)
        W8_F(slabs_of)(&slabs, w);
    while (w->top > 0) {
        w8_entry e = w->entries[--w->top];
        if (e.when > limit)
            continue;
        while (e.count == 0) {
            const w8_node *n = w->nodes + e.node;
            unsigned mask = near ? W8_F(close)(w, n, limit, when) : W8_F(touched_by)(&slabs, n, limit, when);
            int base = w->top, top = base, i, k;
            int32_t parent = e.node;
            if (checked && --w->left < 0)
                return 0;
            e.count = -1;
            if (!checked && mask && !(mask & (mask - 1))) {
                /* An only child needs no stack. */
                i = w8_lowest(mask);
                e.when = when[i];
                e.node = n->child[i];
                e.count = n->count[i];
                continue;
            }
            while (mask) {
                w8_entry c;
                i = w8_lowest(mask);
                mask &= mask - 1;
                c.when = when[i];
                c.node = n->child[i];
                c.count = n->count[i];
                if (c.count < 0)
                    continue;
                if (c.count == 0)
                    W8_FETCH(w->nodes + c.node);
                else if (blocks)
                    W8_FETCH(blocks + c.node / W8_LANES);
                if (checked) {
                    /* Children are numbered after their parents: no way leads in a circle. */
                    if (top == W8_STACK)
                        return 0;
                    if (c.count == 0 ? !(parent < c.node && c.node < w->n_nodes)
                                     : !(0 <= c.node && c.node < w->n_items && c.count <= w->n_items - c.node))
                        continue;
                }
                /* The nearest on top. */
                for (k = top; k > base && w->entries[k - 1].when < c.when; k--)
                    w->entries[k] = w->entries[k - 1];
                w->entries[k] = c;
                top++;
            }
            if (top > base)
                e = w->entries[--top];
            w->top = top;
        }
        if (e.count > 0) {
            *first = e.node;
            *last = e.node + e.count;
            return 1;
        }
    }
    return 0;
}

/* The next leaf, or what is left of one. */
W8_INLINE W8_TARGET int W8_F(run)(w8_walk *w, float limit, const w8_block *blocks) {
    if (w->run < w->run_end)
        return 1;
    if (w->check)
        return w->near ? W8_F(leaf)(w, limit, &w->run, &w->run_end, NULL, 1, 1)
                       : W8_F(leaf)(w, limit, &w->run, &w->run_end, NULL, 1, 0);
    return w->near ? W8_F(leaf)(w, limit, &w->run, &w->run_end, blocks, 0, 1)
                   : W8_F(leaf)(w, limit, &w->run, &w->run_end, blocks, 0, 0);
}

/* The same for a ray. */
W8_INLINE W8_TARGET int W8_F(run_ray)(w8_walk *w, float limit, const w8_block *blocks) {
    if (w->run < w->run_end)
        return 1;
    return w->check ? W8_F(leaf)(w, limit, &w->run, &w->run_end, NULL, 1, 0)
                    : W8_F(leaf)(w, limit, &w->run, &w->run_end, blocks, 0, 0);
}

static W8_TARGET int W8_F(walk_next)(w8_walk *w, double limit, int32_t *first, int32_t *count) {
    float bound = w->near ? w8_up2(limit / w->factor) : w8_up(limit);
    while (W8_F(run)(w, bound, NULL)) {
        if (!w->check) {
            *first = w->run;
            *count = w->run_end - w->run;
            w->run = w->run_end;
            return 1;
        }
        while (w->run < w->run_end && !w->check(w->owner, w->run))
            w->run++;
        *first = w->run;
        while (w->run < w->run_end && w->check(w->owner, w->run))
            w->run++;
        *count = w->run - *first;
        if (*count > 0)
            return 1;
    }
    return 0;
}

/* The lanes of a block that a run of places takes up; the run goes on behind them. */
W8_INLINE W8_TARGET unsigned W8_F(lanes)(w8_walk *w, int32_t *first) {
    int32_t block = w->run / W8_LANES, begin = w->run % W8_LANES;
    int32_t end = w->run_end - block * W8_LANES;
    if (end > W8_LANES)
        end = W8_LANES;
    *first = block * W8_LANES;
    w->run = *first + end;
    return (1u << end) - (1u << begin);
}

W8_INLINE W8_TARGET unsigned W8_F(checked)(const w8_walk *w, int32_t first, unsigned bits) {
    unsigned left;
    if (w->check)
        for (left = bits; left; left &= left - 1)
            if (!w->check(w->owner, first + w8_lowest(left)))
                bits &= ~(1u << w8_lowest(left));
    return bits;
}

/* Triangles of a block that a ray may meet. Each corner is sheared along the ray, as the exact test
   does it; what it may be off by there is ``off``, so that an edge function (a difference of products
   of two such numbers) is off by no more than ``slack``. */
W8_INLINE W8_TARGET unsigned W8_F(ray)(const w8_ray *r, const w8_block *b, double limit) {
    double per = b->per;
    float ox = (float)((r->origin[r->kx] - b->base[r->kx]) * per), oy = (float)((r->origin[r->ky] - b->base[r->ky]) * per);
    float oz = (float)((r->origin[r->kz] - b->base[r->kz]) * per);
    float far = fabsf(ox) > fabsf(oy) ? fabsf(ox) : fabsf(oy);
    float off, reach;
    W8_V zero = W8_F(set)(0.0f), large, slack, u, v, w, most, least, negative;
    W8_V x[3], y[3], z[3];
    unsigned out;
    int c;
    far = (fabsf(oz) > far ? fabsf(oz) : far) + 256.0f;
    off = 1.01f + 6e-7f * far + (float)(2.0 * r->margin * per);
    /* Numbers so large that products would be endless. */
    if (!(far < 1e15f && off < 1e15f))
        return 0xFF;
    large = zero;
    for (c = 0; c < 3; c++) {
        z[c] = W8_F(sub)(W8_F(steps)(b->q[3 * c + r->kz]), W8_F(set)(oz));
        x[c] = W8_F(sub)(W8_F(sub)(W8_F(steps)(b->q[3 * c + r->kx]), W8_F(set)(ox)), W8_F(mul)(W8_F(set)(r->sx), z[c]));
        y[c] = W8_F(sub)(W8_F(sub)(W8_F(steps)(b->q[3 * c + r->ky]), W8_F(set)(oy)), W8_F(mul)(W8_F(set)(r->sy), z[c]));
        large = W8_F(max)(large, W8_F(max)(W8_F(max)(x[c], W8_F(sub)(zero, x[c])), W8_F(max)(y[c], W8_F(sub)(zero, y[c]))));
    }
    u = W8_F(sub)(W8_F(mul)(x[1], y[2]), W8_F(mul)(y[1], x[2]));
    v = W8_F(sub)(W8_F(mul)(x[2], y[0]), W8_F(mul)(y[2], x[0]));
    w = W8_F(sub)(W8_F(mul)(x[0], y[1]), W8_F(mul)(y[0], x[1]));
    slack = W8_F(add)(W8_F(mul)(large, W8_F(add)(W8_F(set)(4.1f * off), W8_F(mul)(large, W8_F(set)(3e-7f)))),
                      W8_F(set)(2.1f * off * off));
    negative = W8_F(sub)(zero, slack);
    most = W8_F(max)(W8_F(max)(u, v), w);
    /* A lane stays unless it is certainly out. */
    out = W8_F(le)(most, slack);
    if (!r->front_only) {
        least = W8_F(min)(W8_F(min)(u, v), w);
        out |= W8_F(le)(negative, least);
    }
    /* Behind the origin, or beyond the limit, along the largest axis. */
    for (c = 0; c < 3; c++)
        z[c] = W8_F(mul)(z[c], W8_F(set)(r->forward));
    reach = w8_up(limit * r->reach * per) * W8_LOOSE + off;
    out &= W8_F(le)(W8_F(set)(-off), W8_F(max)(W8_F(max)(z[0], z[1]), z[2]));
    out &= W8_F(le)(W8_F(min)(W8_F(min)(z[0], z[1]), z[2]), W8_F(set)(reach));
    return out;
}

static W8_TARGET int W8_F(walk_ray)(w8_walk *w, const w8_ray *ray, const w8_block *blocks, double limit, int32_t *first,
                                    uint32_t *bits) {
    float bound = w8_up(limit);
    while (W8_F(run_ray)(w, bound, blocks)) {
        unsigned lanes = W8_F(lanes)(w, first);
        lanes &= W8_F(ray)(ray, blocks + *first / W8_LANES, limit);
        *bits = W8_F(checked)(w, *first, lanes);
        if (*bits)
            return 1;
    }
    return 0;
}

/* Triangles of a block whose box the moving box touches by a limit, or that are no farther than it. */
W8_INLINE W8_TARGET unsigned W8_F(boxes)(const w8_walk *w, const w8_block *b, double limit) {
    double per = b->per;
    W8_V one = W8_F(set)(1.0f), zero = W8_F(set)(0.0f), enter = zero, leave = zero, sum = zero;
    int k;
    if (!w->near)
        leave = W8_F(set)(w8_up(limit * per));
    for (k = 0; k < 3; k++) {
        W8_V p = W8_F(steps)(b->q[k]), q = W8_F(steps)(b->q[3 + k]), r = W8_F(steps)(b->q[6 + k]);
        W8_V lo = W8_F(sub)(W8_F(min)(W8_F(min)(p, q), r), one), hi = W8_F(add)(W8_F(max)(W8_F(max)(p, q), r), one);
        W8_V above = W8_F(set)(w8_up((w->above[k] - b->base[k]) * per));
        W8_V below = W8_F(set)(w8_down((w->below[k] - b->base[k]) * per));
        if (w->near) {
            W8_V gap = W8_F(max)(W8_F(max)(W8_F(sub)(lo, above), W8_F(sub)(below, hi)), zero);
            sum = W8_F(add)(sum, W8_F(mul)(gap, gap));
        } else {
            W8_V inverse = W8_F(set)(w->inverse[k]);
            W8_V from = w->negative[k] ? W8_F(sub)(hi, below) : W8_F(sub)(lo, above);
            W8_V to = w->negative[k] ? W8_F(sub)(lo, above) : W8_F(sub)(hi, below);
            enter = W8_F(max)(enter, W8_F(mul)(from, inverse));
            leave = W8_F(min)(leave, W8_F(mul)(to, inverse));
        }
    }
    if (w->near)
        return W8_F(le)(W8_F(mul)(sum, W8_F(set)(1.0f / W8_LOOSE)), W8_F(set)(w8_up2(limit / w->factor * per)));
    return W8_F(le)(enter, W8_F(mul)(leave, W8_F(set)(W8_LOOSE)));
}

static W8_TARGET int W8_F(walk_box)(w8_walk *w, const w8_block *blocks, double limit, int32_t *first, uint32_t *bits) {
    float bound = w->near ? w8_up2(limit / w->factor) : w8_up(limit);
    while (W8_F(run)(w, bound, blocks)) {
        unsigned lanes = W8_F(lanes)(w, first);
        lanes &= W8_F(boxes)(w, blocks + *first / W8_LANES, limit);
        *bits = W8_F(checked)(w, *first, lanes);
        if (*bits)
            return 1;
    }
    return 0;
}

/* Which boxes of a node that is in no tree the moving box touches by a limit, or is no farther from. */
static W8_TARGET unsigned W8_F(walk_mask)(const w8_walk *w, const w8_node *node, double limit) {
    float when[W8_LANES];
    return w->near ? W8_F(close)(w, node, w8_up2(limit / w->factor), when) : W8_F(touched)(w, node, w8_up(limit), when);
}

/* Places of the leaves that a box touches, in a tree that holds no wrong index. */
static W8_TARGET int32_t W8_F(collect)(const w8_node *nodes, const float *lo, const float *hi, int32_t *places,
                                       int32_t capacity) {
    int32_t stack[W8_STACK];
    int32_t found = 0;
    int top = 1;
    W8_V lo0 = W8_F(set)(lo[0]), lo1 = W8_F(set)(lo[1]), lo2 = W8_F(set)(lo[2]), zero = W8_F(set)(0.0f);
    W8_V hi0 = W8_F(set)(hi[0]), hi1 = W8_F(set)(hi[1]), hi2 = W8_F(set)(hi[2]);
    stack[0] = 0;
    while (top > 0) {
        const w8_node *n = nodes + stack[--top];
        /* The sign of a difference is exact. */
        W8_V x = W8_F(max)(W8_F(sub)(W8_F(load)(n->lo[0]), hi0), W8_F(sub)(lo0, W8_F(load)(n->hi[0])));
        W8_V y = W8_F(max)(W8_F(sub)(W8_F(load)(n->lo[1]), hi1), W8_F(sub)(lo1, W8_F(load)(n->hi[1])));
        W8_V z = W8_F(max)(W8_F(sub)(W8_F(load)(n->lo[2]), hi2), W8_F(sub)(lo2, W8_F(load)(n->hi[2])));
        unsigned mask = W8_F(le)(W8_F(max)(W8_F(max)(x, y), z), zero);
        for (; mask; mask &= mask - 1) {
            int i = w8_lowest(mask), j;
            int32_t child = n->child[i], count = n->count[i];
            if (count == 0) {
                W8_FETCH(nodes + child);
                stack[top++] = child;
            }
            for (j = 0; j < count; j++, found++)
                if (found < capacity)
                    places[found] = child + j;
        }
    }
    return found;
}

#undef W8_LOOSE
