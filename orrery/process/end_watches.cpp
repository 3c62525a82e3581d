// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/end_watches.hpp>

#include <orrery/scheduler/slot.hpp>

#include <algorithm>

namespace orrery::detail {

namespace {
constexpr std::size_t fewest = 16;
}

// Processes that were made one after the other have slots, and places, side by side.
std::size_t end_watches::place_of(const address& process) const noexcept { return process.slot & (chains_.size() - 1); }

void end_watches::add(slot& s, const address& process, end_watch& w) {
  const auto link = [this](end_watch& one) { one.next = std::exchange(chains_[place_of(one.process)], &one); };
  if (count_ >= chains_.size()) {
    std::vector<end_watch*> before(std::max(fewest, 2 * chains_.size()));
    before.swap(chains_);
    for (end_watch* chain : before)
      while (chain != nullptr) link(*std::exchange(chain, chain->next));
  }
  w.process = process;
  link(w);
  ++count_;
  s.watched = true;
}

bool end_watches::note(ending e) {
  if (count_ == 0) return false;
  const end_watch* w = chains_[place_of(e.process)];
  while (w != nullptr && (w->process != e.process || (w->number & end_watch::reported_too) != 0)) w = w->next;
  if (w == nullptr) return false;
  noted_.push_back(std::move(e));
  return true;
}

void end_watches::ended(const address& process) noexcept {
  ending e{process, end_cause::destroyed, {}};
  if (const auto at = std::ranges::find(noted_, process, &ending::process); at != noted_.end()) {
    e = std::move(*at);
    noted_.erase(at);
  }
  if (count_ == 0) return;
  end_watch* told = nullptr;  // the oldest first
  for (end_watch** at = &chains_[place_of(process)]; *at != nullptr;) {
    end_watch* const w = *at;
    if (w->process == process) {
      *at = w->next;
      w->next = std::exchange(told, w);
      --count_;
    } else {
      at = &w->next;
    }
  }
  while (told != nullptr) {
    end_watch* const w = std::exchange(told, told->next);
    w->end(of_, w, &e);
  }
}

void end_watches::drop_all() noexcept {
  count_ = 0;
  noted_.clear();
  for (end_watch* chain : std::exchange(chains_, {}))
    while (chain != nullptr) {
      end_watch* const w = std::exchange(chain, chain->next);
      w->end(of_, w, nullptr);
    }
}

}  // namespace orrery::detail
