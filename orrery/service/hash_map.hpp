// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/function.hpp>
#include <orrery/process/names.hpp>
#include <orrery/process/runtime.hpp>
#include <orrery/service/detail/hash_part.hpp>
#include <orrery/service/handle.hpp>
#include <orrery/service/reply.hpp>
#include <orrery/service/reply_session.hpp>
#include <orrery/service/root.hpp>
#include <orrery/wire/error.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orrery {

/// The reply to a request of a session. `done`: found, inserted, erased, updated; of
/// insert_or_update: inserted.
template <class Value>
struct map_reply : service_reply {
  std::optional<Value> value;  ///< of find
};

/// A client's way to use a hash map, as list_session is for ordered lists: `find(k)` parks until
/// the reply is there, `start_find(k)` makes the request and returns its number, and receive()
/// takes the replies to such requests.
template <class Key, class Value>
class map_session : public service::reply_session<map_reply<Value>> {
  using base = service::reply_session<map_reply<Value>>;

 public:
  map_session(remote<service::service_root> root, const session_options& o) : base(o) {
    if (o.order == consistency::total)
      throw usage_error(errc::bad_argument, "a hash map has no order of all requests: use `sequential`, or a list");
    const service::opening all = service::open_service(root, "hash map", service::types_in_words<Key, Value>());
    // in their order
    for (const service::directory_entry& e : all.directory) (void)this->add_route(e.owner);
    parts_ = static_cast<route_number>(all.directory.size());
    if (parts_ == 0) throw process_gone("a hash map that has ended");
  }
  /// Parks until all requests are answered.
  ~map_session() override { this->end(); }

  /// The value of the key, if it is there. Parks, as do the other four.
  [[nodiscard]] std::optional<Value> find(const Key& k) { return run(operation::find, k).value; }
  /// False, and nothing changes, if the key is there.
  bool insert(const Key& k, const Value& v) { return run(operation::insert, k, &v).done; }
  /// False if the key is not there.
  bool erase(const Key& k) { return run(operation::erase, k).done; }
  /// Gives the key another value; false if it is not there.
  bool update(const Key& k, const Value& v) { return run(operation::update, k, &v).done; }
  /// True if it was inserted, false if the key was there and has another value now.
  bool insert_or_update(const Key& k, const Value& v) { return run(operation::insert_or_update, k, &v).done; }

  /// As find; returns the number of the request. Parks while the window is full, as do the others.
  std::uint64_t start_find(const Key& k) { return request(operation::find, k); }
  /// As insert; returns the number of the request.
  std::uint64_t start_insert(const Key& k, const Value& v) { return request(operation::insert, k, &v); }
  /// As erase; returns the number of the request.
  std::uint64_t start_erase(const Key& k) { return request(operation::erase, k); }
  /// As update; returns the number of the request.
  std::uint64_t start_update(const Key& k, const Value& v) { return request(operation::update, k, &v); }
  /// As insert_or_update; returns the number of the request.
  std::uint64_t start_insert_or_update(const Key& k, const Value& v) {
    return request(operation::insert_or_update, k, &v);
  }

 private:
  using operation = service::list_operation;

  using typename base::number;
  using typename base::route_number;

  number request(operation o, const Key& k, const Value* v = nullptr) {
    this->check_unfetched();
    return make(o, k, v);
  }
  number make(operation o, const Key& k, const Value* v = nullptr) {
    key_.clear();
    service::pack(key_, k);
    const auto to = static_cast<route_number>(service::hash_of(key_.all()) % parts_);
    return base::make(to, [&](service::packer& p) {
      service::pack(p, o);
      p.append(key_.all());
      if (v != nullptr) service::pack(p, *v);
    });
  }
  map_reply<Value> run(operation o, const Key& k, const Value* v = nullptr) { return base::run(make(o, k, v)); }

  [[nodiscard]] std::string_view loss() const noexcept override {
    return "the keys that this hash map had there are lost with their values, and requests for other keys go on";
  }
  route_number route_of(service::unpacker& u) const override {
    const auto o = u.take<operation>();
    const std::byte* const begin = u.position();
    u.skip<Key>();
    const std::uint64_t hash = service::hash_of({begin, u.position()});
    if (has_value(o)) u.skip<Value>();
    return static_cast<route_number>(hash % parts_);
  }
  void read(service::unpacker& answers, map_reply<Value>& to, std::uint32_t pe) override {
    const auto what = answers.take<service::list_answer>();
    service::unpacker one = answers;
    service::skip_answer<Key, Value>(what, answers);
    to.done = what != service::list_answer::no && what != service::list_answer::failed;
    if (what == service::list_answer::value) to.value = one.take<Value>();
    if (what == service::list_answer::failed)
      to.error = decode_exception(one.take<wire_exception>(), {"orrery::hash_map", "a request", pe});
  }

  route_number parts_ = 0;
  service::packer key_;
};

/// A hash map as a service: keys without an order, spread over parts, each of which a process owns.
/// The second service: all but its parts and the face of its sessions is what ordered lists are
/// made of.
///
/// Keys are serializable, have a std::hash and `==`, and equal keys have equal bytes on the wire.
/// Those that have not, such as 0.0 and -0.0, are one key or two, as parts fall. Lives until end(),
/// or as long as its nodes.
///
///     auto map = orrery::hash_map<std::string, int>::make();
///     map.publish("/words");
///     auto s = map.open();
template <class Key, class Value>
class hash_map : public service::handle<hash_map<Key, Value>> {
 public:
  static constexpr const char* kind = "hash map";
  /// The types of keys and values, in words that all compilers agree on.
  [[nodiscard]] static std::string types() { return service::types_in_words<Key, Value>(); }
  /// The window of one client.
  using session = map_session<Key, Value>;

  hash_map() noexcept = default;

  /// Makes an empty map with so many parts on each of these PEs; none: those of the program that
  /// calls this (program_pes()). A program that leaves takes along what its PEs have. Parks. Throws
  /// usage_error, node_lost, stopped.
  [[nodiscard]] static hash_map make(std::vector<std::uint32_t> pes = {}, std::uint32_t parts = 4) {
    if (pes.empty()) pes = program_pes();
    for (const std::uint32_t p : pes) (void)pe(p).resolve();  // throws before anything is made
    if (parts == 0) throw usage_error(errc::bad_argument, "a hash map needs at least one part on each PE");
    hash_map map(spawn<service::service_root>(here(), kind, types(), pes));
    base::make_or_end(map, [&] {
      for (std::uint32_t i = 0; i < parts; ++i)
        for (const std::uint32_t p : pes) map.root_->add({}, spawn<service::hash_part<Key, Value>>(pe(p)), 0);
    });
    return map;
  }
  /// A session for the calling process. Parks. Throws as ordered_list::open.
  [[nodiscard]] session open(const session_options& o = {}) const { return session(root_, o); }
  /// The number of items. Not at one moment. Parks.
  [[nodiscard]] std::uint64_t size() const { return this->count_items(); }

 private:
  using base = service::handle<hash_map>;
  friend base;
  using base::root_;

  explicit hash_map(remote<service::service_root> root) noexcept : base(root) {}
};

}  // namespace orrery
