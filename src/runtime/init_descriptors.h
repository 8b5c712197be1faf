// Descriptors that pid 1 of a container gets. A separate header, since pid 1 is a program without a C++ library.
#pragma once

namespace caisson::runtime {

/// Contiguous, since runtimes pass a range on: the control socket, the payload's block, its standard streams.
inline constexpr int kControlDescriptor = 3;
inline constexpr int kBlockDescriptor = 4;
inline constexpr int kFirstStream = 5;
inline constexpr int kPassedDescriptors = 5;

}  // namespace caisson::runtime
