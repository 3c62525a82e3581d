// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/future.hpp>
#include <orrery/service/detail/exposed_range.hpp>
#include <orrery/service/range_process.hpp>
#include <orrery/service/sorted_leaves.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <type_traits>
#include <vector>

namespace orrery::service {

/// The ranges of a session whose memory can be read here.
///
/// After some finds it asks a range on another node of this machine, once, where it is exposed. At
/// one find of `turn` it lets the other processes of this PE run: a client that looks for something
/// in a loop may wait for one of them, and hears that the world ends. In a simulation that find is
/// a message, which takes time.
///
/// Part of a session; used by one process only.
class one_sided_routes {
 public:
  struct route {
    std::shared_ptr<const mapped_exposure> memory;
    const exposed_header* header = nullptr;  ///< null: it cannot be read
    std::uint64_t id = 0;
    std::uint32_t pe = 0;
    std::uint32_t finds = 0;
    bool settled = false;  ///< there is nothing to be asked any more
    future<exposed_place> answer;
  };
  static constexpr std::uint32_t turn = 64;
  static constexpr std::uint32_t before_asking = 2;

  /// The route if the next find may read it; null: it is to be a message. Parks now and then.
  /// Throws stopped.
  [[nodiscard]] const route* next(std::uint32_t number, const remote<range_process>& owner) {
    if (number >= routes_.size()) routes_.resize(number + std::size_t{1});
    route& r = routes_[number];
    if (r.header != nullptr) [[likely]] {
      if (++finds_ % turn == 0 && !pass_on()) return nullptr;
      return &r;
    }
    if (!r.settled && ++r.finds >= before_asking) ask(r, owner);
    return nullptr;
  }
  /// Whether its node has not been lost meanwhile, as far as this one knows.
  [[nodiscard]] static bool is_there(const route& r) noexcept;
  /// Parks until nothing is asked any more.
  void end() noexcept;

 private:
  /// False: the find is to be a message.
  [[nodiscard]] static bool pass_on();
  static void ask(route& r, const remote<range_process>& owner);

  std::vector<route> routes_;
  std::uint32_t finds_ = 0;
};

/// The result of a find, and its moment as for session_options::places.
template <class Value>
struct one_sided_reply {
  std::optional<Value> value;
  std::uint64_t version = 0;
  std::uint64_t moment = 0;  ///< behind the first so many requests of the range
};

/// Looks up a key in the memory of a range (exposed_range). False if it is not to be had there now:
/// the range changes, or has the key no more.
///
/// `places`: with what session_options::places is about.
///
/// All that is read is taken for true only at the end. So until then each address is checked, each
/// number that is an index is bounded, both are loaded once, and a key can be compared whatever its
/// bits are.
template <class Key, class Value>
[[nodiscard]] bool find_one_sided(const one_sided_routes::route& r, const Key& key, bool places,
                                  one_sided_reply<Value>& reply) {
  using leaf = sorted_leaf<Key, Value>;
  const exposed_header& h = *r.header;
  const auto once = [](const auto& x) { return *const_cast<const volatile std::remove_cvref_t<decltype(x)>*>(&x); };
  // SYNC: acquire, with exposed_range::open: what it names is complete.
  const std::uint64_t version = h.version.load(std::memory_order_acquire);
  if ((version & 1U) != 0 || h.id != r.id || h.layout != leaf::layout) return false;
  const std::uint32_t bounds = h.bounds;
  Key from;
  Key to;
  std::memcpy(&from, h.from, sizeof(Key));
  std::memcpy(&to, h.to, sizeof(Key));
  if (((bounds & 1U) != 0 && key < from) || ((bounds & 2U) != 0 && !(key < to))) return false;
  const std::size_t count = once(h.count);
  if (count == 0) return false;
  const std::byte* const least = r.memory->at(once(h.least), count * sizeof(Key));
  const std::byte* const sizes = r.memory->at(once(h.sizes), count);
  const std::byte* const leaves = r.memory->at(once(h.leaves), count * sizeof(std::uint64_t));
  if (least == nullptr || sizes == nullptr || leaves == nullptr) return false;
  const std::size_t i = count_not_greater(reinterpret_cast<const Key*>(least) + 1, count - 1, key);
  const std::uint64_t owners = once(reinterpret_cast<const std::uint64_t*>(leaves)[i]);
  const auto* const at = reinterpret_cast<const leaf*>(r.memory->at(owners, sizeof(leaf)));
  const std::size_t size = once(reinterpret_cast<const std::uint8_t*>(sizes)[i]);
  if (at == nullptr || owners % alignof(leaf) != 0 || size > leaf::room) return false;
  const auto fetch = [](const void* begin, std::size_t length) {
    for (std::size_t b = 0; b < std::min<std::size_t>(length, 512); b += 64)
      __builtin_prefetch(static_cast<const std::byte*>(begin) + b);
  };
  fetch(at->keys.data(), size * sizeof(Key));
  fetch(at->values.data(), size * sizeof(Value));
  const std::size_t place = count_less(at->keys.data(), size, key);
  std::optional<Value> value;
  if (place < size && !(key < at->keys[place])) std::memcpy(&value.emplace(), &at->values[place], sizeof(Value));
  if (places) {
    reply.version = h.keys_version;
    reply.moment = h.served.load(std::memory_order_relaxed);
  }
  // SYNC: acquire, with exposed_range::close: if one of these reads saw a later write, the next
  // one sees that the range was closed.
  std::atomic_thread_fence(std::memory_order_acquire);
  if (h.version.load(std::memory_order_relaxed) != version) return false;
  reply.value = value;
  return true;
}

}  // namespace orrery::service
