// SPDX-License-Identifier: Apache-2.0
#include <orrery/transport/mpi/library.hpp>

#include <orrery/transport/mpi/exit.hpp>
#include <orrery/transport/mpi/launcher_barrier.hpp>
#include <orrery/transport/mpi/plugin/interface.hpp>
#include <orrery/transport/shm/internal/fail.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <cstdio>
#include <filesystem>

#include <dlfcn.h>

#ifndef ORRERY_PLUGIN_DIRS
#define ORRERY_PLUGIN_DIRS ""
#endif

namespace orrery::transport {

using internal::fail;

namespace {

std::string last_dl_error() {
  const char* const text = ::dlerror();
  return text != nullptr ? text : "the system does not say why";
}

// Under these names libraries are looked for, in the order of the launcher.
std::vector<std::string> names_of(mpi_kind kind) {
  const std::vector<std::string> open_mpi{"libmpi.so.40"};
  const std::vector<std::string> mpich{"libmpi.so.12", "libmpich.so.12"};
  if (kind == mpi_kind::open_mpi) return open_mpi;
  if (kind == mpi_kind::mpich) return mpich;
  return {open_mpi[0], mpich[0], mpich[1]};
}

// Beside the program, where it is installed with the package, and where it was built.
std::vector<std::filesystem::path> plugin_folders() {
  std::vector<std::filesystem::path> folders;
  std::error_code ignored;
  if (const auto program = std::filesystem::read_symlink("/proc/self/exe", ignored); !program.empty()) {
    folders.push_back(program.parent_path());
    folders.push_back(program.parent_path().parent_path() / "lib/orrery");
  }
  std::string_view left = ORRERY_PLUGIN_DIRS;
  while (!left.empty()) {
    const std::size_t end = std::min(left.find(':'), left.size());
    if (end != 0) folders.emplace_back(left.substr(0, end));
    left.remove_prefix(std::min(end + 1, left.size()));
  }
  return folders;
}

result<void*> load_library(const mpi_launch& launch, const std::string& path) {
  std::string tried;
  for (const std::string& name : path.empty() ? names_of(launch.kind) : std::vector{path}) {
    // Its own parts look for its symbols among the global ones.
    if (void* const library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_GLOBAL)) return library;
    tried += (tried.empty() ? "" : "; ") + last_dl_error();
  }
  return fail(transport_errc::system, 0,
              "{} (of {}) has started this program, but its library cannot be loaded: {}; install it, name its file "
              "with --orrery-mpi=PATH, or start without MPI (--orrery-mpi=off)",
              launch.variable, to_string(launch.kind), tried);
}

result<const orrery_mpi_plugin*> load_plugin(void* library) {
  const bool is_open_mpi = ::dlsym(library, "ompi_mpi_comm_world") != nullptr;
  if (!is_open_mpi && ::dlsym(library, "MPI_Init_thread") == nullptr)
    return fail(transport_errc::bad_argument, 0,
                "the file of --orrery-mpi is no MPI library: it has no MPI_Init_thread; name the file of libmpi");
  const char* const file = is_open_mpi ? "orrery_mpi_openmpi.so" : "orrery_mpi_mpich.so";
  std::string tried;
  for (const auto& folder : plugin_folders()) {
    const auto path = folder / file;
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) continue;
    void* const plugin = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (plugin == nullptr) {
      tried += "; " + last_dl_error();
      continue;
    }
    const auto get = reinterpret_cast<orrery_mpi_plugin_function>(::dlsym(plugin, "orrery_mpi_plugin_get"));
    if (get != nullptr && get()->version == orrery_mpi_plugin_version) return get();
    tried += "; " + path.string() + " is of another version of Orrery";
  }
  return fail(transport_errc::system, 0,
              "there is no plug-in {} for {}{}; it is built where the headers of that library are installed "
              "(libopenmpi-dev, libmpich-dev), and is looked for beside the program",
              file, is_open_mpi ? "Open MPI" : "MPICH", tried);
}

}  // namespace

