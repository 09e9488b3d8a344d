// Robust fits of affine models to matches, sixteen matches at a time: see affine.hpp.

// A model seen from a seed: values there, and slopes.
struct Local {
    Floats u, ux, uy, v, vx, vy;

    HAMFLOW_INLINE Local(const Affine& a, const Neighborhood& n)
        : u(a.u_at(n.cx, n.cy)), ux(a.ux), uy(a.uy), v(a.v_at(n.cx, n.cy)), vx(a.vx), vy(a.vy) {}

    HAMFLOW_INLINE Floats squared_residual(const Neighborhood& n, int k) const {
        const Floats x = Floats::load(n.x + k), y = Floats::load(n.y + k);
        const Floats du = Floats::load(n.u + k) - (u + ux * x + uy * y);
        const Floats dv = Floats::load(n.v + k) - (v + vx * x + vy * y);
        return du * du + dv * dv;
    }
};

// Of a model for the neighborhood of a seed: truncated, as an outlier is an outlier.
float affine_cost(const Neighborhood& n, const Affine& a) {
    const Local model(a, n);
    const Floats scale(1 / (n.tolerance * n.tolerance)), one(1.0f);
    Floats total(0.0f);
    for (int k = 0; k < n.padded; k += lanes)
        total += Floats::load(n.weight + k) * min(model.squared_residual(n, k) * scale, one);
    return sum(total);
}

// One step of reweighted least squares (Geman-McClure).
HAMFLOW_INLINE Affine affine_refit(const Neighborhood& n, const Affine& before) {
    const Local model(before, n);
    const Floats scale(1 / (n.tolerance * n.tolerance)), one(1.0f), zero(0.0f);
    Floats w0 = zero, wx = zero, wy = zero, wu = zero, wv = zero, xx = zero, xy = zero, yy = zero,
           xu = zero, yu = zero, xv = zero, yv = zero;
    for (int k = 0; k < n.padded; k += lanes) {
        const Floats x = Floats::load(n.x + k), y = Floats::load(n.y + k);
        // From the value at the seed: products of large numbers would lose digits.
        const Floats u = Floats::load(n.u + k) - model.u, v = Floats::load(n.v + k) - model.v;
        const Floats du = u - (model.ux * x + model.uy * y), dv = v - (model.vx * x + model.vy * y);
        const Floats ratio = one + (du * du + dv * dv) * scale;
        const Floats w = Floats::load(n.weight + k) / (ratio * ratio);
        const Floats x_w = x * w, y_w = y * w;
        w0 += w, wx += x_w, wy += y_w, wu += w * u, wv += w * v;
        xx += x_w * x, xy += x_w * y, yy += y_w * y;
        xu += x_w * u, yu += y_w * u, xv += x_w * v, yv += y_w * v;
    }
    const double w = sum(w0);
    if (!(w > 1e-30)) return before;
    const double mx = sum(wx) / w, my = sum(wy) / w, mu = sum(wu) / w, mv = sum(wv) / w;
    // A little in favor of a plain shift: few or collinear seeds say nothing about slopes.
    constexpr double flatness = 4.0;  // in square pixels
    const double sxx = sum(xx) / w - mx * mx + flatness, sxy = sum(xy) / w - mx * my,
                 syy = sum(yy) / w - my * my + flatness;
    const double sxu = sum(xu) / w - mx * mu, syu = sum(yu) / w - my * mu,
                 sxv = sum(xv) / w - mx * mv, syv = sum(yv) / w - my * mv;
    const double scale_back = 1 / (sxx * syy - sxy * sxy);
    Affine a;
    a.cx = static_cast<float>(n.cx + mx), a.cy = static_cast<float>(n.cy + my);
    a.u = static_cast<float>(before.u_at(n.cx, n.cy) + mu);
    a.v = static_cast<float>(before.v_at(n.cx, n.cy) + mv);
    a.ux = static_cast<float>((syy * sxu - sxy * syu) * scale_back);
    a.uy = static_cast<float>((sxx * syu - sxy * sxu) * scale_back);
    a.vx = static_cast<float>((syy * sxv - sxy * syv) * scale_back);
    a.vy = static_cast<float>((sxx * syv - sxy * sxv) * scale_back);
    return a;
}

Affine affine_fit(const Neighborhood& n, const Affine& start) {
    Affine a = start;
    for (int iteration = 0; iteration < 4; ++iteration) a = affine_refit(n, a);
    return a;
}

// A shift that many agree on: of the matches nearby the one with the smallest cost.
Affine affine_start(const Neighborhood& n) {
    Affine best;
    best.cx = n.cx, best.cy = n.cy;
    float least_cost = -1;
    for (int k = 0; k < (n.count < 12 ? n.count : 12); ++k) {
        Affine a = best;
        a.u = n.u[k], a.v = n.v[k];
        const float cost = affine_cost(n, a);
        if (k == 0 || cost < least_cost) least_cost = cost, best = a;
    }
    return best;
}

// The number of the smallest of some values, which are padded to whole vectors by larger ones.
int smallest(const float* values, int count) {
    Floats best = Floats::load(values);
    for (int k = lanes; k < count; k += lanes) best = min(best, Floats::load(values + k));
    const Floats least_of_all(least(best));
    for (int k = 0;; k += lanes) {
        const std::uint32_t above = bits_of(least_of_all < Floats::load(values + k));
        if (above != 0xffff) return k + __builtin_ctz(~above);
    }
}
