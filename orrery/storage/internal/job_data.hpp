// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/io.hpp>
#include <orrery/storage/data_set.hpp>

#include <cstdint>
#include <string>
#include <vector>

// How jobs that may be killed at any moment treat the data sets they read and make.
namespace orrery::storage::internal {

/// Removes a data set with all its files, and what a program that was killed while it made one has
/// left. Throws EBUSY: somebody writes it.
void remove_remains(const std::string& path);
/// Whether a folder is there in which nothing is but folders and headers that were being written.
[[nodiscard]] bool holds_nothing_yet(const std::string& path);
/// Takes id, edition and state of the data set as they are now: somebody may have written it while
/// this program waited. Throws std::invalid_argument if it has another form.
void read_again(data_set_info& input);
/// The folder of a job of that name, beside its target. Throws EINVAL if the input, or a folder for
/// the output, lies in it: all that is there goes with the job. Throws as require_text.
[[nodiscard]] std::string folder_beside(const std::string& target, const std::string& name, const data_set_info& input,
                                        const std::vector<std::string>& folders);
/// Throws EEXIST if there is anything at the path, be it a link to nowhere.
void require_nothing_at(const std::string& path);
/// Keeps others from replacing a data set that is read, or, if it will be `replaced`, from reading
/// it, while the descriptor is open. Parks for up to half a second. Throws EBUSY.
[[nodiscard]] io::descriptor held_input(const std::string& path, bool replaced);
/// Throws ENOSPC if so many bytes, spread over the folders, which may name their machines, have no
/// room; EHOSTDOWN. Parks.
void require_room(const std::string& target, const std::vector<std::string>& folders, std::uint64_t bytes);

}  // namespace orrery::storage::internal
