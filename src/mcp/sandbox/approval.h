// An owner's word on what a model asks for (SPEC A1, A2): on record in the approvals store, where `caisson approvals`
// grants, lists and revokes; else asked for by elicitation. Without anyone to ask the answer is no, and says which
// command would make it a yes.
//
//   const Word word = ownersWord(call, {.what = "path:/srv/data", .message = "Show /srv/data?"});
//   if (auto* needs = std::get_if<NeedsInput>(&word)) ...
//
// The store is asked anew each time: what was revoked a moment ago does not count any more.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "approval/store.h"
#include "mcp/features.h"

namespace caisson::mcp {

struct ApprovalRequest {
  std::string what;                     ///< approval/what.h
  std::string sandbox;                  ///< its id, if there is one already: then it can be allowed for this sandbox
  std::string message;                  ///< for a person: the parts that a model or payload chose are isReadable()
  std::vector<std::string> more_pages;  ///< of the message, for a person who wants to see the rest
  std::string exactly;  ///< what the answer is about, if that can change between question and answer: a digest
  bool keep = true;     ///< an approval on record counts, and the answer may become one
  bool once = true;     ///< may be allowed for this one call; else an answer is kept in any case
  std::string remedy;   ///< what else would allow it
};

/// How the owner's yes is on record; the id is empty when it was for this call only.
using Word = std::variant<approval::Approval, NeedsInput, Error>;
Word ownersWord(const Call& call, const ApprovalRequest& wish);

/// A text as one word of a shell.
std::string shellWord(std::string_view text);

}  // namespace caisson::mcp
