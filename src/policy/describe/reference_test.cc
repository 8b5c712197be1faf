#include "policy/describe/reference.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "policy/fields.h"

namespace caisson::policy {
extern const char* const kDocumentDirectory;
namespace {

TEST(PolicyReference, DescribesEveryKey) {
  for (const bool markdown : {false, true}) {
    const std::string text = renderReference(markdown);
    for (const Field& field : fields()) {
      EXPECT_NE(text.find(field.key), std::string::npos) << field.key;
      EXPECT_NE(text.find(field.description), std::string::npos) << field.key;
    }
  }
}

TEST(PolicyReference, DocumentIsCurrent) {
  std::ifstream file(std::string(kDocumentDirectory) + "/policy-reference.md");
  const std::string document{std::istreambuf_iterator<char>(file), {}};
  EXPECT_NE(document.find(renderReference(true)), std::string::npos)
      << "write it again: caisson policy reference --markdown";
}

}  // namespace
}  // namespace caisson::policy
