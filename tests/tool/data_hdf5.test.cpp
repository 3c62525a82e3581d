// SPDX-License-Identifier: Apache-2.0
// `orrery data` and HDF5 files, as h5py writes and reads them.
#include "data_support.hpp"

#include <filesystem>
#include <string>

#include <gtest/gtest.h>

namespace orrery {
namespace {

namespace fs = std::filesystem;
using namespace testing;

// Makes a.h5 with `x` as the array of the statements, imports each of `names`, and compares what comes out, as .npy and as HDF5, with what h5py reads.
void expect_exact(const std::string& statements, const std::string& names) {
  const scratch folder;
  python(folder.path,
         "x = np.random.default_rng(1).normal(size=(20, 30, 40))\nwith h5py.File('a.h5', 'w') as f:\n" + statements);
  std::istringstream list(names);
  for (std::string name; list >> name;) {
    SCOPED_TRACE(name);
    expect_good("import " + folder / "a.h5" + " " + folder / "x" + " --pages 8,16,16 --dataset " + name);
    expect_good("export " + folder / "x" + " " + folder / "out.npy");
    expect_good("export " + folder / "x" + " " + folder / "out.h5" + " --dataset /some/where");
    python(folder.path,
           "a = h5py.File('a.h5')['" + name +
               "'][...]\nb = np.load('out.npy')\nc = h5py.File('out.h5')['some/where'][...]\n" +
               "assert np.array_equal(a.reshape(b.shape).astype(b.dtype), b), (a.dtype, b.dtype, a.shape, b.shape)\n"
               "assert b.dtype == c.dtype and np.array_equal(b, c)\n"
               "assert b.dtype == {'i2': 'f4', 'i4': 'f8', 'f2': 'f4', 'c8': 'c8', 'c16': 'c16', 'f4': 'f4', 'f8': "
               "'f8'}[a.dtype.str[1:]]\n");
    expect_good("remove " + folder / "x");
    fs::remove(folder / "out.h5");
  }
}

TEST(orrery_data_hdf5, imports_and_exports_real_and_complex_numbers) {
  ORRERY_NEEDS_H5PY();
  expect_exact(
      " f['f8'] = x; f['f4'] = x.astype('f4'); f['z'] = x + 2j * x; f['c'] = (x - 1j * x).astype('c8')\n"
      " f['big'] = x.astype('>f4'); f['half'] = x.astype('f2'); f['i2'] = (100 * x).astype('i2'); f['i4'] = (1e9 * x).astype('i4')\n",
      "/f8 f4 z c big half i2 i4");
}
TEST(orrery_data_hdf5, imports_what_is_chunked_and_compressed_in_any_shape) {
  ORRERY_NEEDS_H5PY();
  expect_exact(
      " f.create_dataset('g/h/a', data=x, chunks=(7, 30, 11), compression='gzip', shuffle=True, fletcher32=True)\n"
      " f.create_dataset('planes', data=x, chunks=(1, 30, 40), compression='gzip')\n"
      " f.create_dataset('one', data=x, chunks=(20, 30, 40), compression='gzip')\n"
      " f.create_dataset('growing', data=x, chunks=(3, 3, 3), maxshape=(None, None, None))\n",
      "/g/h/a planes one growing");
}
TEST(orrery_data_hdf5, imports_one_and_two_dimensions_and_sides_of_one_behind_the_third) {
  ORRERY_NEEDS_H5PY();
  expect_exact(" f['line'] = x[0, 0]; f['plane'] = x[0]; f['volume'] = x[..., None]; f['more'] = x[..., None, None]\n",
               "line plane volume more");
}
TEST(orrery_data_hdf5, takes_for_complex_numbers_only_what_is_called_so) {
  ORRERY_NEEDS_H5PY();
  const scratch folder;
  python(folder.path,
         "f = h5py.File('a.h5', 'w')\nfor a, b in (('Re', 'Im'), ('real', 'imag'), ('Real', 'Imaginary'), ('radius', "
         "'intensity'), ('rho', 'index'), ('i', 'r')):\n v = np.zeros((2, 3, 4), [(a, 'f4'), (b, 'f4')]); v[a] = 1; "
         "v[b] = 2; f[a] = v");
  for (const std::string name : {"Re", "real", "Real"}) {
    expect_good("import " + folder / "a.h5 " + folder / name + " --dataset " + name);
    const std::string one = orrery_data("read " + folder / name + " --box 1,1,1").text;
    EXPECT_NE(one.find("2j"), std::string::npos) << one;
  }
  for (const std::string name : {"radius", "rho", "i"})
    expect_bad("import " + folder / "a.h5 " + folder / "x --dataset " + name, "are records");
}
TEST(orrery_data_hdf5, says_what_to_do_with_a_file_whose_writer_was_killed) {
  ORRERY_NEEDS_H5PY();
  const scratch folder;
  expect_good("create " + folder / "x --shape 2,3,4 --type float32");
  write_text(folder / "kill.py",
             "import h5py, os\nf = h5py.File('a.h5', 'w', libver='latest'); f['v'] = [[[1.0]]]; f.flush()\n"
             "os.kill(os.getpid(), 9)\n");
  (void)shell("cd " + folder.path + " && HDF5_USE_FILE_LOCKING=FALSE " + python_with_h5py() + " kill.py");
  for (const std::string& command :
       {"import " + folder / "a.h5 " + folder / "y", "export " + folder / "x " + folder / "a.h5"}) {
    const outcome o = orrery_data(command);
    if (o.code == 0) GTEST_SKIP() << "this HDF5 library marks no file as open";
    expect_bad(o, "one was killed: h5clear -s " + folder / "a.h5");
  }
}
TEST(orrery_data_hdf5, imports_as_the_type_that_was_asked_for) {
  ORRERY_NEEDS_H5PY();
  const scratch folder;
  python(folder.path, "h5py.File('a.h5', 'w')['x'] = np.arange(24.0).reshape(2, 3, 4)");
  expect_good("import " + folder / "a.h5" + " " + folder / "x" + " --type float32");
  expect_good("export " + folder / "x" + " " + folder / "out.npy");
  python(folder.path,
         "b = np.load('out.npy'); assert b.dtype == 'f4' and np.array_equal(b, np.arange(24).reshape(2, 3, 4))");
  expect_bad("import " + folder / "a.h5" + " " + folder / "y" + " --type complex64",
             "are real, which cannot become complex64");
}
TEST(orrery_data_hdf5, adds_to_a_file_that_is_there_and_overwrites_nothing) {
  ORRERY_NEEDS_H5PY();
  const scratch folder;
  python(folder.path, "h5py.File('a.h5', 'w')['old'] = np.arange(24.0).reshape(2, 3, 4)");
  expect_good("import " + folder / "a.h5" + " " + folder / "x");
  expect_good("export " + folder / "x" + " " + folder / "a.h5");
  expect_bad("export " + folder / "x" + " " + folder / "a.h5", "/data is in " + folder / "a.h5" + " already");
  expect_good("read " + folder / "x" + " --box 1,:,0:2 --out " + folder / "a.h5 --dataset part");
  python(folder.path,
         "f = h5py.File('a.h5'); assert set(f) == {'old', 'data', 'part'}, list(f)\n"
         "assert np.array_equal(f['data'], f['old']) and np.array_equal(f['part'], f['old'][1:2, :, 0:2])");
  write_text(folder / "b.h5", "no HDF5");
  expect_bad("export " + folder / "x" + " " + folder / "b.h5", "is there, and is not an HDF5 file");
  EXPECT_EQ(text_of(folder / "b.h5"), "no HDF5");
}
TEST(orrery_data_hdf5, names_the_datasets_that_there_are) {
  ORRERY_NEEDS_H5PY();
  const scratch folder;
  python(
      folder.path,
      "f = h5py.File('a.h5', 'w')\nfor n in ('volume', 'mask', 'g/labels'): f[n] = np.zeros((2, 3, 4))\nh5py.File('none.h5', 'w')");
  const std::string import = "import " + folder / "a.h5 " + folder / "x";
  expect_bad(import, "say which --dataset: there are /g/labels, /mask, /volume");
  expect_bad(import + " --dataset /Volumes",
             "has no dataset /Volumes: did you mean /volume? there are /g/labels, /mask, /volume");
  expect_bad(import + " --dataset g", "has no dataset /g");
  expect_bad(import + " --dataset mask/deeper/down", "has no dataset /mask/deeper/down");
  expect_bad("import " + folder / "none.h5 " + folder / "x", "it has no datasets");
  EXPECT_FALSE(fs::exists(folder / "x"));
}
TEST(orrery_data_hdf5, says_what_is_wrong_with_a_file) {
  ORRERY_NEEDS_H5PY();
  const scratch folder;
  python(
      folder.path,
      "f = h5py.File('a.h5', 'w'); f['four'] = np.zeros((2, 3, 4, 5)); f['text'] = np.array([b'a', b'b']); f['bool'] = np.ones((2, 2, 2), bool)\n"
      "f['one'] = 3.0; f['none'] = np.zeros((2, 0, 3)); f['record'] = np.zeros((2, 2, 2), [('a', 'f8'), ('b', 'f8')])\n"
      "f['long'] = np.zeros((2, 2, 2), np.longdouble); f.close()\n"
      "d = open('a.h5', 'rb').read(); open('cut.h5', 'wb').write(d[:len(d) // 2]); open('no.h5', 'w').write('nonsense' * 100)\n");
  const auto import = [&](const std::string& name) {
    return orrery_data("import " + folder / "a.h5 " + folder / "x --dataset " + name);
  };
  expect_bad(import("four"), "it has 4 dimensions (2 x 3 x 4 x 5), and arrays here have 3");
  expect_bad(import("text"), "are strings");
  expect_bad(import("bool"), "are booleans");
  expect_bad(import("record"), "are records");
  expect_bad(import("long"), "are numbers of more than 64 bits");
  expect_bad(import("one"), "it is a single number");
  expect_bad(import("none"), "so no elements");
  expect_bad("import " + folder / "cut.h5 " + folder / "x", "truncated file");
  expect_bad("import " + folder / "no.h5 " + folder / "x", "is not an HDF5 file");
  expect_bad("import " + folder / "missing.h5 " + folder / "x",
             "cannot read " + folder / "missing.h5" + ": No such file");
  EXPECT_FALSE(fs::exists(folder / "x"));
}
TEST(orrery_data_hdf5, names_a_filter_that_is_missing) {
  ORRERY_NEEDS_H5PY();
  const scratch folder;
  python(folder.path,
         "h5py.File('a.h5', 'w').create_dataset('x', data=np.zeros((8, 8, 8)), chunks=True, compression='lzf')");
  expect_bad("import " + folder / "a.h5 " + folder / "x", "was compressed by the filter 32000 (lzf)");
}
TEST(orrery_data_hdf5, names_a_chunk_that_is_damaged_and_leaves_nothing_behind) {
  ORRERY_NEEDS_H5PY();
  const scratch folder;
  python(
      folder.path,
      "f = h5py.File('a.h5', 'w'); f.create_dataset('x', data=np.random.rand(64, 16, 16), chunks=(8, 16, 16), fletcher32=True)\n"
      "at = f['x'].id.get_chunk_info(7).byte_offset; f.close(); f = open('a.h5', 'r+b'); f.seek(at + 100); f.write(b'!!!!')\n");
  expect_bad("import " + folder / "a.h5 " + folder / "x --pages 8,16,16", "cannot read the part");
  EXPECT_FALSE(fs::exists(folder / "x"));
}

}  // namespace
}  // namespace orrery
