// SPDX-License-Identifier: Apache-2.0
#include <orrery/array/order.hpp>

#include <cstring>
#include <iterator>

namespace orrery::detail {

namespace {

std::string key_of(std::uint32_t array, const bytes& index) {
  std::string key(sizeof array + index.size(), '\0');
  std::memcpy(key.data(), &array, sizeof array);
  if (!index.empty()) std::memcpy(key.data() + sizeof array, index.data(), index.size());
  return key;
}
std::uint32_t array_of(const std::string& key) noexcept {
  std::uint32_t array = 0;
  std::memcpy(&array, key.data(), sizeof array);
  return array;
}

}  // namespace

// --- the sender's half ---------------------------------------------------------------------------

outbox::line& outbox::to(pe& self, std::uint32_t array, const bytes& index, const array_handler& closer) {
  line& l = lines_[key_of(array, index)];
  if (l.stream == 0) l = {array_directory::of(self).new_stream(), closer.index, 0};
  return l;
}

void outbox::forget(std::uint32_t array) {
  boost::unordered::erase_if(lines_, [&](const auto& l) { return array_of(l.first) == array; });
}

void outbox::close(pe& self) noexcept try {
  for (const auto& [key, l] : std::exchange(lines_, {}))
    if (const auto* const h = static_cast<const array_handler*>(scheduler::find_handler(l.closer));
        l.sent != 0 && h != nullptr)
      h->close(self, array_of(key), std::string_view(key).substr(sizeof(std::uint32_t)), {l.stream, l.sent + 1});
} catch (...) {
  self.failures().report("the end of messages whose order is kept", std::current_exception());
}

// --- the receiver's half -------------------------------------------------------------------------

bool inbox::has_next(std::uint64_t stream) const noexcept {
  const auto it = streams_.find(stream);
  return it != streams_.end() && !it->second.held.empty() && it->second.held.begin()->first <= it->second.next;
}

scheduler::message* inbox::take_next(std::uint64_t stream) {
  if (!has_next(stream)) return nullptr;
  auto& held = streams_.find(stream)->second.held;
  scheduler::message* m = held.begin()->second;
  held.erase(held.begin());
  return m;
}

scheduler::message* inbox::take_held(scheduler::message* rest) {
  for (auto& [name, s] : streams_) {
    for (auto it = s.held.rbegin(); it != s.held.rend(); ++it) {
      it->second->next = rest;
      rest = it->second;
    }
    s.held.clear();
  }
  return rest;
}

void inbox::failed(order_tag t) {
  auto& ranges = streams_[t.stream].failed;
  auto it = ranges.upper_bound(t.number);
  if (it != ranges.begin() && std::prev(it)->second == t.number) {
    ++std::prev(it)->second;
  } else {
    ranges.emplace(t.number, t.number + 1);
  }
}

void inbox::rewind(order_tag t) {
  if (t.stream == 0) return;
  auto& s = streams_[t.stream];
  if (t.number < s.next) s.next = t.number;
}

void inbox::rewind(const scheduler::message* list) {
  for (; list != nullptr; list = list->next) {
    const auto* h = reinterpret_cast<const scheduler::handler*>(list->head.handler);
    if (h->route == nullptr) continue;
    if (const auto tag_of = static_cast<const array_handler*>(h)->tag_of) rewind(tag_of(*list));
  }
  for (auto& [name, s] : streams_)  // what came before them is done with
    std::erase_if(s.failed, [&](const auto& range) { return range.second <= s.next; });
}

inbox::counts inbox::all() const {
  counts c;
  for (const auto& [name, s] : streams_) c.push_back({name, s.next, s.failed});
  return c;
}

}  // namespace orrery::detail
