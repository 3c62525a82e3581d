// SPDX-License-Identifier: Apache-2.0
#include <orrery/array/detail/order.hpp>

#include <orrery/array/detail/message_sections.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <boost/unordered/unordered_flat_map.hpp>

#include <cstring>
#include <iterator>
#include <map>
#include <string>

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

// A line, on the way to another PE.
struct line_record {
  std::string key;
  outbox::line to;
  template <class A>
  void serialize(A& a) {
    a & key & to.stream & to.closer & to.sent;
  }
};

}  // namespace

// --- the sender's half ---------------------------------------------------------------------------

struct outbox::table {
  boost::unordered_flat_map<std::string, line> all;
};

outbox::outbox() noexcept = default;
outbox::outbox(outbox&&) noexcept = default;
outbox& outbox::operator=(outbox&&) noexcept = default;
outbox::~outbox() = default;

bool outbox::empty() const noexcept { return lines_ == nullptr || lines_->all.empty(); }

outbox::line& outbox::to(pe& self, std::uint32_t array, const bytes& index, const array_handler& closer) {
  if (lines_ == nullptr) lines_ = wire::make_unique<table>();
  line& l = lines_->all[key_of(array, index)];
  if (l.stream == 0) l = {array_directory::of(self).new_stream(), closer.index, 0};
  return l;
}

void outbox::forget(std::uint32_t array) {
  if (lines_ == nullptr) return;
  boost::unordered::erase_if(lines_->all, [&](const auto& l) { return array_of(l.first) == array; });
}

void outbox::close(pe& self) noexcept try {
  const wire::unique_ptr<table> lines = std::exchange(lines_, nullptr);
  if (lines == nullptr) return;
  for (const auto& [key, l] : lines->all)
    if (const auto* const h = static_cast<const array_handler*>(scheduler::find_handler(l.closer));
        l.sent != 0 && h != nullptr)
      h->close(self, array_of(key), std::string_view(key).substr(sizeof(std::uint32_t)), {l.stream, l.sent + 1});
} catch (...) {
  self.failures().report("the end of messages whose order is kept", std::current_exception());
}

bytes outbox::write() const {
  std::vector<line_record> all;
  if (lines_ != nullptr)
    for (const auto& [key, l] : lines_->all) all.push_back({key, l});
  return pack(0, all);
}

void outbox::read(const bytes& all) {
  lines_.reset();
  reader r(all);
  auto lines = orrery::read<std::vector<line_record>>(r);
  if (lines.empty()) return;
  lines_ = wire::make_unique<table>();
  for (line_record& t : lines) lines_->all.insert_or_assign(std::move(t.key), t.to);
}

// --- the receiver's half -------------------------------------------------------------------------

struct inbox::stream {
  std::uint64_t next = 1;
  std::map<std::uint64_t, scheduler::message*> held;
  std::map<std::uint64_t, std::uint64_t> failed;  // ranges of numbers: from, to behind the last
  void skip() noexcept {
    for (auto it = failed.begin(); it != failed.end() && it->first <= next; ++it)
      if (it->second > next) next = it->second;
  }
};
struct inbox::table {
  boost::unordered_flat_map<std::uint64_t, stream> all;
};

inbox::inbox() : streams_(wire::make_unique<table>()) {}
inbox::~inbox() = default;

inbox::stream& inbox::at(std::uint64_t number) { return streams_->all[number]; }

bool inbox::empty() const noexcept { return streams_->all.empty(); }

bool inbox::in_turn(order_tag t) const noexcept {
  const auto it = streams_->all.find(t.stream);
  return t.number <= (it != streams_->all.end() ? it->second.next : 1);
}

void inbox::passed(order_tag t) {
  stream& s = at(t.stream);
  if (s.next <= t.number) s.next = t.number + 1;
  s.skip();
}

void inbox::hold(order_tag t, scheduler::message* m) { at(t.stream).held.emplace(t.number, m); }

void inbox::end(std::uint64_t number) { streams_->all.erase(number); }

void inbox::merge(const counts& other) {
  for (const count& c : other) {
    stream& s = at(c.stream);
    s.failed.insert(c.failed.begin(), c.failed.end());
    if (c.next > s.next) s.next = c.next;
    s.skip();
  }
}

bool inbox::has_next(std::uint64_t stream) const noexcept {
  const auto it = streams_->all.find(stream);
  return it != streams_->all.end() && !it->second.held.empty() && it->second.held.begin()->first <= it->second.next;
}

scheduler::message* inbox::take_next(std::uint64_t stream) {
  if (!has_next(stream)) return nullptr;
  auto& held = streams_->all.find(stream)->second.held;
  scheduler::message* m = held.begin()->second;
  held.erase(held.begin());
  return m;
}

scheduler::message* inbox::take_held(scheduler::message* rest) {
  for (auto& [name, s] : streams_->all) {
    for (auto it = s.held.rbegin(); it != s.held.rend(); ++it) {
      it->second->next = rest;
      rest = it->second;
    }
    s.held.clear();
  }
  return rest;
}

void inbox::failed(order_tag t) {
  auto& ranges = at(t.stream).failed;
  auto it = ranges.upper_bound(t.number);
  if (it != ranges.begin() && std::prev(it)->second == t.number) {
    ++std::prev(it)->second;
  } else {
    ranges.emplace(t.number, t.number + 1);
  }
}

void inbox::rewind(order_tag t) {
  if (t.stream == 0) return;
  stream& s = at(t.stream);
  if (t.number < s.next) s.next = t.number;
}

void inbox::rewind(const scheduler::message* list) {
  for (; list != nullptr; list = list->next) {
    const auto* h = reinterpret_cast<const scheduler::handler*>(list->head.handler);
    if (h->route == nullptr) continue;
    if (const auto tag_of = static_cast<const array_handler*>(h)->tag_of) rewind(tag_of(*list));
  }
  for (auto& [name, s] : streams_->all)  // what came before them is done with
    std::erase_if(s.failed, [&](const auto& range) { return range.second <= s.next; });
}

inbox::counts inbox::all() const {
  counts c;
  for (const auto& [name, s] : streams_->all) c.push_back({name, s.next, {s.failed.begin(), s.failed.end()}});
  return c;
}

}  // namespace orrery::detail
