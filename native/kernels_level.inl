// Included by every kernels_<level>.cpp, within its namespace.
namespace {
#include "turn.inl"
#include "bits_tiles.inl"
#include "pixel_tiles.inl"
#include "min_projection.inl"
#include "messages.inl"
#include "scalar_products.inl"
#include "matches.inl"
#include "label_rows.inl"
#include "chains.inl"
#include "winner_takes_all.inl"
#include "relabel.inl"
}  // namespace
const Kernels kernels = {level_name,
                         min_projection,
                         message16,
                         message32,
                         float_min_projection,
                         float_message,
                         gather,
                         scatter,
                         chain_pass16,
                         chain_pass32,
                         relabel_bits16,
                         relabel_bits32,
                         relabel_phi,
                         best_labels<std::uint8_t>,
                         best_labels<std::int16_t>,
                         best_labels<float>,
                         rescan_bits,
                         rescan_phi};
