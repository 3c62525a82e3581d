// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace mri {

/// Writes the middle plane across a dimension (1 to 3) of a data set as a grey PNG: black is 0,
/// white the largest magnitude of the plane. The earlier of the other two dimensions goes to the
/// right, the later one upwards, as images of heads are shown.
///
/// To be called in a process. Throws std::invalid_argument, std::runtime_error (the file cannot be
/// written), and what data sets throw.
void write_slice(const std::string& set, int dimension, const std::string& file);

}  // namespace mri
