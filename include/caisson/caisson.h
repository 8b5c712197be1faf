// caisson: runs untrusted code in a sandbox and protects the host. Start here.
//
//   caisson/policy.h   what a sandbox may do
//   caisson/run.h      run one command in a sandbox
//   caisson/session.h  a workspace that persists across commands
//   caisson/changes.h  what a session changed, and how it is committed
//   caisson/error.h    errors as values
#pragma once

#include "caisson/error.h"
#include "caisson/policy.h"
#include "caisson/run.h"
#include "caisson/session.h"
#include "caisson/session_pool.h"
