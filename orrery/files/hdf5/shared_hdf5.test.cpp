// SPDX-License-Identifier: Apache-2.0
#include <orrery/files/hdf5/shared_hdf5.hpp>

#include <orrery/files/hdf5/dataset.hpp>
#include <orrery/orrery.hpp>
#include <orrery/process/internal/test_each_world.hpp>
#include <orrery/shared/shared.hpp>
#include <orrery/storage/internal/test_support.hpp>

#include <atomic>
#include <cerrno>
#include <complex>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace orrery {
namespace shared_hdf5_tests {

namespace fs = std::filesystem;
using storage::testing::error_text;
using storage::testing::scratch;
using storage::testing::text_of;

void expect_in(const std::string& part, const std::string& text) {
  EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in: " << text;
}

template <class T>
std::vector<T> counted(std::uint64_t n) {
  std::vector<T> v(n);
  for (std::uint64_t i = 0; i < n; ++i) v[i] = static_cast<T>(static_cast<int>(i % 100) + 1);
  return v;
}
template <class T>
void expect_same(const shared_matrix<T>& m, const std::vector<T>& all) {
  std::vector<T> back(m.size());
  copy(m.rows(0, m.row_count()), std::span(back));
  EXPECT_TRUE(back == all);
}

class shared_in_hdf5 : public testing::on_threads_and_machines<4> {};
INSTANTIATE_ON_THREADS_AND_MACHINES(shared_in_hdf5);

template <class T>
void there_and_back(const std::string& path, const std::string& name) {
  const auto all = counted<T>(37 * 11);
  for (const distribution& from : {distribution::block(), distribution::cyclic(), distribution::tiles(2, 2)}) {
    const shared_matrix<T> m(37, 11, from);
    copy(std::span<const T>(all), m.rows(0, 37));
    fs::remove(path);
    EXPECT_EQ(store_hdf5(m, path, name, {.memory = 500}).bytes, all.size() * sizeof(T));
    EXPECT_EQ(hdf5_sides(path, name), (std::vector<std::uint64_t>{37, 11}));
    const shared_matrix<T> n(37, 11, distribution::columns());
    EXPECT_EQ(load_hdf5(path, name, n, {.memory = 333}).bytes, all.size() * sizeof(T));
    expect_same(n, all);
    destroy(m);
    destroy(n);
  }
}
TEST_P(shared_in_hdf5, goes_and_comes_back_with_all_types_of_elements) {
  in_each([] {
    const scratch folder;
    there_and_back<std::int8_t>(folder / "a.h5", "/x");
    there_and_back<std::uint16_t>(folder / "a.h5", "/deep/er/x");
    there_and_back<long>(folder / "a.h5", "x");
    there_and_back<float>(folder / "a.h5", "x");
    there_and_back<double>(folder / "a.h5", "x");
    there_and_back<std::complex<double>>(folder / "a.h5", "x");
  });
}

// A dataset in chunks of 8 x 8 with checksums, as other programs make them.
void make_chunked(const std::string& path, const std::vector<double>& all, hsize_t rows, hsize_t columns) {
  const hdf5::handle file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), &H5Fclose);
  const hsize_t sides[] = {1, rows, columns};
  const hsize_t chunk[] = {1, 8, 8};
  const hdf5::handle space(H5Screate_simple(3, sides, nullptr), &H5Sclose);
  const hdf5::handle properties(H5Pcreate(H5P_DATASET_CREATE), &H5Pclose);
  ASSERT_GE(H5Pset_chunk(properties, 3, chunk), 0);
  ASSERT_GE(H5Pset_fletcher32(properties), 0);
  const hdf5::handle set(H5Dcreate2(file, "x", H5T_IEEE_F64BE, space, H5P_DEFAULT, properties, H5P_DEFAULT), &H5Dclose);
  ASSERT_GE(H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, all.data()), 0);
}

TEST_P(shared_in_hdf5, loads_chunks_and_the_bytes_of_other_machines) {
  in_each([] {
    const scratch folder;
    const auto all = counted<double>(30 * 20);
    make_chunked(folder / "a.h5", all, 30, 20);
    const shared_matrix<double> m(30, 20);
    for (const std::uint64_t memory : {1024, 5000, 1 << 20}) {
      m.fill(0);
      const file_traffic t = load_hdf5(folder / "a.h5", "", m, {.memory = memory});
      EXPECT_LE(t.memory, memory);
      expect_same(m, all);
    }
    expect_in("1023 bytes of memory are too little for /x in",
              text_of<std::invalid_argument>([&] { load_hdf5(folder / "a.h5", "x", m, {.memory = 1023}); }));
  });
}

