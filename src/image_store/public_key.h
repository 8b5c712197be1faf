// Checks of signatures with a public key. Needs OpenSSL and nothing else of this folder.
#pragma once

#include <string_view>

namespace caisson::image {

/// Whether `text` is a public key (PEM).
bool isPublicKey(std::string_view text);

/// Whether `signature` (binary) is one of `payload` by the public key (PEM: ECDSA or RSA with SHA-256, or Ed25519).
bool verifySignature(std::string_view public_key, std::string_view payload, std::string_view signature);

}  // namespace caisson::image
