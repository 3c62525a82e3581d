// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/storage/data_set.hpp>

#include <string>

#include <unistd.h>

// The header of a data set: a small JSON file.
//
//   {"format": "orrery data set", "version": 1,
//    "shape": [512, 512, 512], "page_shape": [64, 64, 64], "type": "complex128",
//    "byte_order": "little", "state": "finished",
//    "checksums": "xxh3" or "none", "map": {"kind": "circulant"},
//    "devices": [{"file": "device-0.pages", "pages": 512}, ...]}
//
// "attributes": {...} is there if the data set was given any.
//
// A map of another kind than circulant and blocked has "table": [[device, place], ...], one for
// each page in their order. Names of files are relative to the data set's folder, or absolute for
// other drives. The checksums are beside the device's file, with .sums at its name's end.
//
// A device whose folder is on a machine that is named has "host": "node7"; then "version" is 2.
//
// "id": "<16 hexadecimal digits>" is also in the files of checksums, and "edition" is another one
// after each opening for writing. "checksum": "<16 hexadecimal
// digits>" is the XXH3 of all else, as JSON without blanks and with keys in their order. Headers
// that were written before there were such have neither.
namespace orrery::storage::internal {

/// "<folder>/orrery.json"
[[nodiscard]] std::string header_path(const std::string& folder);
/// Whether a file has the name of a header that is being written, or whose program was killed then.
[[nodiscard]] bool is_unfinished_header(const std::string& file_name);
/// Reads and checks it; data_set_info::intact says whether its checksum is right. `map` may be
/// null. May park. Throws std::system_error (ENOENT, EINVAL, ...).
[[nodiscard]] data_set_info read_header(const std::string& folder, any_page_map* map);
/// A number that no other data set has. Any thread.
[[nodiscard]] std::uint64_t new_id();
/// The header is UTF-8: throws std::invalid_argument if the file's name is not, and is kept there.
void require_text(const std::string& file);
/// As link(2).
using link_function = int (*)(const char*, const char*);
/// Gives a file another name, which nobody has: throws EEXIST, also where a file has one name only.
/// `link` may refuse, as file systems do which have no second names. Throws std::system_error.
void rename_to_new(const std::string& from, const std::string& to, link_function link = &::link);
/// Replaces it: when this returns the new one is on the drive, and whatever happens meanwhile there
/// is the old or the new one. `fresh`: there must be none yet; throws EEXIST, also to all but one
/// of several programs that do this at once.
void write_header(const data_set_info& info, const any_page_map& map, bool fresh = false);

}  // namespace orrery::storage::internal