TEST_P(shared_in_hdf5, loads_and_stores_a_vector_in_bounded_memory) {
  in_each([] {
    const scratch folder;
    const shared_vector<int> v(300'000, distribution::block_cyclic(1000));
    std::vector<int> all(v.size());
    std::iota(all.begin(), all.end(), 0);
    copy(std::span<const int>(all), v);
    EXPECT_LE(store_hdf5(v, folder / "a.h5", "v", {.memory = 50'000}).memory, 50'000U);
    v.fill(0);
    EXPECT_LE(load_hdf5(folder / "a.h5", "v", v, {.memory = 50'000}).memory, 50'000U);
    std::vector<int> back(v.size());
    copy(v, std::span(back));
    EXPECT_TRUE(back == all);
    const shared_vector<int> none(0);
    store_hdf5(none, folder / "a.h5", "none");
    EXPECT_EQ(load_hdf5(folder / "a.h5", "none", none).bytes, 0U);
  });
}

TEST_P(shared_in_hdf5, says_what_does_not_fit) {
  in_each([] {
    const scratch folder;
    const shared_matrix<float> m(6, 4);
    store_hdf5(m, folder / "a.h5", "x");
    const shared_matrix<double> other_type(6, 4);
    const shared_matrix<int> integer(6, 4);
    const shared_vector<float> line(24);
    const auto why = [&](auto& to, const std::string& file, const std::string& name) {
      return text_of<std::exception>([&] { load_hdf5(folder / file, name, to); });
    };
    expect_in("its elements are float64, and those of /x in", why(other_type, "a.h5", "x"));
    expect_in("float32; give both the same", why(other_type, "a.h5", "x"));
    expect_in("its elements are int32", why(integer, "a.h5", "x"));
    expect_in("it has 24 x 1 elements, and /x in", why(line, "a.h5", "x"));
    expect_in("has 6 x 4; both need the same shape", why(line, "a.h5", "x"));
    expect_in("has no dataset /y: did you mean /x? there is /x", why(m, "a.h5", "y"));
    expect_in("cannot read", why(m, "none.h5", "x"));
    std::ofstream(folder / "text.h5") << "no HDF5";
    expect_in("is not an HDF5 file", why(m, "text.h5", "x"));
    expect_in("/x is in", error_text(EEXIST, [&] { store_hdf5(m, folder / "a.h5", "/x"); }));
    expect_in("is there, and is not an HDF5 file",
              text_of<std::invalid_argument>([&] { store_hdf5(m, folder / "text.h5", "x"); }));
    store_hdf5(m, folder / "a.h5", "y");
    EXPECT_NE(why(m, "a.h5", "").find("say which dataset: there are /x, /y"), std::string::npos);
  });
}
TEST(shared_hdf5, loads_nothing_into_what_somebody_views) {
  testing::in_world(2, [] {
    const scratch folder;
    const shared_matrix<float> m(6, 4);
    store_hdf5(m, folder / "a.h5", "x");
    with(read_view(m),
         [&](auto&) { expect_in("a view at", text_of<usage_error>([&] { load_hdf5(folder / "a.h5", "x", m); })); });
    load_hdf5(folder / "a.h5", "x", m);
  });
}

TEST_P(shared_in_hdf5, says_what_is_damaged_and_goes_on) {
  in_each([] {
    const scratch folder;
    const auto all = counted<double>(32 * 16);
    make_chunked(folder / "a.h5", all, 32, 16);
    {
      std::ifstream in(folder / "a.h5", std::ios::binary);
      std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
      std::ofstream(folder / "cut.h5", std::ios::binary) << bytes.substr(0, bytes.size() / 2);
      bytes[bytes.size() - 100] = '!';  // in the last chunk
      std::ofstream(folder / "bad.h5", std::ios::binary) << bytes;
    }
    const shared_matrix<double> m(32, 16);
    expect_in("truncated file", text_of<std::invalid_argument>([&] { load_hdf5(folder / "cut.h5", "x", m); }));
    expect_in("cannot read the part",
              text_of<std::invalid_argument>([&] { load_hdf5(folder / "bad.h5", "x", m, {.memory = 2048}); }));
    load_hdf5(folder / "a.h5", "x", m);
    expect_same(m, all);
  });
}

// The library that is installed here may have a lock of its own: this looks at ours.
TEST(shared_hdf5, lets_one_thread_at_a_time_use_the_library) {
  std::atomic<int> inside{0};
  std::atomic<int> met{0};
  const auto use = [&] {
    met += inside.fetch_add(1);
    std::this_thread::yield();
    inside.fetch_sub(1);
  };
  constexpr int rounds = 1000;
  std::thread other([&] {
    for (int i = 0; i < rounds; ++i) hdf5::with_library([&] { use(); });
  });
  for (int i = 0; i < rounds; ++i) hdf5::with_library([&] { return use(), 0; });
  other.join();
  EXPECT_EQ(met, 0);
}

TEST_P(shared_in_hdf5, leaves_nothing_of_a_file_that_cannot_be_written) {
  in_each([] {
    const scratch folder;
    const shared_matrix<double> m(64, 16);
    destroy(m);
    EXPECT_THROW(store_hdf5(m, folder / "a.h5", "x"), usage_error);
    const shared_matrix<double> n(64, 16);
    EXPECT_THROW(store_hdf5(n, folder / "no/folder.h5", "x"), std::system_error);
    EXPECT_TRUE(fs::is_empty(folder.path));
  });
}

}  // namespace shared_hdf5_tests
}  // namespace orrery
