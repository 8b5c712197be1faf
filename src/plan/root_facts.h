// Facts about a root other than the host's.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sys/fd.h"

namespace caisson::plan {

/// A root other than the host's, as found: the directory or image that filesystem.root names.
struct RootFacts {
  std::string why_not, hint;                     ///< not empty: it cannot be used, and what to do
  std::vector<std::string> layers;               ///< canonical host directories, uppermost first
  std::string digest;                            ///< of an image: its manifest; empty for a directory
  std::map<std::string, std::string> top_level;  ///< its entries: "lib" -> "usr/lib" for a link, "" for all else
  std::string passwd, group;                     ///< content of these files; empty: absent
  bool has_apt = false;                          ///< there is a directory /etc/apt/apt.conf.d
  bool has_git_config = false;                   ///< there is a file /etc/gitconfig
  // The image's configuration
  std::vector<std::string> environment;                ///< "NAME=value"
  std::string working_directory;                       ///< a directory of the root; empty: none
  std::string user;                                    ///< as the image names it; empty: root
  std::shared_ptr<const std::vector<sys::Fd>> in_use;  ///< locks: the layers are not removed while these are open
};

}  // namespace caisson::plan
