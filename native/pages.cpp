#include "pages.hpp"

#include <cstdlib>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace hamflow {

#if defined(__linux__)

Pages::Pages(std::size_t bytes) : bytes_(bytes) {
    data_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data_ == MAP_FAILED) throw std::bad_alloc();
    madvise(data_, bytes_, MADV_HUGEPAGE);  // without them it only takes longer
}

Pages::~Pages() {
    if (data_) munmap(data_, bytes_);
}

#else

Pages::Pages(std::size_t bytes) : data_(std::calloc(bytes, 1)), bytes_(bytes) {
    if (!data_) throw std::bad_alloc();
}

Pages::~Pages() { std::free(data_); }

#endif

}  // namespace hamflow
