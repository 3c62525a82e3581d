// SPDX-License-Identifier: Apache-2.0
// Who is there: signs of life, suspicions, and evictions, which the first node decides.
#include <orrery/transport/mpi/carrier.hpp>

#include <algorithm>
#include <functional>

#include <fmt/format.h>

namespace orrery::transport {

namespace {

constexpr std::size_t longest_clause = 512;
constexpr std::int64_t life_signs = 5;  // in the time after which a node is lost

// A clause of another node, for people.
std::string text_of(std::span<const std::byte> payload) {
  std::string text(reinterpret_cast<const char*>(payload.data()), std::min(payload.size(), longest_clause));
  std::ranges::replace_if(text, [](char c) { return c < ' ' || c > '~'; }, '?');
  return text;
}

}  // namespace

// --- signs of life -------------------------------------------------------------------------------

// A network may be cut between two nodes that both reach the first one: those that talk to each
// other watch each other.
void mpi_carrier::watch(peer& p) {
  if (p.watched) return;
  p.watched = true;
  p.heard_ns = time_();
  if (debugged_) give_sign(p);
}

void mpi_carrier::look_for_debugger(std::function<bool()> is_debugged) noexcept {
  const std::scoped_lock lock{mutex_};
  is_debugged_ = std::move(is_debugged);
}

void mpi_carrier::miss_silent(bool on) noexcept {
  const std::scoped_lock lock{mutex_};
  misses_silent_ = on;
  const std::int64_t now = time_();
  for (peer& p : peers_) p.heard_ns = now;
}

// Nodes that watch this one hear at once that a debugger holds it: it may be stopped soon. Signs
// say again whether one does, as others begin to watch it later.
void mpi_carrier::give_signs(std::int64_t now) {
  bool changed = false;
  if (is_debugged_ && now - debugger_looked_for_ns_ >= patience_ns_ / (2 * life_signs)) {
    debugger_looked_for_ns_ = now;
    changed = is_debugged_() != debugged_;
    debugged_ = debugged_ != changed;
  }
  for (peer& p : peers_) {
    // A node that has left waits for this node.
    if (p.closed || (p.left && has_left_) || !p.watched) continue;
    if (changed || now - p.said_ns >= patience_ns_ / life_signs) give_sign(p);
  }
}

void mpi_carrier::give_sign(peer& to) { queue_news(to, node_news::here, map_.own(), {}, debugged_); }

// A node that was stopped itself cannot tell which ones were silent. The first node is to find by
// itself who is silent for all.
//
// The first node may know of a debugger, and does nothing then. The debugger may have gone without
// a word to this node, between which and the silent one the network is cut. So this node tells the
// first one of silence again and again, whatever it knows itself of a debugger.
void mpi_carrier::look_for_silent(std::int64_t now) {
  if (now - last_tick_ns_ > patience_ns_ / 2)
    for (peer& p : peers_) p.heard_ns = now;
  for (peer& p : peers_) {
    const bool decides = map_.own() == 0 || p.node == 0;
    const std::int64_t limit = decides ? patience_ns_ : patience_ns_ + patience_ns_ / 2;
    if (!p.watched || p.closed || p.left || p.suspected || (decides && p.debugged)) continue;
    if (now - std::max(p.heard_ns, p.missed_ns) < limit) continue;
    p.missed_ns = now;
    const double ms = static_cast<double>((now - p.heard_ns) / limit * limit) / 1e6;
    suspect(p.node, fmt::format("was silent for {} ms", ms), true);
  }
}

// Others may not have heard that a debugger holds it, or that it goes on without one. They tell
// again if it stays silent.
bool mpi_carrier::may_be_silent(const peer& p) const {
  return p.debugged || time_() - p.debugged_until_ns < patience_ns_;
}

void mpi_carrier::queue_news(peer& to, node_news news, std::uint32_t about, std::string_view how, bool flag) {
  queue(to, {section_kind::state, 0, about, 0, flag ? 1U : 0U, static_cast<std::uint64_t>(news)},
        std::as_bytes(std::span(how.substr(0, longest_clause))));
}

void mpi_carrier::say(node_news news) noexcept {
  const std::scoped_lock lock{mutex_};
  if (news == node_news::left) has_left_ = true;
  for (peer& p : peers_) queue_news(p, news, map_.own());
  (void)work(true);
}

mpi_carrier::fault mpi_carrier::receive_state(peer& from, const frame_reader::item& item) {
  const std::uint32_t about = item.head.from_pe;
  switch (static_cast<node_news>(item.head.word)) {
    case node_news::here:
      watch(from);  // who gives signs of life waits for some
      if (from.debugged && item.head.position == 0) from.debugged_until_ns = time_();
      from.debugged = item.head.position != 0;
      return {};
    case node_news::leaving:
      members_.change(from.node, node_state::leaving);
      return {};
    case node_news::left:
      from.left = true;
      from.rings.clear();
      forget_question(from.node);
      members_.change(from.node, node_state::left);
      return {};
    case node_news::suspect:
      if (map_.own() != 0 || about == 0 || about >= peers_.size() || about == from.node) break;
      if (item.head.position == 0 || !may_be_silent(peers_[about]))
        suspect(about, fmt::format("{} (seen by node {})", text_of(item.payload), from.node));
      return {};
  }
  return fmt::format("news {} of node {}, which cannot be", item.head.word, about);
}

// --- evictions -----------------------------------------------------------------------------------

void mpi_carrier::report_lost(std::uint32_t node, std::string_view how) noexcept {
  const std::scoped_lock lock{mutex_};
  suspect(node, how);
}

// The first node decides who is lost. Others tell it what they have seen.
void mpi_carrier::suspect(std::uint32_t node, std::string_view how, bool silent) {
  peer& p = peers_[node];
  if (p.closed || p.left || p.suspected) return;
  if (map_.own() == 0) {
    evict(node, how);
    return;
  }
  p.suspected = !silent || node == 0;  // what is more than silence is not ignored, and told once
  if (node == 0) {
    fatal_(fmt::format("the first node of the world {}: node {} ends too", how, map_.own()));
    return;
  }
  queue_news(peers_[0], node_news::suspect, node, how, silent);
}

void mpi_carrier::refuse(peer& from, const fault& why) {
  from.damaged = true;
  for (const arrival& a : arrivals_)  // it does not begin any more
    if (a.node == from.node && !a.offset) slow_memory_.forget(a.number);
  suspect(from.node, fmt::format("has sent node {} {}", map_.own(), why));
}

void mpi_carrier::evict(std::uint32_t node, std::string_view how) {
  evictions_.push_back({node, std::string(how)});
  evictions_known_.store(evictions_.size(), std::memory_order_relaxed);
  peer& p = peers_[node];
  p.suspected = true;
  if (map_.own() == 0) tell_evictions(p);  // if it lives, it ends when it hears of it
  p.closed = true;
  p.rings.clear();
  p.controls.clear();
  p.pieces.clear();
  forget_question(node);
  forget_arrivals_of(node);
  members_.change(node, node_state::dead, how);
  if (map_.own() == 0)
    for (peer& other : peers_) tell_evictions(other);
}

// The first node tells all others at once; these tell each other when they have something else to
// say.
void mpi_carrier::tell_evictions(peer& to) {
  while (!to.closed && to.told < evictions_.size()) {
    frame f = new_frame();
    for (; to.told < evictions_.size(); ++to.told) {
      const eviction& e = evictions_[to.told];
      const std::string_view how = std::string_view(e.how).substr(0, longest_clause);
      if (!f.fits(how.size())) break;
      std::byte* const at =
          f.add({section_kind::eviction, static_cast<std::uint32_t>(how.size()), e.node, 0, to.told + 1, 0});
      std::memcpy(at, how.data(), how.size());
    }
    (void)transmit(to, std::move(f));
  }
}

mpi_carrier::fault mpi_carrier::receive_eviction(peer& from, const frame_reader::item& item) {
  const std::uint64_t number = item.head.position;
  const std::uint32_t node = item.head.from_pe;
  const std::size_t known = evictions_.size();
  const bool is_new = number == known + 1 && map_.own() != 0 &&
                      std::ranges::none_of(evictions_, [&](const eviction& e) { return e.node == node; });
  const bool is_known = number != 0 && number <= known && evictions_[number - 1].node == node;
  if (node == 0 || node >= peers_.size() || (!is_new && !is_known))
    return fmt::format("eviction {} of node {}, which the first node has not decided", number, node);
  if (is_known) return {};
  const std::string how = text_of(item.payload);
  if (node == map_.own()) {
    fatal_(fmt::format("node {} is taken for lost by the first node of the world, as it {}: it ends", node, how));
    return {};
  }
  evict(node, how);
  if (from.node != 0) peers_[0].told = evictions_.size();
  return {};
}

}  // namespace orrery::transport
