// SPDX-License-Identifier: Apache-2.0
#include <orrery/shared/detail/region.hpp>
#include <orrery/shared/detail/team_gather.hpp>
#include <orrery/shared/read_cache.hpp>
#include <orrery/wire/error.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <new>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace orrery::detail {

namespace {
constexpr std::align_val_t copy_alignment{64};

class no_memory_for_copy final : public std::bad_alloc {
 public:
  explicit no_memory_for_copy(std::string text) : text_(std::move(text)) {}
  [[nodiscard]] const char* what() const noexcept override { return text_.c_str(); }

 private:
  std::string text_;
};

std::byte* aligned_memory(const shared_object& o, std::uint64_t bytes) {
  return memory_for_copy(o, bytes, [&] { return static_cast<std::byte*>(::operator new(bytes, copy_alignment)); });
}

}  // namespace

void throw_no_memory(const shared_object& o, std::uint64_t bytes, std::string_view copy, std::string_view instead) {
  throw no_memory_for_copy(fmt::format("{}: a {} of it needs {} bytes of memory, which cannot be had; {}",
                                       o.about.label, copy, bytes, instead));
}

void cache_scope::free_copy::operator()(std::byte* p) const noexcept { ::operator delete(p, copy_alignment); }

cache_scope::cache_scope(const cache_request& r)
    : row_(r.row),
      rows_(r.rows),
      column_(r.column),
      columns_(r.columns),
      pitch_(r.columns),
      object_(hold_object(r.id)),
      is_view_(r.in_place) {
  const region all{r.row, r.rows, r.column, r.columns};
  require_inside(*object_, all);
  if (r.together != nullptr) require_owners(*object_);  // all members need it
  require_owners(*object_, r.row, r.rows, r.column, r.columns);
  const region_in_place memory = r.in_place ? find_in_place(*object_, all) : region_in_place{};
  const bool in_place = memory.first != nullptr;
  if (in_place) guard_.begin(object_, scope_guard::kind::view, r.where, {r.row, r.rows, r.column, r.columns});
  const std::uint64_t row_bytes = r.columns * object_->element_bytes();
  if (r.together != nullptr) {
    copy_.reset(aligned_memory(*object_, r.rows * row_bytes));
    first_ = copy_.get();
    watch_.begin(object_, access_kind::read, r.where, "read_cache");
    gather_ = wire::make_unique<team_gather>();
    gather_->begin(*r.together, object_, all, copy_.get(), row_bytes);
    if (watch_)  // each member reads what it sends
      for (const part_region& w : gather_->own_pieces())
        watch_.add_rows(object_->how().rows.walk(object_->how().row_part(w.part), w.row, w.row + w.rows),
                        object_->how().columns.index(object_->how().column_part(w.part), w.column), w.columns);
    watch_.end();
    return;
  }
  watch_.begin(object_, access_kind::read, r.where, r.in_place ? "read_view" : "read_cache");
  if (watch_) {
    for (std::uint64_t i = r.row; i < r.row + r.rows; ++i) watch_.add(i, r.column, r.columns);
    if (r.in_place) watch_.is_view();
  }
  if (in_place) {
    first_ = memory.first;
    pitch_ = memory.pitch;
    return;
  }
  copy_.reset(aligned_memory(*object_, r.rows * row_bytes));
  first_ = copy_.get();
  reader_ = wire::make_unique<region_reader>();
  reader_->begin(object_, all, copy_.get(), row_bytes);
}

void cache_scope::throw_rows_apart() const {
  throw usage_error(errc::bad_argument,
                    fmt::format("{}: span() of a view whose rows do not follow each other in memory, as it is of some "
                                "columns, or there is room for a halo; take row(i), or a read_cache",
                                object_->about.label));
}

cache_scope::~cache_scope() = default;

void cache_scope::ready() {
  if (gather_ != nullptr) gather_->finish();
  gather_.reset();
  if (reader_ != nullptr) reader_->finish();
  reader_.reset();
  if (copy_ != nullptr && !is_view_) watch_.end();  // what others write from now on does not matter
}

void cache_scope::close() {
  watch_.end();
  guard_.end();
  copy_.reset();
}

}  // namespace orrery::detail
