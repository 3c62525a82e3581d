// SPDX-License-Identifier: Apache-2.0
// `orrery data` and NIfTI files. They are made, and looked at, byte by byte as the standard says (nifti1.h), by no library.
#include "data_support.hpp"

#include <filesystem>
#include <string>

#include <gtest/gtest.h>

namespace orrery {
namespace {

namespace fs = std::filesystem;
using namespace testing;

// header(): the 352 bytes before the voxels. load(): a header's fields and the voxels of a file, as an array [i, j, k].
const std::string nifti_in_python = R"(
def header(shape, code, bits, slope=0, inter=0, order='<', magic=b'n+1', offset=352, ndim=None):
    h = bytearray(352)
    def put(at, form, *v): struct.pack_into(order + form, h, at, *v)
    put(0, 'i', 348); dims = list(shape) + [1] * (7 - len(shape)); put(40, '8h', ndim or len(shape), *dims)
    put(70, '2h', code, bits); put(76, '8f', -1, 1.5, 2, 2.5, 1, 1, 1, 1); put(108, 'f', offset); put(112, '2f', slope, inter)
    h[123] = 2; h[148:153] = b'hello'
    put(252, '2h', 1, 4); put(256, '6f', 0, 0, 0.6, 10, 20, 30)
    put(280, '12f', -1.5, 0.25, 0, 90, 0, 2, -0.5, -126, 0, 0.125, 2.5, -72); h[344:344 + len(magic)] = magic
    return bytes(h)
def load(path):
    d = (gzip.open if path.endswith('gz') else open)(path, 'rb').read()
    f = dict(dim=struct.unpack_from('<8h', d, 40), code=struct.unpack_from('<h', d, 70)[0], pixdim=struct.unpack_from('<8f', d, 76),
             scl=struct.unpack_from('<2f', d, 112), units=d[123], descrip=d[148:228].rstrip(b'\0'), forms=struct.unpack_from('<2h', d, 252),
             quatern=struct.unpack_from('<6f', d, 256), srow=np.array(struct.unpack_from('<12f', d, 280)).reshape(3, 4), magic=d[344:348])
    offset = int(struct.unpack_from('<f', d, 108)[0])
    v = np.frombuffer(d[offset:], {16: '<f4', 64: '<f8', 32: '<c8', 1792: '<c16'}[f['code']])
    return f, v.reshape(f['dim'][1:4], order='F')
)";
void nifti(const std::string& folder, const std::string& source) { python(folder, nifti_in_python + source); }

TEST(orrery_data_nifti, imports_every_number_type_with_its_scale) {
  ORRERY_NEEDS_H5PY();
  const scratch folder;
  nifti(folder.path, R"(
r = np.random.default_rng(1)
for name, code, to in (('u1', 2, 'f4'), ('i1', 256, 'f4'), ('i2', 4, 'f4'), ('u2', 512, 'f4'), ('i4', 8, 'f8'), ('u4', 768, 'f8'), ('i8', 1024, 'f8'),
                   ('u8', 1280, 'f8'), ('f4', 16, 'f4'), ('f8', 64, 'f8'), ('c8', 32, 'c8'), ('c16', 1792, 'c16')):
    t = np.dtype(name)
    x = (r.normal(size=(9, 10, 11)) * 1000 + (300j if t.kind == 'c' else 0)).astype('i8' if t.kind in 'iu' else t)
    x = (x % 127).astype(t) if t.kind in 'iu' else x
    for order in '<>':
        for slope, inter in ((0, 0), (0.5, -3)):
            name2 = name + ('big' if order == '>' else '') + ('scaled' if slope else '')
            open(name2 + '.nii', 'wb').write(header(x.shape, code, 8 * t.itemsize, slope, inter, order) + x.astype(t.newbyteorder(order)).tobytes('F'))
            y = x * slope + (inter + (inter * 1j if t.kind == 'c' else 0)) if slope else x
            np.save(name2 + '.npy', y.astype(to))
)");
  int seen = 0;
  for (const auto& file : fs::directory_iterator(folder.path)) {
    if (file.path().extension() != ".nii") continue;
    SCOPED_TRACE(file.path());
    ++seen;
    expect_good("import " + file.path().string() + " " + folder / "x --pages 4,4,4");
    expect_good("export " + folder / "x " + file.path().string() + ".out.npy");
    expect_good("remove " + folder / "x");
  }
  python(folder.path, R"(
for name in os.listdir():
    if not name.endswith('.nii'): continue
    a, b = np.load(name[:-4] + '.npy'), np.load(name + '.out.npy')
    assert a.dtype == b.dtype and np.array_equal(a, b), (name, a.dtype, b.dtype)
)");
  EXPECT_EQ(seen, 48);
}
TEST(orrery_data_nifti, exports_what_it_has_imported_with_its_place_in_space) {
  ORRERY_NEEDS_H5PY();
  const scratch folder;
  nifti(
      folder.path,
      "x = np.random.default_rng(2).normal(size=(20, 30, 40))\nnp.save('x.npy', x)\n"
      "open('in.nii', 'wb').write(header(x.shape, 64, 64) + x.tobytes('F'))\n"
      "gzip.open('in.nii.gz', 'wb').write(header(x.shape, 64, 64) + x.tobytes('F'))\n"
      "open('pair.hdr', 'wb').write(header(x.shape, 64, 64, magic=b'ni1', offset=0)[:348]); open('pair.img', 'wb').write(x.tobytes('F'))\n");
  for (const std::string in : {"in.nii", "in.nii.gz", "pair.hdr", "pair.img"})
    for (const std::string out : {"out.nii", "out.nii.gz"}) {
      SCOPED_TRACE(in + " " + out);
      expect_good("import " + folder / in + " " + folder / "x --pages 7,16,16");
      expect_good("export " + folder / "x " + folder / out);
      nifti(
          folder.path,
          "f, v = load('" + out +
              "')\nx = np.load('x.npy'); assert np.array_equal(x, v)\n"
              "assert f['pixdim'][1:4] == (1.5, 2, 2.5) and f['units'] == 2 and f['descrip'] == b'hello' and f['forms'] == (1, 4), f\n"
              "assert np.allclose(f['quatern'], (0, 0, 0.6, 10, 20, 30)) and f['magic'] == b'n+1\\0', f\n"
              "assert np.array_equal(f['srow'], [[-1.5, 0.25, 0, 90], [0, 2, -0.5, -126], [0, 0.125, 2.5, -72]]), f['srow']\n"
              "assert f['pixdim'][0] == -1, f['pixdim']\n");
      expect_good("remove " + folder / "x");
    }
}
TEST(orrery_data_nifti, keeps_the_place_in_space_in_the_data_sets_header) {
  ORRERY_NEEDS_H5PY();
  const scratch folder;
  nifti(folder.path, "open('in.nii', 'wb').write(header((2, 3, 4), 16, 32) + bytes(96))");
  expect_good("import " + folder / "in.nii " + folder / "x");
  const std::string info = orrery_data("info " + folder / "x").text;
  EXPECT_NE(info.find("voxel_size: [1.5,2.0,2.5]"), std::string::npos) << info;
  EXPECT_NE(info.find("affine: [[-1.5,0.25,0.0,90.0],[0.0,2.0,-0.5,-126.0],[0.0,0.125,2.5,-72.0]]"), std::string::npos)
      << info;
}
TEST(orrery_data_nifti, moves_the_origin_of_a_part) {
  ORRERY_NEEDS_H5PY();
  const scratch folder;
  nifti(
      folder.path,
      "x = np.arange(20 * 30 * 40, dtype='f4').reshape(20, 30, 40)\nopen('in.nii', 'wb').write(header(x.shape, 16, 32) + x.tobytes('F'))");
  expect_good("import " + folder / "in.nii " + folder / "x --pages 8,8,8");
  expect_good("read " + folder / "x --box 2:14,3:5,7: --out " + folder / "part.nii");
  nifti(
      folder.path,
      "f, v = load('part.nii')\nx = np.arange(20 * 30 * 40, dtype='f4').reshape(20, 30, 40); assert np.array_equal(x[2:14, 3:5, 7:], v)\n"
      "A = np.array([[-1.5, 0.25, 0, 90], [0, 2, -0.5, -126], [0, 0.125, 2.5, -72]])\n"
      "assert np.allclose(f['srow'][:, 3], A @ (2, 3, 7, 1)) and np.allclose(f['srow'][:, :3], A[:, :3]), f['srow']\n"
      "R = np.array([[0.28, -0.96, 0], [0.96, 0.28, 0], [0, 0, 1]]) @ np.diag([1.5, 2, -2.5])\n"
      "assert np.allclose(f['quatern'][3:], (10, 20, 30) + R @ (2, 3, 7), atol=1e-4), f['quatern']\n");
}
TEST(orrery_data_nifti, exports_what_came_from_elsewhere) {
  ORRERY_NEEDS_H5PY();
  const scratch folder;
  python(folder.path, "np.save('in.npy', (np.arange(24) + 1j).reshape(2, 3, 4))");
  expect_good("import " + folder / "in.npy " + folder / "x");
  expect_good("export " + folder / "x " + folder / "out.nii.gz");
  nifti(
      folder.path,
      "f, v = load('out.nii.gz'); assert np.array_equal(v, np.load('in.npy')) and f['forms'] == (0, 0) and f['pixdim'][1:4] == (1, 1, 1), f");
  expect_bad("export " + folder / "x " + folder / "out.img", "volumes are written to one file");
}
TEST(orrery_data_nifti, says_what_is_wrong_with_a_file) {
  ORRERY_NEEDS_H5PY();
  const scratch folder;
  nifti(folder.path, R"(
v = np.random.default_rng(1).bytes(64 * 64 * 64 * 4)
full = header((64, 64, 64), 16, 32) + v
open('cut.nii', 'wb').write(full[:-1]); open('head.nii', 'wb').write(full[:300]); open('none.nii', 'wb').write(b'nonsense' * 100)
z = gzip.compress(full, 1); open('cut.nii.gz', 'wb').write(z[:len(z) // 2]); open('crc.nii.gz', 'wb').write((s := gzip.compress(full[:400]))[:-6] + bytes([s[-6] ^ 1]) + s[-5:]); open('flipped.nii.gz', 'wb').write(z[:1000] + b'!!!!!!!!' + z[1008:])
open('four.nii', 'wb').write(header((4, 4, 4, 2), 16, 32) + bytes(512)); open('rgb.nii', 'wb').write(header((4, 4, 4), 128, 24) + bytes(192))
open('five.nii', 'wb').write(header((4, 4, 4, 1, 1), 16, 32) + bytes(256)); open('plane.nii', 'wb').write(header((4, 5), 16, 32) + bytes(80))
)");
  const auto import = [&](const std::string& file) {
    return orrery_data("import " + folder / file + " " + folder / "x");
  };
  expect_bad(import("cut.nii"), "and its volume would take 1048928: it was cut off");
  expect_bad(import("head.nii"), "is not a file in NIfTI's format, or was cut off in its header");
  expect_bad(import("none.nii"), "is not a file in NIfTI's format");
  expect_bad(import("cut.nii.gz"), "ends before its volume does, or cannot be decompressed");
  expect_bad(import("crc.nii.gz"), "crc.nii.gz cannot be decompressed: it was cut off or damaged");
  expect_bad(import("flipped.nii.gz"), "ends before its volume does, or cannot be decompressed");
  expect_bad(import("four.nii"), "it has 4 dimensions (4 x 4 x 4 x 2)");
  expect_bad(import("rgb.nii"), "RGB24");
  EXPECT_FALSE(fs::exists(folder / "x")) << "what was begun is still there";
  EXPECT_EQ(import("five.nii").code, 0);
  EXPECT_EQ(orrery_data("remove " + folder / "x").code, 0);
  EXPECT_EQ(import("plane.nii").code, 0);
  EXPECT_NE(orrery_data("info " + folder / "x").text.find("4 x 5 x 1 elements"), std::string::npos);
}

// libnifti2 would go on with these until it ends the program.
TEST(orrery_data_nifti, refuses_headers_with_absurd_dimensions) {
  ORRERY_NEEDS_H5PY();
  const scratch folder;
  nifti(folder.path, R"(
def second(dim, offset=544, order='<'):
    h = bytearray(540)
    def put(at, form, *v): struct.pack_into(order + form, h, at, *v)
    put(0, 'i', 540); h[4:12] = b'n+2\0\r\n\x1a\n'; put(12, '2h', 16, 32); put(16, '8q', *dim); put(168, 'q', offset)
    return bytes(h) + bytes(4)
for order in '<>':
    e = 'l' if order == '<' else 'b'
    open('count' + e + '.nii', 'wb').write(second((1 << 40, 4, 4, 4, 1, 1, 1, 1), order=order))
    open('none' + e + '.nii', 'wb').write(second((-3, 4, 4, 4, 1, 1, 1, 1), order=order))
    open('side' + e + '.nii', 'wb').write(second((3, 1 << 62, 1 << 62, 4, 1, 1, 1, 1), order=order))
    open('zero' + e + '.nii', 'wb').write(second((3, -5, 4, 4, 1, 1, 1, 1), order=order))
    open('at' + e + '.nii', 'wb').write(second((3, 4, 4, 4, 1, 1, 1, 1), -(1 << 62), order=order))
    with gzip.open('side' + e + '.nii.gz', 'wb') as f: f.write(second((2, 1 << 31, 1 << 31, 1, 1, 1, 1, 1), order=order))
open('first.nii', 'wb').write(header((4, 4, 4), 16, 32, ndim=30000) + bytes(256))
)");
  int seen = 0;
  for (const auto& file : fs::directory_iterator(folder.path)) {
    if (file.path().string().find(".nii") == std::string::npos) continue;
    SCOPED_TRACE(file.path());
    ++seen;
    expect_bad("import " + file.path().string() + " " + folder / "x", "cannot be imported: in its header");
  }
  EXPECT_EQ(seen, 13);
  EXPECT_FALSE(fs::exists(folder / "x"));
}

}  // namespace
}  // namespace orrery
