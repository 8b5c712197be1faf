// The packages of an image as an SPDX 2.3 document.
#pragma once

#include <string>

#include "image_store/build/merged_view.h"

namespace caisson::image {

/// Reads the databases of dpkg and apk. `identity` names the image in the document.
std::string softwareBill(const MergedView& image, const std::string& identity, const std::string& created);

}  // namespace caisson::image
