// SPDX-License-Identifier: Apache-2.0
#include <orrery/storage/detail/page_sums.hpp>

#include <orrery/storage/detail/page_file.hpp>
#include <orrery/storage/internal/hosts.hpp>
#include <orrery/storage/internal/own_files.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

namespace orrery::storage {
namespace {

struct file_head {
  std::array<char, 8> magic{'o', 'r', 'r', 'e', 'r', 'y', 's', '1'};
  std::uint64_t pages = 0;
  std::uint64_t owner = 0;
  std::uint64_t number = 0;  // of the device, from 1; 0: it was not kept yet
  std::array<std::uint64_t, 4> reserved{};
};
static_assert(sizeof(file_head) == 64);
static_assert(sizeof(page_sums::record) == 16);

std::uint64_t offset_of(std::uint64_t index) { return sizeof(file_head) + index * sizeof(page_sums::record); }

// A record of zeros is that of a page that was never written.
std::uint32_t check_of(std::uint64_t sum, page_state state, std::uint64_t index) {
  if (state == page_state::never_written) return 0;
  const std::array<std::uint64_t, 3> all{sum, static_cast<std::uint64_t>(state), index};
  return static_cast<std::uint32_t>(XXH3_64bits(all.data(), sizeof all));
}

void require_whole(const page_sums::record& r, std::uint64_t index, const std::string& path) {
  const bool known = r.state == page_state::writing || r.state == page_state::written ||
                     (r.state == page_state::never_written && r.sum == 0);
  if (!known || r.check != check_of(r.sum, r.state, index))
    detail::throw_errno(EBADMSG, fmt::format("the record of page {} in {} is damaged, so that the page cannot be "
                                             "verified: write the page again",
                                             index, path));
}

template <class F>
void told_about(const std::string& what, F&& f) {
  try {
    std::forward<F>(f)();
  } catch (const std::system_error& e) {
    detail::throw_errno(e.code().value(), what);
  }
}

}  // namespace

std::uint64_t page_sums::sum_of(std::span<const std::byte> bytes, std::uint64_t index) noexcept {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), index);
}

std::optional<std::uint64_t> page_sums::owner_of(const std::string& path) {
  file_head head;
  head.magic = {};
  try {
    const io::descriptor file = detail::open_regular(path, O_RDONLY);
    (void)io::read_all(file.get(), std::as_writable_bytes(std::span(&head, 1)), 0);
  } catch (const std::system_error&) {
    return {};
  }
  return head.magic == file_head().magic ? std::optional(head.owner) : std::nullopt;
}

page_sums::page_sums(std::string path, std::uint64_t pages, bool create, bool writable, bool alone, std::uint64_t owner,
                     std::uint32_t number)
    : path_(std::move(path)), shown_(internal::file_text(path_)), pages_(pages), kept_((create || writable) && alone) {
  const std::uint64_t bytes = offset_of(pages);
  if (create) {
    told_about(fmt::format("cannot make the file of checksums {}", shown_), [&] {
      file_ = io::descriptor(path_, O_RDWR | O_CREAT | O_EXCL);
      file_head head;
      head.pages = pages;
      head.owner = owner;
      head.number = number;
      try {
        // The head first: killed before that, it leaves an empty file.
        io::write_all(file_.get(), std::as_bytes(std::span(&head, 1)), 0);
        detail::reserve(file_.get(), bytes);
      } catch (const std::system_error&) {
        (void)::unlink(path_.c_str());
        throw;
      }
    });
    if (kept_) records_.resize(pages);
    return;
  }
  internal::require_regular(path_);
  told_about(fmt::format("cannot open the file of checksums {}", shown_),
             [&] { file_ = detail::open_regular(path_, writable ? O_RDWR : O_RDONLY); });
  file_head head;
  head.magic = {};
  struct stat st{};
  const std::size_t got = io::read_all(file_.get(), std::as_writable_bytes(std::span(&head, 1)), 0);
  if (got != sizeof head || head.magic != file_head().magic || head.pages != pages || ::fstat(file_.get(), &st) != 0 ||
      static_cast<std::uint64_t>(st.st_size) < bytes)
    detail::throw_errno(EINVAL,
                        fmt::format("{} is not the file of checksums of {} pages (or it was truncated): restore it "
                                    "from a copy",
                                    shown_, pages));
  if (owner != 0 && head.owner != 0 && head.owner != owner)
    detail::throw_errno(EINVAL, fmt::format("{} belongs to another data set: put its own file back", shown_));
  if (number != 0 && head.number != 0 && head.number != number)
    detail::throw_errno(EINVAL, fmt::format("{} belongs to device {} of the data set, not to device {}: put each "
                                            "device's files back to their own names",
                                            shown_, head.number - 1, number - 1));
  if (!kept_) return;
  records_.resize(pages);
  (void)io::read_all(file_.get(), std::as_writable_bytes(std::span(records_)), sizeof head);
}

page_sums::record page_sums::get(std::uint64_t index) const {
  record r;
  if (kept_) {
    r = records_.at(index);
  } else {
    told_about(fmt::format("cannot read the record of page {} in {}", index, shown_),
               [&] { (void)io::read_all(file_.get(), std::as_writable_bytes(std::span(&r, 1)), offset_of(index)); });
  }
  require_whole(r, index, shown_);
  return r;
}

std::vector<std::uint64_t> page_sums::unwritten() const {
  constexpr std::uint64_t at_once = 4096;
  std::vector<std::uint64_t> found;
  std::vector<record> some;
  for (std::uint64_t first = 0; first < pages_; first += at_once) {
    some.assign(std::min(at_once, pages_ - first), {});
    if (kept_)
      std::copy_n(records_.begin() + static_cast<std::ptrdiff_t>(first), some.size(), some.begin());
    else
      told_about(fmt::format("cannot read the records of pages in {}", shown_),
                 [&] { (void)io::read_all(file_.get(), std::as_writable_bytes(std::span(some)), offset_of(first)); });
    for (std::size_t i = 0; i < some.size(); ++i)
      if (some[i] == record{}) found.push_back(first + i);
  }
  return found;
}

void page_sums::put(std::uint64_t index, std::uint64_t sum, page_state state) {
  const record written{sum, state, check_of(sum, state, index)};
  told_about(fmt::format("cannot write the record of page {} in {}", index, shown_),
             [&] { io::write_all(file_.get(), std::as_bytes(std::span(&written, 1)), offset_of(index)); });
  if (kept_) records_.at(index) = written;  // if that has failed, the page is as it was
}
void page_sums::begin_write(std::uint64_t index) { put(index, 0, page_state::writing); }
void page_sums::end_write(std::uint64_t index, std::uint64_t sum) { put(index, sum, page_state::written); }

void page_sums::sync() {
  told_about(fmt::format("cannot bring {} to its drive", shown_), [&] { io::fdatasync(file_.get()); });
}
void page_sums::close() { file_.close(); }

}  // namespace orrery::storage
