// Memory that is handed on. A pair of images needs the same large arrays again and again; fresh
// memory would have to be cleared by the operating system each time, page by page. So what is
// given back is kept for the next one that asks, up to a limit. Its content is undefined.
#pragma once

#include <cstddef>

namespace hamflow {

struct Block {
    void* data = nullptr;  // at a multiple of 64
    std::size_t bytes = 0;
};

// At least so many bytes; large blocks come in large pages where the system has them. Throws
// std::bad_alloc. What owns a block is a `Buffer` (simd/common.hpp).
Block take_block(std::size_t bytes);
void give_block(Block block) noexcept;

std::size_t kept_bytes();  // for others, at the moment
void release_kept();       // gives them, and what malloc keeps, back to the system

}  // namespace hamflow
