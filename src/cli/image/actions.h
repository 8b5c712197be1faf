// What the verbs of `caisson image` do; linked into caisson-image only.
#pragma once

#include "cli/options.h"

namespace caisson::cli {

int buildAction(const Arguments& arguments);
int commitAction(const Arguments& arguments);
int importAction(const Arguments& arguments);
int inspectAction(const Arguments& arguments);
int listAction(const Arguments& arguments);
int pruneAction(const Arguments& arguments);
int pullAction(const Arguments& arguments);
int pushAction(const Arguments& arguments);
int removeAction(const Arguments& arguments);
int saveAction(const Arguments& arguments);
int tagAction(const Arguments& arguments);
int verifyAction(const Arguments& arguments);

}  // namespace caisson::cli
