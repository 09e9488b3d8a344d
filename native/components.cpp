#include "components.hpp"

#include <cstddef>
#include <vector>

namespace hamflow {

void drop_small(std::uint8_t* mask, int h, int w, int least) {
    const std::size_t n = static_cast<std::size_t>(h) * w;
    std::vector<std::uint8_t> seen(n);
    std::vector<std::size_t> component;  // found pixels, the first `done` of them already expanded
    for (std::size_t start = 0; start < n; ++start) {
        if (!mask[start] || seen[start]) continue;
        component.assign(1, start);
        seen[start] = 1;
        for (std::size_t done = 0; done < component.size(); ++done) {
            const std::size_t i = component[done];
            const std::size_t x = i % w, y = i / w;
            const auto visit = [&](std::size_t j) {
                if (mask[j] && !seen[j]) {
                    seen[j] = 1;
                    component.push_back(j);
                }
            };
            if (x > 0) visit(i - 1);
            if (x + 1 < static_cast<std::size_t>(w)) visit(i + 1);
            if (y > 0) visit(i - w);
            if (y + 1 < static_cast<std::size_t>(h)) visit(i + w);
        }
        if (least > 0 && component.size() < static_cast<std::size_t>(least))
            for (const std::size_t i : component) mask[i] = 0;
    }
}

}  // namespace hamflow
