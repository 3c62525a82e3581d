// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/storage/domain.hpp>

#include <string>

#include <nifti2_io.h>

namespace orrery::tool {

/// What a data set keeps of a NIfTI file's header, as JSON: "voxel_size" and "affine" are for people and other programs; "nifti" is what a file is
/// made of again.
[[nodiscard]] std::string attributes_of(const nifti_image& n);
/// The header gets back what the attributes say; `first` is the voxel of the data set that becomes (0, 0, 0). Attributes of another origin, or none, change
/// nothing. Throws nlohmann::json::exception if "nifti" is not what `attributes_of` writes.
void restore(nifti_image& n, const std::string& attributes, const storage::index3& first);

}  // namespace orrery::tool
