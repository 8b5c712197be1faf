// Paths of the host that a foreign document shows: which of them an import may take over.
#pragma once

#include <string>
#include <vector>

namespace caisson::policy {

struct ShownPath {
  std::string why_not;             ///< empty: it may be shown
  bool only_readable = false;      ///< programs of the host start from it or read it as their settings
  std::string leads_to;            ///< where the path leads now, if a link is in it
  std::vector<std::string> links;  ///< the places of these links
};

/// Judges a host path by its name, and by the place to which links in it lead now. `writable`: the document wants to
/// write there.
ShownPath judgeShownPath(const std::string& path, bool writable);

/// `text` with the place to which the path leads, for the report.
std::string withPlace(const std::string& text, const ShownPath& judged);

/// What a policy names to show `path`: the place where it leads if one of the links lies in the workspace, where the
/// next payload can change it; else the path. `workspace` is "" if it is not known.
std::string pathToShow(const std::string& path, const ShownPath& judged, const std::string& workspace);

/// Where an absolute path leads now. Links to nothing are followed, too; what does not exist or cannot be read stays as
/// it is named, so the path need not exist on this machine. "/" if links lead deeper than can be followed.
/// Appends the places of the links to `links`.
std::string realPlace(const std::string& path, std::vector<std::string>* links = nullptr);

}  // namespace caisson::policy
