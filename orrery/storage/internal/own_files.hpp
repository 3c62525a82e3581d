// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/storage/data_set.hpp>

#include <cstddef>
#include <string>

// Which files belong to a data set. A header is a text that anybody may write: what it names is
// neither opened nor removed unless a data set makes such files, and removed only if this one has
// made it.
namespace orrery::storage::internal {

/// True if a data set gives its device of that number such a name: in its own folder
/// "device-0.pages", elsewhere "/folder/<name>-0.pages".
[[nodiscard]] bool is_device_name(const std::string& name, std::size_t device);
/// The file of checksums that is beside a device's file.
[[nodiscard]] std::string sums_of(const std::string& file);
/// Throws EBADMSG if the header's checksum is not that of its contents.
void require_intact(const data_set_info& info);
/// Throws EINVAL if a file of a data set is there, and is no regular file.
void require_regular(const std::string& file);
/// Throws EPERM if a device file in another folder is not shown to be this data set's by its file
/// of checksums. (Without checksums the intact header has to do.) May park.
void require_own(const data_set_info& info, const std::string& file, const std::string& sums);
/// Throws EPERM if a file that is to be removed is a folder, a FIFO or the like, and EACCES or
/// EROFS if its folder may only be read. A file that is not there is no error.
void require_unlinkable(const std::string& file);
/// Throws ELOOP if a folder is a symbolic link.
void require_no_link(const std::string& folder);
/// Removes a file; of a symbolic link, the link. Nothing if it is not there. Throws what unlink(2)
/// gives.
void unlink_file(const std::string& file);

}  // namespace orrery::storage::internal
