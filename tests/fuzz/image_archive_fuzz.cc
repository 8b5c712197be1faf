// An archive of a stranger: decoded, and written below a scratch directory as a layer. Nothing may appear beside it.
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <utility>

#include "image_store/layer_record.h"
#include "image_store/layer_stream.h"
#include "image_store/layer_writer.h"
#include "image_store/unpack/decode.h"

namespace {

namespace image = caisson::image;
namespace fs = std::filesystem;

/// A directory in memory with the directory `layer` and nothing else.
const fs::path& scratch() {
  static const fs::path path = [] {
    std::string name = "/dev/shm/caisson-fuzz-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    std::atexit([] { fs::remove_all(scratch()); });
    return fs::path(name);
  }();
  return path;
}

int memoryFile(std::string_view bytes) {
  const int file = ::memfd_create("fuzz", MFD_CLOEXEC);
  if (file < 0 || ::write(file, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) std::abort();
  ::lseek(file, 0, SEEK_SET);
  return file;
}

void writeLayer(const std::string& frames) {
  const auto root = caisson::sys::RootDir::open((scratch() / "layer").string());
  if (!root) std::abort();
  const caisson::sys::Fd pipe(memoryFile(frames));
  image::FrameReader reader(pipe.get());
  image::UnpackReport report;
  image::LayerWriter writer(*root, {.bytes = 1 << 20, .entries = 500, .text = 1 << 20}, report);
  while (const auto frame = reader.next()) {
    caisson::Result<void> done;
    if (frame->type == image::FrameType::failed) return;
    if (frame->type == image::FrameType::finished) break;
    if (frame->type == image::FrameType::data) done = writer.data(frame->value, frame->body);
    if (frame->type == image::FrameType::end_of_entry) done = writer.end();
    if (frame->type == image::FrameType::entry) {
      const auto entry = image::ArchiveEntry::decode(frame->body);
      if (!entry) return;
      done = writer.begin(*entry);
    }
    if (!done) return;
  }
  if (!writer.finish()) return;
  std::string record;
  const auto described = image::describeLayer(*root, writer.originals(), 1U << 30, [&](std::string_view part) {
    record += part;
    return caisson::Result<void>();
  });
  const auto once = [&]() -> caisson::Result<std::string> { return std::exchange(record, ""); };
  const auto problems = described ? image::verifyLayer(*root, once) : caisson::fail(described.error());
  if (!problems || !problems->empty()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  fs::create_directory(scratch() / "layer");
  if (data[0] % 4 == 0) {
    writeLayer(std::string(bytes));  // what a decoder that was taken over sends
  } else {
    const caisson::sys::Fd archive(memoryFile(bytes));
    std::string frames;
    image::decodeArchive(archive.get(), true, 8U << 20, [&](std::string_view piece) { frames += piece; });
    writeLayer(frames);
  }
  std::size_t count = 0;
  for (const auto& entry : fs::directory_iterator(scratch())) count += entry.exists() ? 1U : 0U;
  if (count != 1) std::abort();
  const auto holder = caisson::sys::RootDir::open(scratch().string());
  if (!holder || !holder->removeTree("layer")) std::abort();
  return 0;
}
