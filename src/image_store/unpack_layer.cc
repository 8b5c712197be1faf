#include "image_store/unpack_layer.h"

#include "image_store/decoder.h"
#include "image_store/layer_record.h"

namespace caisson::image {
namespace {

/// An archive has headers and padding beyond its files.
constexpr std::uint64_t kArchiveOverhead = 2;
constexpr std::uint64_t kArchiveSlack = 1U << 30;

Error wrongDiffId(const ContentDigest& layer, const ContentDigest& got) {
  return plainError(Stage::state, "unpack", layer.text(),
                    "the uncompressed layer has another DiffID than the image's configuration: " + got.text(),
                    "the image is damaged or hostile");
}

/// Feeds the frames of the archive to the writer; returns the DiffID.
Result<ContentDigest> writeEntries(Decoder& decoder, LayerWriter& writer, const std::function<void()>& step) {
  while (true) {
    const auto frame = decoder.next();
    if (!frame) return fail(frame.error());
    if (!*frame) break;
    Result<void> done;
    if ((*frame)->type == FrameType::data) {
      done = writer.data((*frame)->value, (*frame)->body);
    } else if ((*frame)->type == FrameType::end_of_entry) {
      done = writer.end();
    } else {
      const auto entry = ArchiveEntry::decode((*frame)->body);
      if (!entry) return fail(entry.error());
      done = writer.begin(*entry);
    }
    if (!done) return fail(done.error());
    step();
  }
  if (auto finished = writer.finish(); !finished) return fail(finished.error());
  const auto diff_id = ContentDigest::parse(decoder.diffId());
  if (!diff_id) return fail(plainError(Stage::state, "unpack", "image layer", "the decoder sent no DiffID"));
  return *diff_id;
}

}  // namespace

Result<ContentDigest> unpackLayer(Transaction& transaction, const ContentDigest& layer,
                                  const std::optional<ContentDigest>& expected, UnpackReport& report,
                                  Progress& progress) {
  if (const auto known = transaction.unpacked(layer)) {
    if (expected && *known != *expected) return fail(wrongDiffId(layer, *known));
    return *known;
  }
  auto blob = transaction.openBlob(layer);
  if (!blob) return fail(blob.error());
  auto root = transaction.newLayer(layer);
  if (!root) return fail(root.error());
  const LayerLimits limits{.bytes = std::min({LayerLimits{}.bytes, transaction.room(), transaction.diskRoom()})};
  auto decoder = Decoder::start(blob->get(), DecodeMode::data, limits.bytes * kArchiveOverhead + kArchiveSlack);
  if (!decoder) return fail(decoder.error());
  const std::size_t step = progress.begin(layer.hex().substr(0, 12) + ": extracting", 0);
  UnpackReport notes;
  LayerWriter writer(*root, limits, notes);
  auto diff_id = writeEntries(*decoder, writer, [&] { progress.advance(step, writer.bytes()); });
  if (diff_id && expected && *diff_id != *expected) diff_id = fail(wrongDiffId(layer, *diff_id));
  if (!diff_id) {
    progress.end(step, "failed");
    return diff_id;
  }
  auto record = transaction.newLayerFile(layer, kLayerRecord);
  if (!record) return fail(record.error());
  const std::uint64_t used = writer.bytes() + writer.entries() * kEntryBytes;
  record->limit(transaction.room() - std::min(transaction.room(), used));
  auto saved = describeLayer(*root, writer.originals(), limits.record,
                             [&](std::string_view part) { return record->write(part); });
  if (saved) saved = transaction.saveLayerFile(layer, kLayerReport, notes.written());
  if (saved) {
    saved = transaction.addLayer({.layer = layer,
                                  .diff_id = *diff_id,
                                  .record = record->digest(),
                                  .entries = writer.entries(),
                                  .bytes = writer.bytes() + record->size()});
  }
  if (!saved) return fail(saved.error());
  report.merge(notes);
  progress.end(step, "extracted");
  return diff_id;
}

}  // namespace caisson::image
