// `caisson image build` and `commit`.
//
// Each RUN is a command in a sandbox whose root is the image so far; what it changed becomes a layer. COPY reads only
// the build context and other stages. The result of a RUN is reused while the image below it, the command and its
// variables are the same.
#pragma once

#include <string>
#include <vector>

#include "approval/owner.h"
#include "base/error.h"
#include "image_store/build/containerfile.h"
#include "image_store/progress.h"
#include "image_store/store.h"

namespace caisson::image {

struct BuildOptions {
  std::string context;  ///< directory
  std::string file;     ///< path of the Containerfile; empty: Containerfile or Dockerfile of the context
  std::string text;     ///< content of the Containerfile, instead of a file
  std::vector<std::string> names;
  Variables arguments;  ///< --build-arg
  std::string target;   ///< the stage to build; empty: the last one
  bool no_cache = false;
  std::vector<std::string> hosts;  ///< that RUN may reach
  std::uint64_t quota = 0;
  approval::ImageSettings settings;
  std::string program;  ///< of sandboxes: this one
};

/// Returns the entry of the built image.
Result<StoredName> buildImage(const Store& store, const BuildOptions& options, Progress& progress);

/// Makes an image of the root of a session: its image, and what was changed there.
Result<StoredName> commitSession(const Store& store, const std::string& session, const std::vector<std::string>& names,
                                 std::uint64_t quota, const std::string& program, Progress& progress);

}  // namespace caisson::image
