#include "pages.hpp"

#include <algorithm>
#include <deque>
#include <mutex>
#include <new>

#include "compiler.hpp"

#if defined(HAMFLOW_FORKS)
#include <pthread.h>
#endif
#if defined(__linux__)
#include <sys/mman.h>
#endif
#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace hamflow {
namespace {

// Smaller blocks are the business of malloc, which keeps them itself. Sanitizers see only those.
#if defined(HAMFLOW_SANITIZED)
constexpr std::size_t smallest = static_cast<std::size_t>(-1);
#else
constexpr std::size_t smallest = std::size_t{64} << 10;
#endif
constexpr std::size_t page = std::size_t{4} << 10, large_page = std::size_t{2} << 20;
constexpr std::align_val_t alignment{64};
// How many bytes are kept for others at most, and how many always may be. In between, what is kept
// must not make the process larger than it was with all that was in use at one time.
constexpr std::size_t most_kept = std::size_t{512} << 20, least_kept = std::size_t{128} << 20;

#if defined(__linux__)

void* fresh(std::size_t bytes) {
    void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) throw std::bad_alloc();
    madvise(data, bytes, MADV_HUGEPAGE);  // without them it only takes longer
    return data;
}

void release(Block block) noexcept { munmap(block.data, block.bytes); }

#else

void* fresh(std::size_t bytes) { return ::operator new(bytes, alignment); }

void release(Block block) noexcept { ::operator delete(block.data, alignment); }

#endif

class Store {
   public:
    Block take(std::size_t bytes) {
        const std::size_t unit = bytes < large_page ? page : large_page;
        bytes = (bytes + unit - 1) / unit * unit;
        {
            std::lock_guard<std::mutex> lock(mutex_);
            // The smallest one that fits, unless it is much too large; of these the last one used.
            auto best = kept_.end();
            for (auto block = kept_.begin(); block != kept_.end(); ++block)
                if (block->bytes >= bytes && block->bytes / 4 <= bytes &&
                    (best == kept_.end() || block->bytes <= best->bytes))
                    best = block;
            if (best != kept_.end()) {
                const Block found = *best;
                kept_.erase(best);
                bytes_ -= found.bytes;
                use(found.bytes);
                return found;
            }
        }
        const Block block{fresh(bytes), bytes};
        std::lock_guard<std::mutex> lock(mutex_);
        use(bytes);
        shrink(room());
        return block;
    }

    void give(Block block) noexcept {
        std::lock_guard<std::mutex> lock(mutex_);
        used_ -= std::min(used_, block.bytes);  // after a fork, others gave it out
        try {
            kept_.push_back(block);
        } catch (...) {
            release(block);
            return;
        }
        bytes_ += block.bytes;
        shrink(room());
    }

    void clear() {
        std::lock_guard<std::mutex> lock(mutex_);
        shrink(0);
        most_used_ = used_;
    }

    std::size_t bytes() {
        std::lock_guard<std::mutex> lock(mutex_);
        return bytes_;
    }

   private:
    void use(std::size_t bytes) {
        used_ += bytes;
        most_used_ = std::max(most_used_, used_);
    }

    std::size_t room() const {
        return std::min(most_kept, std::max(least_kept, most_used_ - used_));
    }

    void shrink(std::size_t most) noexcept {
        while (bytes_ > most) {  // those that have waited longest
            bytes_ -= kept_.front().bytes;
            release(kept_.front());
            kept_.pop_front();
        }
    }

    std::mutex mutex_;
    std::deque<Block> kept_;
    std::size_t bytes_ = 0;             // kept
    std::size_t used_ = 0, most_used_ = 0;
};

// Never destroyed: arrays may be given back while the process ends. After a fork another thread
// may have left it locked for ever, so the child gets a new one; what the old one kept is lost,
// which costs addresses but, as nobody writes there, no memory.
Store* store = new Store;

#if defined(HAMFLOW_FORKS)
[[maybe_unused]] const int fork_handler =
    pthread_atfork(nullptr, nullptr, [] { store = new Store; });
#endif

}  // namespace

Block take_block(std::size_t bytes) {
    if (bytes < smallest) return {::operator new(bytes, alignment), bytes};
    return store->take(bytes);
}

void give_block(Block block) noexcept {
    if (!block.data) return;
    if (block.bytes < smallest)
        ::operator delete(block.data, alignment);
    else
        store->give(block);
}

std::size_t kept_bytes() { return store->bytes(); }
void release_kept() {
    store->clear();
#if defined(__GLIBC__)
    malloc_trim(0);  // it keeps what smaller arrays took
#endif
}

}  // namespace hamflow
