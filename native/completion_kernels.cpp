#include "completion_kernels.hpp"

#include "simd/levels.hpp"

namespace hamflow {

namespace portable { extern const CompletionKernels completion_table; }
namespace avx2 { extern const CompletionKernels completion_table; }
namespace avx512 { extern const CompletionKernels completion_table; }
namespace neon { extern const CompletionKernels completion_table; }

const CompletionKernels& completion_kernels() {
    [[maybe_unused]] const Kernels* level = &active_kernels();
#if defined(HAMFLOW_X86)
    if (level == &avx512_kernels) return avx512::completion_table;
    if (level == &avx2_kernels) return avx2::completion_table;
#endif
#if defined(HAMFLOW_NEON)
    if (level == &neon_kernels) return neon::completion_table;
#endif
    return portable::completion_table;
}

}  // namespace hamflow
