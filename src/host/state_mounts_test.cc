#include "host/state_mounts.h"

#include <gtest/gtest.h>

namespace caisson::host {
namespace {

using sys::MountEntry;
using Names = std::vector<std::string>;

const MountEntry kRoot{.id = 1, .device = "8:1", .root = "/", .point = "/"};

Names namesOf(std::vector<MountEntry> mounts, const std::string& directory = "/home/a/state") {
  mounts.insert(mounts.begin(), kRoot);
  return otherNamesOf(directory, 1, mounts);
}

TEST(StateMounts, BindOfDirectoryOrPartIsFound) {
  EXPECT_EQ(namesOf({{2, "8:1", "/home/a/state", "/home/a/x/b m"}}), Names{"/home/a/x/b m"});
  EXPECT_EQ(namesOf({{2, "8:1", "/home/a/state/sessions", "/srv/s"}}), Names{"/srv/s"});
}

TEST(StateMounts, MountOfDirectoryAboveIsFound) {
  EXPECT_EQ(namesOf({{2, "8:1", "/home/a", "/srv/copy"}}), Names{"/srv/copy/state"});
  EXPECT_EQ(namesOf({{2, "8:1", "/", "/mnt"}}), Names{"/mnt/home/a/state"});
}

TEST(StateMounts, OtherMountsAreNotNames) {
  EXPECT_EQ(namesOf({{2, "8:2", "/home/a/state", "/srv/other-disk"},
                     {3, "8:1", "/home/a/state2", "/srv/beside"},
                     {4, "8:1", "/home/b", "/srv/user"},
                     {5, "8:1", "/home/a/state/sessions", "/home/a/state/again"}}),
            Names{});
}

TEST(StateMounts, FileSystemMountedInStateIsFoundElsewhere) {
  EXPECT_EQ(namesOf({{2, "8:2", "/kept", "/home/a/state/sessions"}, {3, "8:2", "/", "/disk"}}), Names{"/disk/kept"});
  // A mount of the whole tree in the state makes nothing else a part of it.
  EXPECT_EQ(namesOf({{2, "8:1", "/", "/home/a/state/tree"}}), Names{});
}

TEST(StateMounts, MountOfDirectoryIsFoundWithAndWithoutItsId) {
  const std::vector<MountEntry> mounts{kRoot, {2, "8:3", "/vol", "/home"}, {3, "8:3", "/vol/a", "/volume"}};
  for (const std::uint64_t id : {2U, 0U})
    EXPECT_EQ(otherNamesOf("/home/a/state", id, mounts), Names{"/volume/state"}) << id;
}

}  // namespace
}  // namespace caisson::host
