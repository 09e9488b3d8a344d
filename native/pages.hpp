// Large memory that is zero at first. On Linux it comes in large pages, which are cleared by the
// thread that touches them first: a field of an image costs less to begin with.
#pragma once

#include <cstddef>
#include <utility>

namespace hamflow {

class Pages {
   public:
    explicit Pages(std::size_t bytes);
    Pages(Pages&& other) noexcept
        : data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}
    Pages& operator=(Pages&&) = delete;
    ~Pages();

    void* data() const { return data_; }

   private:
    void* data_;
    std::size_t bytes_;
};

}  // namespace hamflow
