// The arguments of one pass of the in-plane solver: see chains.inl.
#pragma once

#include <cstdint>

namespace hamflow {

// w rho (eq. 3) of one edge: 0 for equal labels; first + slope (|t| - 1), but at most the cap, for
// a distance |t| <= reach; the cap beyond. The paper shows rho only as a drawing (Figure 2a): its
// form is a reconstruction, see rho() in hamflow/crf/model.py.
template <class T>
struct EdgeCost {
    T first, slope, cap;
};

// One pass over one plane, along all its rows or all its columns; volumes are h x w x d.
template <class T, class ShareType>
struct ChainPass {
    using Share = ShareType;
    int h, w, d;
    bool vertical, reverse;    // along columns; from the last node to the first
    int reach;                 // of the edges' slope: a power of two
    const EdgeCost<T>* edges;  // h x w: from each pixel to the next one along the pass
    const Share* shares;       // one for each edge of a chain; null: the hierarchical minorant
    T* lam;
    T* hold;                   // of the other direction before, of this one after
    T* s;                      // null, or where to write s; then also lam -= s
    bool fresh = false;        // hold is 0 before, whatever is there
};

// Shares in units of 2^-16, or as fractions.
using ChainPass16 = ChainPass<std::int16_t, std::uint16_t>;
using ChainPass32 = ChainPass<float, float>;

}  // namespace hamflow
