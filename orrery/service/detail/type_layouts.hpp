// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace orrery::service {

/// The types of a service's keys and values, as people write them: "int, std::string".
///
/// `layouts` is what a shape says of them. Its first layout, up to a ";", has a line for each type.
/// The layouts behind it are those of the types' members.
[[nodiscard]] std::string readable_types(std::string_view layouts);

/// How the first type differs of which both texts have a layout; for people, as a clause that
/// begins with ";". Empty if the names of the types tell it already.
[[nodiscard]] std::string difference_of_types(std::string_view has, std::string_view opened);

}  // namespace orrery::service
