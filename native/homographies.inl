// Homographies and how matches agree with them: see planes.hpp.

// Squared residuals of sixteen matches. Near the horizon, and beyond it, motion is bounded.
HAMFLOW_INLINE Floats plane_residual(const PlaneMatches& s, const float* m, int k) {
    const Floats x = Floats::load(s.x + k), y = Floats::load(s.y + k);
    const Floats d = max(Floats(m[6]) * x + Floats(m[7]) * y + Floats(m[8]), Floats(0.1f));
    const Floats scale = Floats(1.0f) / d;
    const Floats du = (Floats(m[0]) * x + Floats(m[1]) * y + Floats(m[2])) * scale -
                      (x + Floats::load(s.u + k));
    const Floats dv = (Floats(m[3]) * x + Floats(m[4]) * y + Floats(m[5])) * scale -
                      (y + Floats::load(s.v + k));
    return du * du + dv * dv;
}

// How many agree, each counted by how well.
float plane_score(const PlaneMatches& s, const float* homography, float tolerance) {
    const Floats scale(1 / (tolerance * tolerance)), one(1.0f), zero(0.0f);
    Floats total = zero;
    for (int k = 0; k < s.padded; k += lanes)
        total += max(one - plane_residual(s, homography, k) * scale, zero);
    return sum(total);
}

// Adds numbers from `first` on where a bit is set; returns the end.
HAMFLOW_INLINE int* add_numbers(std::uint32_t bits, int first, int* to) {
    for (; bits; bits &= bits - 1) *to++ = first + __builtin_ctz(bits);
    return to;
}

// The numbers of those that agree; returns how many.
int plane_members(const PlaneMatches& s, const float* homography, float tolerance, int* members) {
    int* to = members;
    const Floats most(tolerance * tolerance);
    for (int k = 0; k < s.padded; k += lanes)
        to = add_numbers(bits_of(plane_residual(s, homography, k) < most), k, to);
    return static_cast<int>(to - members);
}

// The numbers of those in a window of a size that follow an affine motion; returns how many.
int plane_window(const PlaneMatches& s, float cx, float cy, float size, const float* affine,
                 float tolerance, int* members) {
    int* to = members;
    const float* m = affine;
    const Floats half(size), most(tolerance * tolerance);
    for (int k = 0; k < s.padded; k += lanes) {
        const Floats x = Floats::load(s.x + k), y = Floats::load(s.y + k);
        const Ints near = (abs(x - Floats(cx)) < half) & (abs(y - Floats(cy)) < half);
        if (!bits_of(near)) continue;
        const Floats du = Floats(m[0]) + Floats(m[1]) * x + Floats(m[2]) * y - Floats::load(s.u + k);
        const Floats dv = Floats(m[3]) + Floats(m[4]) * x + Floats(m[5]) * y - Floats::load(s.v + k);
        to = add_numbers(bits_of(near & (du * du + dv * dv < most)), k, to);
    }
    return static_cast<int>(to - members);
}

