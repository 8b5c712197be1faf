#include "image_store/public_key.h"

#include <openssl/evp.h>
#include <openssl/pem.h>

#include <memory>

namespace caisson::image {
namespace {

using KeyPtr = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;

KeyPtr readPublicKey(std::string_view pem) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> text(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())),
                                                       BIO_free);
  return {PEM_read_bio_PUBKEY(text.get(), nullptr, nullptr, nullptr), EVP_PKEY_free};
}

}  // namespace

bool isPublicKey(std::string_view text) { return readPublicKey(text) != nullptr; }

bool verifySignature(std::string_view public_key, std::string_view payload, std::string_view signature) {
  const KeyPtr key = readPublicKey(public_key);
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  if (!key || !context) return false;
  const EVP_MD* hash = EVP_PKEY_id(key.get()) == EVP_PKEY_ED25519 ? nullptr : EVP_sha256();
  if (EVP_DigestVerifyInit(context.get(), nullptr, hash, nullptr, key.get()) != 1) return false;
  return EVP_DigestVerify(context.get(), reinterpret_cast<const unsigned char*>(signature.data()), signature.size(),
                          reinterpret_cast<const unsigned char*>(payload.data()), payload.size()) == 1;
}

}  // namespace caisson::image
