// An image under construction: the layers and the configuration, which keeps members that caisson does not know.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "image/model.h"
#include "image_store/build/containerfile.h"
#include "image_store/transaction.h"

namespace caisson::image {

class ImageDraft {
 public:
  /// An image without layers.
  static ImageDraft scratch(const Platform& platform);
  static Result<ImageDraft> from(const Manifest& manifest, std::string_view config_text);
  ImageDraft(const ImageDraft& other);
  ImageDraft& operator=(const ImageDraft& other);
  ImageDraft(ImageDraft&&) noexcept;
  ImageDraft& operator=(ImageDraft&&) noexcept;
  ~ImageDraft();

  void addLayer(const Descriptor& layer, const ContentDigest& diff_id, std::string_view created_by);
  void setEnv(const std::string& key, const std::string& value);
  void setList(const std::string& member, const std::vector<std::string>& words);  ///< "Cmd", "Entrypoint"
  void setText(const std::string& member, const std::string& value);               ///< "WorkingDir", "User"
  void setLabel(const std::string& key, const std::string& value);
  void exposePort(const std::string& port);

  [[nodiscard]] Variables environment() const;
  [[nodiscard]] std::string text(const std::string& member) const;
  [[nodiscard]] const std::vector<Descriptor>& layers() const { return layers_; }
  /// A hash of what a command in this image sees: the layers' blobs and the configuration, without times and history.
  [[nodiscard]] std::string identity() const;
  /// Adds configuration and manifest to the transaction and returns the manifest's entry, without a name.
  Result<StoredName> store(Transaction& transaction) const;

 private:
  struct Document;
  ImageDraft();

  std::unique_ptr<Document> document_;
  std::vector<Descriptor> layers_;
};

/// SOURCE_DATE_EPOCH, or now: RFC 3339.
std::string buildTime();

}  // namespace caisson::image
