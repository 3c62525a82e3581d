// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace mri {

/// Makes a spectrum `factor` times as long along each dimension, by zeros where its higher
/// frequencies would be: the inverse transform of the result is the same function on a grid so many
/// times as fine. `input` and `output` are data sets, complex; the output is made, in pages of 16 x
/// 128 x 128, and has the input's attributes: of what `orrery data import` keeps of a NIfTI file,
/// voxel sizes and affine become those of the finer grid. A slab of it is in memory at a time. With
/// an even length the highest frequency is taken as negative.
///
/// To be called in a process. Throws std::invalid_argument (not complex, factor 0), and what data
/// sets throw.
void pad_spectrum(const std::string& input, const std::string& output, std::int64_t factor);

}  // namespace mri