// The normal equations of one step of reweighted least squares (Geman-McClure). The equations are
// multiplied by the denominator; that of the step before takes it back.
void plane_equations(const PlanePoints& s, const double* g, bool weighted, PlaneEquations& out) {
    constexpr int at_once = lanes / 2;
    const Doubles zero(0.0), one(1.0), scale(weighted ? s.scale * s.scale : 0.0);
    Doubles total = zero, xx = zero, xy = zero, yy = zero, x1 = zero, y1 = zero, s1 = zero;
    Doubles uxx = zero, uxy = zero, uyy = zero, ux = zero, uy = zero, u1 = zero;
    Doubles vxx = zero, vxy = zero, vyy = zero, vx = zero, vy = zero, v1 = zero;
    Doubles qxx = zero, qxy = zero, qyy = zero, qx = zero, qy = zero;
    for (int k = 0; k < s.padded; k += at_once) {
        const Doubles x = Doubles::load(s.x + k), y = Doubles::load(s.y + k);
        const Doubles u = Doubles::load(s.u + k), v = Doubles::load(s.v + k);
        const Doubles d = one + Doubles(g[6]) * x + Doubles(g[7]) * y, d2 = d * d;
        // On the horizon itself residuals are huge, but numbers.
        const Doubles back = one / Doubles::of([&](auto p) HAMFLOW_INLINE_LAMBDA {
            return d2.part[p] < 1e-20 ? NativeDoubles{} + 1e-10 : d.part[p];
        });
        const Doubles du = (Doubles(g[0]) * x + Doubles(g[1]) * y + Doubles(g[2])) * back - u;
        const Doubles dv = (Doubles(g[3]) * x + Doubles(g[4]) * y + Doubles(g[5])) * back - v;
        const Doubles ratio = one + (du * du + dv * dv) * scale;
        const Doubles weight = Doubles::load(s.use + k) / (ratio * ratio);
        const Doubles w = weight / Doubles::of([&](auto p) HAMFLOW_INLINE_LAMBDA {
            return d2.part[p] < 0.01 ? NativeDoubles{} + 0.01 : d2.part[p];
        });
        const Doubles w_x = w * x, w_y = w * y, w_xx = w_x * x, w_xy = w_x * y, w_yy = w_y * y;
        total += weight;
        xx += w_xx, xy += w_xy, yy += w_yy, x1 += w_x, y1 += w_y, s1 += w;
        uxx += w_xx * u, uxy += w_xy * u, uyy += w_yy * u, ux += w_x * u, uy += w_y * u, u1 += w * u;
        vxx += w_xx * v, vxy += w_xy * v, vyy += w_yy * v, vx += w_x * v, vy += w_y * v, v1 += w * v;
        const Doubles q = u * u + v * v;
        qxx += w_xx * q, qxy += w_xy * q, qyy += w_yy * q, qx += w_x * q, qy += w_y * q;
    }
    const double shift[3][3] = {{sum(xx)}, {sum(xy), sum(yy)}, {sum(x1), sum(y1), sum(s1)}};
    for (auto& row : out.a)
        for (double& value : row) value = 0;
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j <= i; ++j) out.a[i][j] = out.a[3 + i][3 + j] = shift[i][j];
    const double row6[] = {-sum(uxx), -sum(uxy), -sum(ux), -sum(vxx), -sum(vxy), -sum(vx), sum(qxx)};
    const double row7[] = {-sum(uxy), -sum(uyy), -sum(uy), -sum(vxy),
                           -sum(vyy), -sum(vy),  sum(qxy), sum(qyy)};
    for (int j = 0; j < 7; ++j) out.a[6][j] = row6[j];
    for (int j = 0; j < 8; ++j) out.a[7][j] = row7[j];
    const double right[] = {sum(ux), sum(uy), sum(u1), sum(vx), sum(vy), sum(v1), -sum(qx), -sum(qy)};
    for (int j = 0; j < 8; ++j) out.b[j] = right[j];
    out.total = sum(total);
}

// The flow of a homography in one row, w x 2.
void plane_motion(const float* m, int y, int w, float* motion) {
    const Floats upper[3] = {Floats(m[1] * static_cast<float>(y) + m[2]),
                             Floats(m[4] * static_cast<float>(y) + m[5]),
                             Floats(m[7] * static_cast<float>(y) + m[8])};
    float count[lanes], u[lanes], v[lanes];
    for (int k = 0; k < lanes; ++k) count[k] = static_cast<float>(k);
    for (int x0 = 0; x0 < w; x0 += lanes) {
        const Floats x = Floats::load(count) + Floats(static_cast<float>(x0));
        const Floats d = max(Floats(m[6]) * x + upper[2], Floats(0.1f));
        const Floats scale = Floats(1.0f) / d;
        ((Floats(m[0]) * x + upper[0]) * scale - x).store(u);
        ((Floats(m[3]) * x + upper[1]) * scale - Floats(static_cast<float>(y))).store(v);
        const int most = w - x0 < lanes ? w - x0 : lanes;
        for (int k = 0; k < most; ++k)
            motion[2 * (x0 + k)] = u[k], motion[2 * (x0 + k) + 1] = v[k];
    }
}
