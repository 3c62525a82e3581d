// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/service/detail/key_ownership.hpp>
#include <orrery/service/detail/list_messages.hpp>
#include <orrery/service/detail/packing.hpp>
#include <orrery/service/range_process.hpp>
#include <orrery/wire/error.hpp>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace orrery::service {

/// The requests of a batch that are not executed, and where they belong.
///
/// They go back as they came. Behind all answers stands, once for each, which intervals they belong
/// to and who got these. In a batch with the rule `until_refused` all that follow go back, too.
///
/// Lives on the stack of list_range::serve.
template <class Key>
class refused_requests {
 public:
  refused_requests(packer& answer, batch_rule rule) : answer_(answer), rule_(rule) {}

  /// Whether all further requests are to be refused.
  [[nodiscard]] bool all() const noexcept { return refused_ && rule_ == batch_rule::until_refused; }
  void behind(std::span<const std::byte> request) { refuse(list_answer::behind, request); }
  void moved(const owned_keys<Key>* to, std::span<const std::byte> request) {
    if (to == nullptr) {  // no session asks for what was never here
      pack_failure(answer_, usage_error(errc::bad_argument, "an ordered list has no range for this key"));
      return;
    }
    refused_ = true;
    ++moved_;
    if (std::ranges::find(places_, to) == places_.end()) places_.push_back(to);
    refuse(list_answer::moved, request);
  }
  void before() {
    refused_ = true;
    pack(answer_, list_answer::before);
  }
  /// Appends the places. Returns how many have moved.
  std::uint64_t end() {
    if (moved_ != 0) pack_places(answer_, places_);
    return moved_;
  }

  template <class To>
  static void pack_places(To& answer, const std::vector<const owned_keys<Key>*>& places) {
    const auto known = [](const owned_keys<Key>* p) { return p != nullptr; };
    pack(answer, static_cast<std::uint32_t>(std::ranges::count_if(places, known)));
    for (const owned_keys<Key>* p : places)
      if (known(p)) p->pack_to(answer);
  }

 private:
  void refuse(list_answer why, std::span<const std::byte> request) {
    pack(answer_, why);
    pack(answer_, static_cast<std::uint32_t>(request.size()));
    answer_.append(request);
  }

  packer& answer_;
  batch_rule rule_;
  bool refused_ = false;
  std::uint64_t moved_ = 0;
  std::vector<const owned_keys<Key>*> places_;
};

}  // namespace orrery::service