result<wire::unique_ptr<mpi_library>> mpi_library::start(const mpi_launch& launch, const std::string& path,
                                                         std::chrono::nanoseconds patience,
                                                         std::chrono::nanoseconds startup) {
  auto library = load_library(launch, path);
  if (!library) return internal::pass(library);
  auto plugin = load_plugin(*library);
  if (!plugin) return internal::pass(plugin);
  wire::unique_ptr<mpi_library> made{new mpi_library(patience, startup)};
  made->calls_ = *plugin;
  made->launcher_ = launch.pmi;
  int started = 0;
  int level = 0;
  const int begun = [&] {
    const library_watch::visit v(made->watch_, library_watch::kind::starting, "MPI_Init_thread");
    return made->calls_->begin(&started, &level);
  }();
  if (begun != 0)
    return fail(transport_errc::system, 0, "{} does not start: {}", (*plugin)->kind, made->text_of(begun));
  made->started_here_ = started != 0;
  if (level == 0)
    return fail(transport_errc::bad_argument, 0,
                "MPI runs for one thread only, and PEs are threads; call MPI_Init_thread with MPI_THREAD_SERIALIZED at "
                "least, or leave the start of MPI to Orrery");
  if (const int e = made->calls_->place(&made->rank_, &made->ranks_); e != 0)
    return fail(transport_errc::system, 0, "{} does not say which rank this is: {}", (*plugin)->kind, made->text_of(e));
  made->failed_.resize(made->ranks_);
  if (launch.ranks != 0 && launch.ranks != made->ranks_)
    return fail(transport_errc::system, 0,
                "the launcher has started {} ranks, but {} sees {}: it is not the library of this launcher; name the "
                "right one with --orrery-mpi=PATH",
                launch.ranks, made->version(), made->ranks_);
  return made;
}

mpi_library::mpi_library(std::chrono::nanoseconds patience, std::chrono::nanoseconds startup)
    : watch_(
          patience, startup, [](const std::string& line) { std::fputs(("orrery: " + line + '\n').c_str(), stderr); },
          end_at_once) {}

std::string mpi_library::text_of(int code) const {
  char text[256] = {};
  calls_->explain(code, text, sizeof text);
  return text;
}

std::string mpi_library::version() const {
  char text[128] = {};
  calls_->describe(text, sizeof text);
  return text;
}

result<std::vector<std::byte>> mpi_library::gather(std::span<const std::byte> own) {
  std::vector<std::byte> all(own.size() * ranks_);
  const library_watch::visit v(watch_, library_watch::kind::starting, "MPI_Allgather");
  if (const int e = calls_->gather(own.data(), static_cast<std::uint32_t>(own.size()), all.data()); e != 0)
    return fail(transport_errc::system, 0, "the ranks cannot tell each other who they are: {}", text_of(e));
  return all;
}

result<std::vector<std::byte>> mpi_library::broadcast(std::vector<std::byte> own, std::uint32_t root) {
  const library_watch::visit v(watch_, library_watch::kind::starting, "MPI_Bcast");
  auto bytes = static_cast<std::uint32_t>(own.size());
  int e = calls_->broadcast(&bytes, sizeof bytes, root);
  constexpr std::uint32_t most = 1U << 30;  // MPI counts with 31 bits
  if (e == 0 && bytes > most)
    return fail(transport_errc::damaged, 0, "rank {} has {} bytes to say, which cannot be", root, bytes);
  if (e == 0) {
    own.resize(bytes);
    e = calls_->broadcast(own.data(), bytes, root);
  }
  if (e != 0)
    return fail(transport_errc::system, 0, "rank {} cannot tell the others what it can say: {}", root, text_of(e));
  return own;
}

void mpi_library::finish() noexcept {
  if (!started_here_) return;
  if (calls_->ends_at_once() != 0) {
    const library_watch::visit v(watch_, library_watch::kind::ending, "the barrier before MPI_Finalize");
    int all = 0;
    if (calls_->settle(launcher_ >= 0 ? 1 : 0, &all) == 0 && all != 0) (void)wait_for_all_at_launcher(launcher_);
  }
  const library_watch::visit v(watch_, library_watch::kind::ending, "MPI_Finalize");
  calls_->end();
}

bool mpi_library::send(std::uint32_t to, int tag, std::span<const std::byte> data, request& begun) {
  const library_watch::visit v(watch_, library_watch::kind::working, "MPI_Isend");
  return (code_ = calls_->send(data.data(), data.size(), to, tag, &begun)) == 0;
}

bool mpi_library::receive(std::uint32_t from, int tag, std::span<std::byte> into, request& begun) {
  const library_watch::visit v(watch_, library_watch::kind::working, "MPI_Irecv");
  return (code_ = calls_->receive(into.data(), into.size(), from, tag, &begun)) == 0;
}

engine::outcome mpi_library::test(request& begun, std::uint32_t& from, std::uint64_t& bytes) {
  const library_watch::visit v(watch_, library_watch::kind::working, "MPI_Test");
  int done = 0;
  if (const int e = calls_->test(&begun, &done, &from, &bytes); e != 0) {
    code_ = e;
    return outcome::failed;
  }
  return done != 0 ? outcome::done : outcome::pending;
}

void mpi_library::cancel(request& begun) {
  const library_watch::visit v(watch_, library_watch::kind::working, "MPI_Cancel");
  calls_->cancel(&begun);
}

std::span<const std::uint32_t> mpi_library::failures() {
  return std::span(failed_).first(calls_->failures(failed_.data(), ranks_));
}

std::string mpi_library::error() const { return text_of(code_); }

}  // namespace orrery::transport
