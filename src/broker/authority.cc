#include "broker/authority.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include <algorithm>

namespace caisson::broker {
namespace {

using Bio = std::unique_ptr<BIO, Free<BIO_free_all>>;

constexpr long kClockSlackSeconds = 3600;
constexpr unsigned char kHttp11[] = {8, 'h', 't', 't', 'p', '/', '1', '.', '1'};

Key makeKey() { return Key(EVP_EC_gen("P-256")); }

bool addExtension(X509* certificate, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str());
  if (extension == nullptr) return false;
  const bool added = X509_add_ext(certificate, extension, -1) == 1;
  X509_EXTENSION_free(extension);
  return added;
}

/// An unsigned certificate with a random serial number, a name and a lifetime.
Certificate draft(const Key& key, const std::string& name, std::uint64_t lifetime) {
  Certificate certificate(X509_new());
  std::uint64_t serial = 0;
  if (!certificate || RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof(serial)) != 1) return nullptr;
  X509_NAME* subject = X509_get_subject_name(certificate.get());
  const auto* text = reinterpret_cast<const unsigned char*>(name.c_str());
  const bool made = X509_set_version(certificate.get(), X509_VERSION_3) == 1 &&
                    ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate.get()), serial >> 1 | 1) == 1 &&
                    X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -kClockSlackSeconds) != nullptr &&
                    X509_gmtime_adj(X509_getm_notAfter(certificate.get()), static_cast<long>(lifetime)) != nullptr &&
                    X509_set_pubkey(certificate.get(), key.get()) == 1 &&
                    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, text, -1, -1, 0) == 1;
  return made ? std::move(certificate) : nullptr;
}

/// The name constraints that permit these hosts. Also excludes IP addresses, which DNS constraints do not restrict.
std::string constraintsFor(const std::vector<std::string>& hosts) {
  std::string text = "critical";
  for (const std::string& host : hosts) text += ",permitted;DNS:" + host;
  return text + ",excluded;IP:0.0.0.0/0.0.0.0,excluded;IP:0:0:0:0:0:0:0:0/0:0:0:0:0:0:0:0";
}

int chooseProtocol(SSL*, const unsigned char** out, unsigned char* size, const unsigned char* offered,
                   unsigned int offered_size, void*) {
  unsigned char* chosen = nullptr;
  if (SSL_select_next_proto(&chosen, size, kHttp11, sizeof(kHttp11), offered, offered_size) != OPENSSL_NPN_NEGOTIATED) {
    return SSL_TLSEXT_ERR_ALERT_FATAL;  // HTTP/2 and others cannot be parsed here
  }
  *out = chosen;
  return SSL_TLSEXT_ERR_OK;
}

Context commonContext(const SSL_METHOD* method) {
  Context context(SSL_CTX_new(method));
  if (!context || SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION) != 1) return nullptr;
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  return context;
}

}  // namespace

Error tlsError(std::string_view call, std::string_view object) {
  char text[256] = "no reason given";
  if (const unsigned long code = ERR_get_error(); code != 0) ERR_error_string_n(code, text, sizeof(text));
  ERR_clear_error();
  return plainError(Stage::launch, call, object, text);
}

Result<Authority> Authority::make(const std::vector<std::string>& hosts, std::uint64_t lifetime_seconds) {
  Authority authority;
  authority.lifetime_ = lifetime_seconds;
  authority.key_ = makeKey();
  if (!authority.key_) return fail(tlsError("EVP_EC_gen", "P-256"));
  authority.certificate_ = draft(authority.key_, "caisson: authority of one sandbox", lifetime_seconds);
  X509* certificate = authority.certificate_.get();
  const bool made = certificate != nullptr &&
                    X509_set_issuer_name(certificate, X509_get_subject_name(certificate)) == 1 &&
                    addExtension(certificate, certificate, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
                    addExtension(certificate, certificate, NID_key_usage, "critical,keyCertSign") &&
                    addExtension(certificate, certificate, NID_subject_key_identifier, "hash") &&
                    addExtension(certificate, certificate, NID_name_constraints, constraintsFor(hosts)) &&
                    X509_sign(certificate, authority.key_.get(), EVP_sha256()) > 0;
  if (!made) return fail(tlsError("X509_sign", "authority"));
  return authority;
}

Result<std::string> Authority::pem() const {
  const Bio memory(BIO_new(BIO_s_mem()));
  if (!memory || PEM_write_bio_X509(memory.get(), certificate_.get()) != 1) {
    return fail(tlsError("PEM_write_bio_X509", "authority"));
  }
  char* text = nullptr;
  const long size = BIO_get_mem_data(memory.get(), &text);
  return std::string(text, static_cast<std::size_t>(size));
}

Result<Context> Authority::serverFor(const std::string& host) const {
  const Key key = makeKey();
  const Certificate leaf = key ? draft(key, "caisson: credential broker", lifetime_) : nullptr;
  X509* certificate = leaf.get();
  const bool made = certificate != nullptr &&
                    X509_set_issuer_name(certificate, X509_get_subject_name(certificate_.get())) == 1 &&
                    addExtension(certificate, certificate_.get(), NID_basic_constraints, "critical,CA:FALSE") &&
                    addExtension(certificate, certificate_.get(), NID_key_usage, "critical,digitalSignature") &&
                    addExtension(certificate, certificate_.get(), NID_ext_key_usage, "serverAuth") &&
                    addExtension(certificate, certificate_.get(), NID_subject_key_identifier, "hash") &&
                    addExtension(certificate, certificate_.get(), NID_authority_key_identifier, "keyid") &&
                    addExtension(certificate, certificate_.get(), NID_subject_alt_name, "DNS:" + host) &&
                    X509_sign(certificate, key_.get(), EVP_sha256()) > 0;
  if (!made) return fail(tlsError("X509_sign", host));
  Context context = commonContext(TLS_server_method());
  if (!context || SSL_CTX_use_certificate(context.get(), certificate) != 1 ||
      SSL_CTX_use_PrivateKey(context.get(), key.get()) != 1 || SSL_CTX_set_num_tickets(context.get(), 0) != 1) {
    return fail(tlsError("SSL_CTX_new", host));
  }
  SSL_CTX_set_alpn_select_cb(context.get(), chooseProtocol, nullptr);
  return context;
}

Result<Context> clientTrusting(std::string_view authorities) {
  Context context = commonContext(TLS_client_method());
  if (!context || SSL_CTX_set_alpn_protos(context.get(), kHttp11, sizeof(kHttp11)) != 0) {
    return fail(tlsError("SSL_CTX_new", "hosts"));
  }
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  X509_STORE* store = SSL_CTX_get_cert_store(context.get());
  const Bio memory(BIO_new_mem_buf(authorities.data(), static_cast<int>(authorities.size())));
  while (memory) {
    const Certificate one(PEM_read_bio_X509(memory.get(), nullptr, nullptr, nullptr));
    if (!one) break;
    X509_STORE_add_cert(store, one.get());
  }
  ERR_clear_error();  // the end of the text is reported as an error
  return context;
}

}  // namespace caisson::broker
