#include "approval/what.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "base/text.h"

namespace caisson::approval {
namespace {

/// A value for each placeholder of kApprovable.
const std::map<std::string, std::string, std::less<>> kExamples{
    {"RUNG", "proc_bound"}, {"REF", "debian:12"}, {"NAME[:PORT]", "example.org:443"}, {"/PATH", "/srv/x"},
    {"NAME", "search"},     {"WORD", "deploy"},   {"SHA256", std::string(64, 'a')}};

TEST(Approvable, EveryListedFormIsAccepted) {
  std::string list(kApprovable);
  list.replace(list.find(" or "), 4, ", ");
  std::size_t forms = 0;
  for (std::string_view form : split(list, ',')) {
    form = trimmed(form);
    const std::size_t subject = form.find(':') + 1;
    const auto example = kExamples.find(form.substr(subject));
    const std::string what = std::string(form.substr(0, subject)) +
                             (example == kExamples.end() ? std::string(form.substr(subject)) : example->second);
    EXPECT_TRUE(checkWhat(what)) << what;
    EXPECT_FALSE(meaning(what).empty()) << what;
    ++forms;
  }
  EXPECT_EQ(forms, 16U);
}

TEST(Approvable, ErrorListsWhatCanBeApproved) {
  const auto checked = checkWhat("everything");
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().hint, "name one of " + std::string(kApprovable));
}

}  // namespace
}  // namespace caisson::approval
