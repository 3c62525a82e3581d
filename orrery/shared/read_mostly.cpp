// SPDX-License-Identifier: Apache-2.0
#include <orrery/shared/detail/replica.hpp>
#include <orrery/shared/detail/shared_directory.hpp>
#include <orrery/shared/read_mostly.hpp>

#include <cstring>

namespace orrery::detail {

read_mostly_scope::read_mostly_scope(const read_mostly_request& r)
    : size_(r.size), object_(hold_object(r.id)), where_(r.where) {
  require_owners(*object_);
  guard_.begin(object_, scope_guard::kind::write, r.where);
  first_ = object_->in_order;
  everywhere_ = first_ != nullptr && one_domain();
  if (first_ == nullptr) replica_ = shared_directory::of_this_pe().replicas.join(object_);
  watch_.begin(object_, access_kind::element_read, r.where, "read_mostly");
  if (watch_) watch_.add(0, 0, size_);
}

read_mostly_scope::~read_mostly_scope() { close(); }

void read_mostly_scope::ready() {
  if (replica_ == nullptr) return;
  replica_->await();
  first_ = replica_->elements();
}

void read_mostly_scope::close() noexcept {
  if (object_ == nullptr) return;
  if (replica_ != nullptr) shared_directory::of_this_pe().replicas.leave(replica_);
  replica_.reset();
  watch_.end();
  guard_.end();
  object_.reset();
}

void read_mostly_scope::read_bytes(std::uint64_t i, void* out) const {
  if (i >= size_) throw_outside(*object_, i, 0);
  const std::byte* const at = first_ + i * object_->element_bytes();
  if (replica_ != nullptr) {
    std::memcpy(out, at, object_->element_bytes());  // only this PE writes it
  } else {
    load_here(*object_, at, out);
  }
}

void read_mostly_scope::note(std::uint64_t i) const {
  if (object_->watched) [[unlikely]]
    note_element(*object_, i, 0, access_kind::update, where_);
}

void read_mostly_scope::write_bytes(std::uint64_t i, const void* value) const {
  note(i);
  if (everywhere_ && !object_->watched) return write_element(object_->about.id, i, 0, value, where_);
  write_replicated(*object_, i, value);
}

void read_mostly_scope::change_bytes(std::uint64_t i, element_change what, scalar type, const void* operand,
                                     void* old) const {
  note(i);
  if (everywhere_ && !object_->watched)
    return change_element(object_->about.id, i, 0, what, type, operand, old, where_);
  change_replicated(*object_, i, what, type, operand, old);
}

bool read_mostly_scope::compare_exchange_bytes(std::uint64_t i, void* expected, const void* desired) const {
  note(i);
  if (everywhere_ && !object_->watched)
    return compare_exchange_element(object_->about.id, i, 0, expected, desired, where_);
  return compare_exchange_replicated(*object_, i, expected, desired);
}

}  // namespace orrery::detail
