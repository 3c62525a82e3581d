// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/internal/name_records.hpp>

#include <orrery/scheduler/node.hpp>
#include <orrery/transport/carrier.hpp>
#include <orrery/wire/error.hpp>
#include <orrery/wire/serialize.hpp>

#include <algorithm>
#include <limits>
#include <utility>

#include <xxhash.h>

namespace orrery::detail {

void digest::add(std::uint64_t name, const address& process) noexcept {
  const std::uint64_t words[3] = {name, process.pe, std::uint64_t{process.slot} << 32 | process.generation};
  ++count;
  sum += XXH3_64bits(words, sizeof words);
}

namespace {

transport::carrier* carrier_of(const scheduler::node& n) {
  return n.world() != nullptr ? n.world()->carrier() : nullptr;
}

}  // namespace

name_records::name_records(const scheduler::node& owner, membership_cache* cache)
    : node_(owner),
      cache_(cache),
      board_(owner.world() != nullptr ? owner.world()->shared() : nullptr,
             [this](std::size_t room) { return list(room); }) {
  // A world of several machines has no boards: it asks when a tool does. The records outlive it.
  if (transport::carrier* const c = carrier_of(owner)) {
    constexpr std::size_t lengths = 64;  // of the lists themselves
    c->show_names([this](std::size_t room) { return encode_names(list(room - lengths)); });
  }
}

void name_records::look(bool sure) {
  if (members_ != nullptr && !sure && seems_current(node_, *members_)) return;
  membership_ptr now;
  if (cache_ == nullptr) {
    now = read_membership(node_, members_);
  } else {
    if (cache_->last == nullptr || !seems_current(node_, *cache_->last))
      cache_->last = read_membership(node_, members_);
    now = cache_->last;
  }
  const bool moved = members_ == nullptr || now->id != members_->id;
  members_ = std::move(now);
  if (!moved) return;
  for (auto& [name, r] : records_) r.owner = owner_of(r.hash, members_->keepers);
}

membership_ptr name_records::members(bool sure) {
  const std::lock_guard lock(mutex_);
  look(sure);
  return members_;
}

bool name_records::is_current(std::uint64_t membership) {
  const std::lock_guard lock(mutex_);
  look(true);
  return members_->id == membership;
}

name_records::record name_records::claim(std::string_view name, const address& process,
                                         const scheduler::class_info& cls) {
  const std::lock_guard lock(mutex_);
  look(false);
  if (const auto it = records_.find(name); it != records_.end()) return it->second;
  const std::uint64_t hash = hash_of(name);
  auto& names = of_process_[process];
  names.emplace_back(name);
  const record r{process, &cls, hash, owner_of(hash, members_->keepers), false};
  records_.emplace(name, r);
  return r;
}

name_records::outcome name_records::confirm(std::string_view name, const address& process, std::uint64_t membership) {
  const std::lock_guard lock(mutex_);
  look(true);
  const auto it = records_.find(name);
  if (it == records_.end() || it->second.process != process) return outcome::gone;
  if (members_->id != membership) return outcome::moved;
  it->second.confirmed = true;
  board_.changed();
  return outcome::done;
}

bool name_records::drop(std::string_view name, const address& process) {
  const std::lock_guard lock(mutex_);
  const auto it = records_.find(name);
  if (it == records_.end() || it->second.process != process) return false;
  records_.erase(it);
  board_.changed();
  const auto of = of_process_.find(process);
  std::erase(of->second, name);
  if (of->second.empty()) of_process_.erase(of);
  return true;
}

std::vector<std::string> name_records::take(const address& process) {
  const std::lock_guard lock(mutex_);
  const auto of = of_process_.find(process);
  if (of == of_process_.end()) return {};
  std::vector<std::string> names = std::move(of->second);
  of_process_.erase(of);
  for (const std::string& name : names) records_.erase(name);
  board_.changed();
  return names;
}

names_on_board name_records::list(std::size_t room) {
  const std::lock_guard lock(mutex_);
  names_on_board all;
  std::unordered_map<const scheduler::class_info*, std::uint32_t> classes;
  std::size_t bytes = orrery::wire_size(all);
  for (const auto& [name, r] : records_) {
    if (!r.confirmed) continue;
    ++all.total;
    const auto cls = classes.find(r.cls);
    const bool fresh = cls == classes.end();
    std::string class_name(fresh ? r.cls->name : std::string_view{});
    name_on_board n{name, r.process, fresh ? static_cast<std::uint32_t>(classes.size()) : cls->second};
    bytes += orrery::wire_size(n) + (fresh ? orrery::wire_size(class_name) : 0);
    if (bytes > room) continue;  // and all that follow; they are counted
    if (fresh) {
      classes.emplace(r.cls, n.cls);
      all.classes.push_back(std::move(class_name));
    }
    all.names.push_back(std::move(n));
  }
  return all;
}

pulled name_records::answer(const pull& request) {
  std::uint64_t pes = 0;
  for (const member& m : request.base) pes += m.pe_count;
  if (pes > node_.world_pes() || request.part.index >= std::max(1U, request.part.count))
    throw bad_message(errc::message_corrupt, "a shard asks for names");

  const std::lock_guard lock(mutex_);
  look(true);
  pulled a;
  if (members_->id != request.membership) {
    a.retry = true;
    return a;
  }
  const bool first = request.part.count == 0;
  std::size_t moved = 0;
  digest kept;
  bool pending = false;
  std::vector<const decltype(records_)::value_type*> owned;
  for (const auto& entry : records_) {
    const record& r = entry.second;
    if (r.owner != request.shard || !request.part.has(r.hash)) continue;
    const bool had = owner_of(r.hash, request.base) == request.shard;
    if (had && first) {
      kept.add(r.hash, r.process);
      pending = pending || !r.confirmed;
    }
    if (!had) ++moved;
    // Those that moved come first.
    owned.push_back(&entry);
    if (!had) std::swap(owned[moved - 1], owned.back());
  }
  a.whole = first ? pending || kept != request.kept : request.whole;
  if (!a.whole) owned.resize(moved);
  slice part = request.part;
  if (first) {
    a.slices = static_cast<std::uint32_t>(owned.size() / names_per_answer + 1);
    part = {0, a.slices};
  }
  std::unordered_map<const scheduler::class_info*, std::uint32_t> classes;
  for (const auto* entry : owned) {
    const record& r = entry->second;
    if (!part.has(r.hash)) continue;
    const auto [cls, fresh] = classes.emplace(r.cls, static_cast<std::uint32_t>(classes.size()));
    if (fresh) a.classes.push_back(chain_of(*r.cls));
    a.names.push_back({entry->first, r.process, cls->second, r.confirmed});
  }
  return a;
}

}  // namespace orrery::detail
