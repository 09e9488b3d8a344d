#include "mesh.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace hamflow {

namespace {

struct Corner {
    double x, y;           // in the image
    double u, v;           // in the grid
    double inverse_depth;  // 0 if it is too near or behind the camera
};

// The places to look at, sorted by the pixel that they are in.
class Places {
public:
    Places(std::size_t n, const float* x, const float* y) {
        if (n == 0) return;
        const auto [left, right] = std::minmax_element(x, x + n);
        const auto [top, bottom] = std::minmax_element(y, y + n);
        left_ = cell(*left);
        top_ = cell(*top);
        columns_ = cell(*right) - left_ + 1;
        rows_ = cell(*bottom) - top_ + 1;
        std::vector<std::uint32_t> where(n);
        starts_.assign(static_cast<std::size_t>(columns_) * rows_ + 1, 0);
        for (std::size_t i = 0; i < n; ++i) {
            where[i] = static_cast<std::uint32_t>(cell(y[i]) - top_) * columns_ + cell(x[i]) - left_;
            ++starts_[where[i] + 1];
        }
        for (std::size_t i = 1; i < starts_.size(); ++i) starts_[i] += starts_[i - 1];
        std::vector<std::uint32_t> next(starts_.begin(), starts_.end() - 1);
        sorted_.resize(n);
        for (std::size_t i = 0; i < n; ++i)
            sorted_[next[where[i]]++] = static_cast<std::uint32_t>(i);
    }

    // visit(i) for all places in the pixels that a box touches.
    template <class Visit>
    void within(double left, double top, double right, double bottom, const Visit& visit) const {
        const auto clip = [](double place, int first, int count) {
            return static_cast<int>(std::clamp(std::floor(place) - first, -1.0, count + 0.0));
        };
        const int first = std::max(clip(left, left_, columns_), 0);
        const int last = std::min(clip(right, left_, columns_), columns_ - 1);
        const int end = std::min(clip(bottom, top_, rows_), rows_ - 1);
        if (first > last) return;
        for (int row = std::max(clip(top, top_, rows_), 0); row <= end; ++row) {
            const std::size_t start = static_cast<std::size_t>(row) * columns_;
            for (std::uint32_t k = starts_[start + first]; k < starts_[start + last + 1]; ++k)
                visit(sorted_[k]);
        }
    }

private:
    static int cell(float place) { return static_cast<int>(std::floor(place)); }

    int left_ = 0, top_ = 0, columns_ = 0, rows_ = 0;
    std::vector<std::uint32_t> starts_, sorted_;
};

std::vector<Corner> projected(const Mesh& mesh) {
    std::vector<Corner> corners;
    corners.reserve(static_cast<std::size_t>(mesh.rows) * mesh.columns);
    const double* p = mesh.points;
    for (int row = 0; row < mesh.rows; ++row) {
        for (int column = 0; column < mesh.columns; ++column, p += 3) {
            Corner corner{0, 0, static_cast<double>(column), static_cast<double>(row), 0};
            if (p[2] >= mesh.near) {
                corner.inverse_depth = 1 / p[2];
                corner.x = mesh.focal * p[0] / p[2] + mesh.center_x;
                corner.y = mesh.focal * p[1] / p[2] + mesh.center_y;
            }
            corners.push_back(corner);
        }
    }
    return corners;
}

}  // namespace

