// SPDX-License-Identifier: Apache-2.0
#include <orrery/files/hdf5/library.hpp>

#include <orrery/process/detail/nearest.hpp>

#include <algorithm>
#include <iterator>
#include <string_view>

#include <fmt/ranges.h>

namespace orrery::hdf5 {

std::mutex& library_mutex() {
  static std::mutex one_at_a_time;
  return one_at_a_time;
}

std::string reason() {
  std::string text;
  const auto take = [](unsigned n, const H5E_error2_t* e, void* to) -> herr_t {
    if (n == 0 && e->desc != nullptr) *static_cast<std::string*>(to) = e->desc;
    return 0;
  };
  (void)H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take, &text);
  return text.empty() ? "the library does not say why" : text;
}

std::vector<std::string> datasets_of(hid_t file) {
  std::vector<std::string> names;
  const auto take = [](hid_t, const char* name, const H5O_info_t* info, void* to) -> herr_t {
    if (info->type == H5O_TYPE_DATASET) static_cast<std::vector<std::string>*>(to)->push_back(fmt::format("/{}", name));
    return 0;
  };
#if H5_VERSION_GE(1, 12, 0)
  (void)H5Ovisit3(file, H5_INDEX_NAME, H5_ITER_INC, take, &names, H5O_INFO_BASIC);
#else
  (void)H5Ovisit2(file, H5_INDEX_NAME, H5_ITER_INC, take, &names, H5O_INFO_BASIC);
#endif
  return names;
}

void no_such_dataset(const std::string& path, const std::string& wanted, std::vector<std::string> all,
                     const std::string& option) {
  std::string hint = "it has no datasets";
  if (!all.empty()) {
    orrery::detail::suggestions like(wanted);
    for (const std::string& name : all) like.consider(name);
    hint = like.best().empty() ? std::string() : fmt::format("did you mean {}? ", like.best().front().name);
    constexpr std::size_t most = 20;
    const std::size_t more = all.size() > most ? all.size() - most : 0;
    all.resize(std::min(all.size(), most));
    hint += fmt::format("there {} {}{}", all.size() == 1 ? "is" : "are", fmt::join(all, ", "),
                        more > 0 ? fmt::format(" and {} more", more) : "");
  }
  throw std::invalid_argument(wanted.empty() ? fmt::format("{}: say which {}: {}", path, option, hint)
                                             : fmt::format("{} has no dataset {}: {}", path, wanted, hint));
}

std::string absolute(const std::string& name) { return name.starts_with('/') ? name : "/" + name; }

bool is_there(hid_t file, const std::string& name) {
  for (std::size_t end = name.find('/', 1);; end = name.find('/', end + 1)) {
    if (H5Lexists(file, name.substr(0, end).c_str(), H5P_DEFAULT) <= 0) return false;
    if (end == std::string::npos) return H5Oexists_by_name(file, name.c_str(), H5P_DEFAULT) > 0;
  }
}

std::string name_of(const number& n) {
  const char* const kind = n.kind == 'i' ? "int" : n.kind == 'u' ? "uint" : n.kind == 'f' ? "float" : "complex";
  return fmt::format("{}{}", kind, 8 * n.bytes);
}

namespace {

hid_t native(char kind, std::size_t bytes) {
  if (kind == 'f') return bytes == 4 ? H5T_NATIVE_FLOAT : H5T_NATIVE_DOUBLE;
  const bool sign = kind == 'i';
  switch (bytes) {
    case 1:
      return sign ? H5T_NATIVE_INT8 : H5T_NATIVE_UINT8;
    case 2:
      return sign ? H5T_NATIVE_INT16 : H5T_NATIVE_UINT16;
    case 4:
      return sign ? H5T_NATIVE_INT32 : H5T_NATIVE_UINT32;
    default:
      return sign ? H5T_NATIVE_INT64 : H5T_NATIVE_UINT64;
  }
}

}  // namespace

handle memory_type(const number& n) {
  if (n.kind != 'c') return {H5Tcopy(native(n.kind, n.bytes)), &H5Tclose};
  handle h(H5Tcreate(H5T_COMPOUND, n.bytes), &H5Tclose);
  (void)checked(H5Tinsert(h, n.real.c_str(), 0, native('f', n.bytes / 2)), "HDF5");
  (void)checked(H5Tinsert(h, n.imaginary.c_str(), n.bytes / 2, native('f', n.bytes / 2)), "HDF5");
  return h;
}

namespace {

// As libraries call the parts of a complex number, in capitals or not.
bool are_parts(std::string real, std::string imaginary) {
  for (std::string* name : {&real, &imaginary})
    for (char& c : *name) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
  constexpr std::pair<std::string_view, std::string_view> known[] = {
      {"r", "i"}, {"re", "im"}, {"real", "imag"}, {"real", "imaginary"}};
  return std::ranges::find(known, std::pair<std::string_view, std::string_view>(real, imaginary)) != std::end(known);
}

}  // namespace

std::string name_of_class(H5T_class_t c) {
  switch (c) {
    case H5T_STRING:
      return "strings";
    case H5T_COMPOUND:
      return "records";
    case H5T_ENUM:
      return "booleans, or of another enumeration";
    case H5T_REFERENCE:
      return "references";
    case H5T_VLEN:
      return "lists of different lengths";
    case H5T_ARRAY:
      return "arrays";
    default:
      return "of a class of its own";
  }
}

std::optional<number> number_of(hid_t t) {
  const H5T_class_t kind = H5Tget_class(t);
  const std::size_t size = H5Tget_size(t);
  if (kind == H5T_FLOAT) return number{'f', size};
  if (kind == H5T_INTEGER) return number{H5Tget_sign(t) == H5T_SGN_NONE ? 'u' : 'i', size};
  if (kind != H5T_COMPOUND || H5Tget_nmembers(t) != 2) return std::nullopt;
  std::string names[2];
  std::size_t largest = 0;
  for (unsigned k = 0; k < 2; ++k) {
    char* const name = H5Tget_member_name(t, k);
    names[k] = name;
    (void)H5free_memory(name);
    const handle part(H5Tget_member_type(t, k), &H5Tclose);
    if (H5Tget_class(part) != H5T_FLOAT) return std::nullopt;
    largest = std::max(largest, H5Tget_size(part));
  }
  if (largest > 8 || !are_parts(names[0], names[1])) return std::nullopt;
  return number{'c', 2 * largest, names[0], names[1]};
}

void require_filters(hid_t properties, const std::string& what) {
  const int n = H5Pget_nfilters(properties);
  for (int k = 0; k < n; ++k) {
    unsigned flags = 0;
    std::size_t values = 0;
    char name[64] = "";
    const H5Z_filter_t id =
        H5Pget_filter2(properties, static_cast<unsigned>(k), &flags, &values, nullptr, sizeof name, name, nullptr);
    if (H5Zfilter_avail(id) > 0) continue;
    throw std::invalid_argument(fmt::format(
        "{} was compressed by the filter {} ({}), which this HDF5 library does not have: set HDF5_PLUGIN_PATH to where it is, or "
        "convert the file with h5repack -f GZIP=6",
        what, id, name[0] != 0 ? name : "without a name"));
  }
}

void quiet() { (void)H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr); }

}  // namespace orrery::hdf5
