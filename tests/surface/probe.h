// What a program finds open from inside a sandbox: sockets, files of /proc. Counted by trying.
#pragma once

namespace caisson::surface {

/// Tries, prints one line of JSON, and waits until standard input ends so that the filter can be read from outside.
int probe();

}  // namespace caisson::surface