void trace(const Mesh& mesh, std::size_t n, const float* x, const float* y, float* u, float* v,
           float* inverse_depth) {
    std::fill(inverse_depth, inverse_depth + n, 0.0f);
    std::fill(u, u + n, 0.0f);
    std::fill(v, v + n, 0.0f);
    const Places places(n, x, y);
    const std::vector<Corner> corners = projected(mesh);
    // So that no ray slips through between two triangles.
    constexpr double tolerance = -1e-9;

    const auto triangle = [&](const Corner& a, const Corner& b, const Corner& c) {
        if (a.inverse_depth == 0 || b.inverse_depth == 0 || c.inverse_depth == 0) return;
        const double area = (b.x - a.x) * (c.y - a.y) - (c.x - a.x) * (b.y - a.y);
        // Also if a corner is NaN or so far away that its products overflow.
        if (!std::isfinite(area) || area == 0) return;
        const double per_area = 1 / area;
        const auto [left, right] = std::minmax({a.x, b.x, c.x});
        const auto [top, bottom] = std::minmax({a.y, b.y, c.y});
        places.within(left, top, right, bottom, [&](std::size_t i) {
            // Shares of the corners in the image, then in space.
            const double dx = x[i] - a.x, dy = y[i] - a.y;
            double of_b = (dx * (c.y - a.y) - (c.x - a.x) * dy) * per_area;
            if (of_b < tolerance) return;
            double of_c = ((b.x - a.x) * dy - dx * (b.y - a.y)) * per_area;
            if (of_c < tolerance) return;
            double of_a = 1 - of_b - of_c;
            if (of_a < tolerance) return;
            of_a *= a.inverse_depth;
            of_b *= b.inverse_depth;
            of_c *= c.inverse_depth;
            const double sum = of_a + of_b + of_c;
            if (!(static_cast<float>(sum) > inverse_depth[i])) return;
            inverse_depth[i] = static_cast<float>(sum);
            const double depth = 1 / sum;
            u[i] = static_cast<float>((of_a * a.u + of_b * b.u + of_c * c.u) * depth);
            v[i] = static_cast<float>((of_a * a.v + of_b * b.v + of_c * c.v) * depth);
        });
    };
    for (int row = 0; row + 1 < mesh.rows; ++row) {
        for (int column = 0; column + 1 < mesh.columns; ++column) {
            const Corner* upper = &corners[static_cast<std::size_t>(row) * mesh.columns + column];
            const Corner* lower = upper + mesh.columns;
            triangle(upper[0], upper[1], lower[0]);
            triangle(lower[1], upper[1], lower[0]);
        }
    }
}

void mesh_lanes(const Mesh& mesh, const Texels& texels, int side, std::size_t n, const float* x,
                const float* y, std::uint16_t* lanes) {
    const std::size_t rays = static_cast<std::size_t>(side) * side;
    std::vector<float> at_x(n * rays), at_y(n * rays), u(n * rays), v(n * rays), met(n * rays);
    for (std::size_t i = 0, k = 0; i < n; ++i) {
        for (int row = -(side / 2); row <= side / 2; ++row) {
            for (int column = -(side / 2); column <= side / 2; ++column, ++k) {
                at_x[k] = x[i] + static_cast<float>(column) / side;
                at_y[k] = y[i] + static_cast<float>(row) / side;
            }
        }
    }
    trace(mesh, n * rays, at_x.data(), at_y.data(), u.data(), v.data(), met.data());
    const float across = static_cast<float>(texels.width - 1) / (mesh.columns - 1);
    const float down = static_cast<float>(texels.height - 1) / (mesh.rows - 1);
    for (std::size_t i = 0; i < n; ++i) {
        float color[3] = {}, coverage = 0;
        for (std::size_t k = i * rays; k < (i + 1) * rays; ++k) {
            if (met[k] == 0) continue;
            const float place_x = u[k] * across, place_y = v[k] * down;
            std::uint16_t seen[4];
            look_up(texels, 1, &place_x, &place_y, seen);
            for (int c = 0; c < 3; ++c) color[c] += static_cast<float>(seen[c]) * seen[3];
            coverage += seen[3];
        }
        for (int c = 0; c < 3; ++c)
            lanes[4 * i + c] = static_cast<std::uint16_t>(coverage > 0 ? color[c] / coverage : 0);
        lanes[4 * i + 3] = static_cast<std::uint16_t>(coverage / static_cast<float>(rays));
    }
}

}  // namespace hamflow
