// SPDX-License-Identifier: Apache-2.0
#include <orrery/transport/shm/board.hpp>

#include <orrery/transport/shm/internal/fail.hpp>
#include <orrery/transport/shm/internal/table.hpp>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>
#include <utility>

#include <xxhash.h>

namespace orrery::transport {

using internal::fail;

namespace {

// All that others see while it changes is words. Each is stored with release and loaded with
// acquire: a reader that has met a word of a newer text also sees that another one is shown since.
// (On x86 that costs nothing; fences would, and hide it from ThreadSanitizer.)
using word = std::atomic<std::uint64_t>;
static_assert(word::is_always_lock_free && sizeof(word) == sizeof(std::uint64_t));

constexpr std::uint64_t magic = 0x4452'414f'4252'524f;  // "ORRBOARD"
constexpr int patience = 100;

struct header {
  std::uint64_t magic;
  std::uint64_t version;
  word shown;  ///< how many texts were; the last one lies at the place of its parity. 0: none
};
struct text_header {
  word bytes;
  word checksum;
};
constexpr std::uint64_t place_bytes = board::capacity + layout::page;
constexpr std::uint64_t board_bytes = layout::page + 2 * place_bytes;

std::uint64_t place_of(std::uint64_t shown) noexcept { return layout::page + shown % 2 * place_bytes; }
header& head_of(const segment& memory) noexcept { return *reinterpret_cast<header*>(memory.data()); }
text_header& text_at(const segment& memory, std::uint64_t place) noexcept {
  return *reinterpret_cast<text_header*>(memory.data() + place);
}
word* words_at(const segment& memory, std::uint64_t place) noexcept {
  return reinterpret_cast<word*>(memory.data() + place + sizeof(text_header));
}

// The length and the checksum of the text at `place`; its bytes only if the length can be one.
std::pair<std::uint64_t, std::uint64_t> copy(const segment& memory, std::uint64_t place, std::vector<std::byte>& text) {
  const text_header& h = text_at(memory, place);
  const std::uint64_t bytes = h.bytes.load(std::memory_order_acquire);  // SYNC: with show
  const std::uint64_t checksum = h.checksum.load(std::memory_order_acquire);  // SYNC: with show
  if (bytes > board::capacity) return {bytes, checksum};
  text.resize(bytes);
  const word* const from = words_at(memory, place);
  for (std::uint64_t at = 0; at < bytes; at += sizeof(word)) {
    // SYNC: with show
    const std::uint64_t w = from[at / sizeof(word)].load(std::memory_order_acquire);
    std::memcpy(text.data() + at, &w, std::min<std::uint64_t>(sizeof w, bytes - at));
  }
  return {bytes, checksum};
}

}  // namespace

result<board> board::create() {
  auto memory = segment::create("orrery-board", board_bytes);
  if (!memory) return internal::pass(memory);
  if (auto backed = memory->back(0, layout::page); !backed) return internal::pass(backed);
  header& h = *new (memory->data()) header{};
  h.magic = magic;
  h.version = layout::version;
  return board{std::move(*memory)};
}

result<void> board::show(std::span<const std::byte> text) {
  if (text.size() > capacity) {
    return fail(transport_errc::bad_argument, 0, "a board has room for {} bytes, not for {}", capacity, text.size());
  }
  const std::uint64_t place = place_of(shown_ + 1);
  const std::uint64_t bytes = sizeof(text_header) + text.size() + sizeof(word);
  if (auto backed = memory_.back(place, (bytes + layout::page - 1) / layout::page * layout::page); !backed)
    return backed;
  text_header& h = text_at(memory_, place);
  h.bytes.store(text.size(), std::memory_order_release);  // SYNC: with copy
  // SYNC: with copy
  h.checksum.store(XXH3_64bits(text.data(), text.size()), std::memory_order_release);
  word* const to = words_at(memory_, place);
  for (std::uint64_t at = 0; at < text.size(); at += sizeof(word)) {
    std::uint64_t w = 0;
    std::memcpy(&w, text.data() + at, std::min<std::uint64_t>(sizeof w, text.size() - at));
    to[at / sizeof(word)].store(w, std::memory_order_release);  // SYNC: with copy
  }
  // SYNC: release, with read: the text is complete.
  head_of(memory_).shown.store(++shown_, std::memory_order_release);
  return {};
}

result<std::vector<std::byte>> board::read(const segment& memory, std::string_view what) {
  const header& h = head_of(memory);
  if (memory.size() != board_bytes || h.magic != magic || h.version != layout::version) {
    return fail(transport_errc::damaged, 0, "{} is no board of this version of Orrery", what);
  }
  std::vector<std::byte> text;
  for (int attempt = 0; attempt < patience; ++attempt) {
    if (attempt != 0) std::this_thread::yield();
    const std::uint64_t shown = h.shown.load(std::memory_order_acquire);  // SYNC: with show
    if (shown == 0) return text;
    const auto [bytes, checksum] = copy(memory, place_of(shown), text);
    // ordered behind the words' acquire
    if (h.shown.load(std::memory_order_relaxed) != shown) continue;
    if (bytes > capacity || XXH3_64bits(text.data(), text.size()) != checksum) {
      return fail(transport_errc::damaged, 0, "{} does not match its checksum", what);
    }
    return text;
  }
  return fail(transport_errc::timed_out, 0, "{} changes faster than it can be read", what);
}

result<std::vector<std::byte>> board::read(const peer& owner, int fd, std::string_view what) {
  auto memory = segment::open_peer(owner, fd, board_bytes, access::read, what);
  if (!memory) return internal::pass(memory);
  return read(*memory, what);
}

}  // namespace orrery::transport
