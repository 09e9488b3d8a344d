#include "seed_graph.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <utility>

#include "threads.hpp"

namespace hamflow {
namespace {

// Pixels by their distance, in buckets that are used again and again: the next one to be expanded
// is at most one longest step farther than the present one. If no step is shorter than a bucket is
// wide, each pixel is expanded once; otherwise some are expanded again.
class Buckets {
   public:
    Buckets(float shortest, float longest) {
        const float width = std::max(shortest, longest / 4096);
        scale_ = width > 0 ? 1 / width : 1.0f;
        buckets_.resize(static_cast<std::size_t>(longest * scale_) + 3);
    }
    void push(float distance, int pixel) {
        buckets_[number(distance) % buckets_.size()].push_back({distance, pixel});
        ++count_;
    }
    template <class Expand>
    void empty(const Expand& expand) {
        for (std::size_t k = 0; count_ > 0; k = k + 1 == buckets_.size() ? 0 : k + 1) {
            std::vector<Entry>& bucket = buckets_[k];
            for (std::size_t e = 0; e < bucket.size(); ++e) {
                const Entry entry = bucket[e];
                expand(entry.distance, entry.pixel);
            }
            count_ -= bucket.size();
            bucket.clear();
        }
    }

   private:
    struct Entry {
        float distance;
        int pixel;
    };
    std::size_t number(float distance) const { return static_cast<std::size_t>(distance * scale_); }
    float scale_;
    std::vector<std::vector<Entry>> buckets_;
    std::size_t count_ = 0;
};

// Distances are not negative, so that their bits have their order.
std::uint64_t key_of(float distance, int seed) {
    std::uint32_t bits;
    std::memcpy(&bits, &distance, sizeof bits);
    return static_cast<std::uint64_t>(bits) << 32 | static_cast<std::uint32_t>(seed);
}
float distance_of(std::uint64_t key) {
    const std::uint32_t bits = static_cast<std::uint32_t>(key >> 32);
    float distance;
    std::memcpy(&distance, &bits, sizeof distance);
    return distance;
}

}  // namespace

SeedGraph::SeedGraph(const Interpolation& p)
    : owner_(static_cast<std::size_t>(p.h) * p.w, -1) {
    find_owners(p);
    find_links(p);
}

// Dijkstra from all seeds at once.
void SeedGraph::find_owners(const Interpolation& p) {
    const std::size_t n = owner_.size();
    float shortest = unreached, longest = 0;
    bool good = true;
    for (const float* steps : {p.right, p.down})
        for (std::size_t i = 0; i < n; ++i) {
            // Negative steps make paths without end; infinite ones and NaN, pixels without an owner.
            good &= steps[i] >= 0 && steps[i] <= 1e20f;
            shortest = std::min(shortest, steps[i]);
            longest = std::max(longest, steps[i]);
        }
    if (!good) throw std::invalid_argument("right, down: steps from 0 to 1e20");
    std::fill_n(p.distance, n, unreached);
    Buckets queue(shortest, longest);
    for (int s = 0; s < p.seeds; ++s) {
        p.distance[p.pixel[s]] = 0;
        owner_[p.pixel[s]] = s;
        queue.push(0.0f, p.pixel[s]);
    }
    queue.empty([&](float distance, int i) {
        if (distance > p.distance[i]) return;
        const int x = i % p.w, y = i / p.w;
        const auto visit = [&](int j, float step) {
            const float there = distance + step;
            if (there < p.distance[j]) {
                p.distance[j] = there;
                owner_[j] = owner_[i];
                queue.push(there, j);
            }
        };
        if (x > 0) visit(i - 1, p.right[i - 1]);
        if (x + 1 < p.w) visit(i + 1, p.right[i]);
        if (y > 0) visit(i - p.w, p.down[i - p.w]);
        if (y + 1 < p.h) visit(i + p.w, p.down[i]);
    });
}

void SeedGraph::find_links(const Interpolation& p) {
    using Link = std::pair<int, float>;
    const auto for_each_border = [&](const auto& use) {
        for (int y = 0; y < p.h; ++y)
            for (int x = 0; x < p.w; ++x) {
                const int i = y * p.w + x;
                if (x + 1 < p.w && owner_[i] != owner_[i + 1]) use(i, i + 1, p.right[i]);
                if (y + 1 < p.h && owner_[i] != owner_[i + p.w]) use(i, i + p.w, p.down[i]);
            }
    };
    std::vector<std::size_t> at(static_cast<std::size_t>(p.seeds) + 1, 0);
    for_each_border([&](int i, int j, float) { ++at[owner_[i] + 1], ++at[owner_[j] + 1]; });
    for (int s = 0; s < p.seeds; ++s) at[s + 1] += at[s];
    std::vector<Link> links(at.back());
    std::vector<std::size_t> next(at.begin(), at.end() - 1);
    for_each_border([&](int i, int j, float step) {
        const float length = p.distance[i] + step + p.distance[j];
        links[next[owner_[i]]++] = {owner_[j], length};
        links[next[owner_[j]]++] = {owner_[i], length};
    });
    // Of the lengths between two seeds only the shortest counts.
    first_.assign(static_cast<std::size_t>(p.seeds) + 1, 0);
    constexpr int block = 256;
    parallel_for((p.seeds + block - 1) / block, [&](int b) {
        for (int s = b * block; s < std::min(p.seeds, (b + 1) * block); ++s) {
            const auto begin = links.begin() + static_cast<std::ptrdiff_t>(at[s]);
            const auto end = links.begin() + static_cast<std::ptrdiff_t>(at[s + 1]);
            std::sort(begin, end);
            const auto last = std::unique(
                begin, end, [](const Link& a, const Link& b) { return a.first == b.first; });
            first_[s + 1] = static_cast<std::size_t>(last - begin);
        }
    });
    for (int s = 0; s < p.seeds; ++s) first_[s + 1] += first_[s];
    to_.resize(first_.back());
    length_.resize(first_.back());
    for (int s = 0; s < p.seeds; ++s)
        for (std::size_t k = first_[s]; k < first_[s + 1]; ++k) {
            to_[k] = links[at[s] + k - first_[s]].first;
            length_[k] = links[at[s] + k - first_[s]].second;
        }
}

// Dijkstra until enough seeds are found. The distances of the scratch come and go unreached.
int SeedGraph::nearest(int seed, int most, Scratch& scratch, NearSeed* near) const {
    std::vector<float>& distance = scratch.distance;
    std::vector<std::uint64_t>& queue = scratch.queue;
    queue.assign(1, key_of(0.0f, seed));
    scratch.touched.assign(1, seed);
    distance[seed] = 0;
    int count = 0;
    while (!queue.empty() && count < most) {
        std::pop_heap(queue.begin(), queue.end(), std::greater<>());
        const std::uint64_t key = queue.back();
        queue.pop_back();
        const float d = distance_of(key);
        const int s = static_cast<int>(static_cast<std::uint32_t>(key));
        if (d > distance[s]) continue;
        near[count++] = {s, d};
        for (std::size_t k = first_[s]; k < first_[s + 1]; ++k) {
            const float there = d + length_[k];
            const int t = to_[k];
            if (there < distance[t]) {
                if (distance[t] == unreached) scratch.touched.push_back(t);
                distance[t] = there;
                queue.push_back(key_of(there, t));
                std::push_heap(queue.begin(), queue.end(), std::greater<>());
            }
        }
    }
    for (int s : scratch.touched) distance[s] = unreached;
    return count;
}

SeedGroups::SeedGroups(const SeedGraph& graph, const Interpolation& p, float together)
    : group_(static_cast<std::size_t>(p.seeds), -1) {
    const auto alike = [&](int s, int t) {
        return std::abs(p.match[2 * s] - p.match[2 * t]) <= p.tolerance &&
               std::abs(p.match[2 * s + 1] - p.match[2 * t + 1]) <= p.tolerance;
    };
    for (int s = 0; s < p.seeds; ++s) {
        if (group_[s] >= 0) continue;
        group_[s] = count();
        for (std::size_t k = graph.first(s); k < graph.end(s); ++k)
            if (group_[graph.to(k)] < 0 && graph.length(k) <= together && alike(s, graph.to(k)))
                group_[graph.to(k)] = count();
        leader_.push_back(s);
    }
    std::vector<std::vector<int>> around(leader_.size());
    for (int s = 0; s < p.seeds; ++s)
        for (std::size_t k = graph.first(s); k < graph.end(s); ++k)
            if (group_[graph.to(k)] != group_[s]) around[group_[s]].push_back(group_[graph.to(k)]);
    first_.assign(1, 0);
    for (std::vector<int>& groups : around) {
        std::sort(groups.begin(), groups.end());
        to_.insert(to_.end(), groups.begin(), std::unique(groups.begin(), groups.end()));
        first_.push_back(to_.size());
    }
}

}  // namespace hamflow
