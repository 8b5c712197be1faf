#include "sys/own_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/temp_dir.h"

namespace caisson::sys {
namespace {

TEST(OwnFile, OpensFilesPrivateToTheCaller) {
  const test::TempDir place;
  const std::string path = place.write("secret", "text", 0600);
  EXPECT_TRUE(openOwnFile(path, Privacy::secret));
  for (const mode_t mode : {0640U, 0604U, 0620U, 0602U}) {
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
    EXPECT_FALSE(openOwnFile(path, Privacy::secret)) << mode;
  }
  ASSERT_EQ(::chmod(path.c_str(), 0644), 0);
  EXPECT_TRUE(openOwnFile(path, Privacy::unchanging));
  ASSERT_EQ(::chmod(path.c_str(), 0664), 0);
  EXPECT_FALSE(openOwnFile(path, Privacy::unchanging));
}

TEST(OwnFile, FollowsNoLinkAnywhere) {
  const test::TempDir place;
  place.write("real/secret", "text", 0600);
  ASSERT_EQ(::symlink("real", (place / "directory").c_str()), 0);
  ASSERT_EQ(::symlink("secret", (place / "real/link").c_str()), 0);
  EXPECT_TRUE(openOwnFile(place / "real/secret", Privacy::secret));
  EXPECT_FALSE(openOwnFile(place / "directory/secret", Privacy::secret));
  EXPECT_FALSE(openOwnFile(place / "real/link", Privacy::secret));
}

TEST(OwnFile, OpensOnlyRegularFiles) {
  const test::TempDir place;
  ASSERT_EQ(::mkfifo((place / "fifo").c_str(), 0600), 0);
  EXPECT_FALSE(openOwnFile(place / "fifo", Privacy::secret)) << "and does not wait for a writer";
  EXPECT_FALSE(openOwnFile(place.path(), Privacy::secret));
  EXPECT_FALSE(openOwnFile("relative", Privacy::secret));
  EXPECT_FALSE(openOwnFile(place / "missing", Privacy::secret));
}

}  // namespace
}  // namespace caisson::sys
