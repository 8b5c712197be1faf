// Beast's parser with our own storage. Internal: includes Beast.
#pragma once

#include <utility>

#include <boost/beast/http/basic_parser.hpp>

#include "http/message.h"

namespace caisson::http {

namespace beast = boost::beast;

/// Collects what the parser finds. `kRequest`: else it parses responses.
template <bool kRequest>
class MessageParser final : public beast::http::basic_parser<kRequest> {
 public:
  using Code = beast::error_code;
  using Text = beast::string_view;

  explicit MessageParser(std::size_t max_headers) : max_headers_(max_headers) {}

  std::string method, target;
  int status = 0;
  int version = 11;
  Headers headers;   ///< names in lower case
  std::string body;  ///< taken away by the caller as it grows

 private:
  void on_request_impl(beast::http::verb /*verb*/, Text name, Text where, int http_version, Code& code) override {
    version = http_version;
    method.assign(name.data(), name.size());
    target.assign(where.data(), where.size());
    code = {};
  }
  void on_response_impl(int number, Text /*reason*/, int /*version*/, Code& code) override {
    status = number;
    code = {};
  }
  void on_field_impl(beast::http::field /*field*/, Text name, Text value, Code& code) override {
    code = {};
    if (headers_done_) return;  // trailers are dropped
    if (headers.size() >= max_headers_) {
      code = beast::http::error::header_limit;
      return;
    }
    std::string key(name.data(), name.size());
    for (char& c : key)
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    headers.emplace_back(std::move(key), std::string(value.data(), value.size()));
  }
  void on_header_impl(Code& code) override {
    headers_done_ = true;
    code = {};
  }
  void on_body_init_impl(boost::optional<std::uint64_t> const& /*length*/, Code& code) override { code = {}; }
  std::size_t on_body_impl(Text piece, Code& code) override {
    body.append(piece.data(), piece.size());
    code = {};
    return piece.size();
  }
  void on_chunk_header_impl(std::uint64_t /*size*/, Text /*extensions*/, Code& code) override { code = {}; }
  std::size_t on_chunk_body_impl(std::uint64_t /*remain*/, Text piece, Code& code) override {
    return on_body_impl(piece, code);
  }
  void on_finish_impl(Code& code) override { code = {}; }

  std::size_t max_headers_;
  bool headers_done_ = false;
};

}  // namespace caisson::http
